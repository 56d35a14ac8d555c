// Instruction sets. A kernel source that wants vectors is compiled once per instruction set, each time
// with EXTENSOR_ISA naming the namespace it lives in; the set to use is chosen once, at first use.
//
//   header:  EXTENSOR_PER_ISA(const Table& my_table())        declares my_table in every namespace
//   source:  namespace extensor::EXTENSOR_ISA { const Table& my_table() { ... } }
//   caller:  EXTENSOR_SELECT(my_table)()                      calls that of the active set
//
// Such a source must not instantiate inline functions of other namespaces (the standard library
// included): the linker keeps one copy of those and it may be the one built for the widest set.
#pragma once

namespace extensor {

enum class Isa { baseline, avx2, avx512, neon };

// The best set this processor and this build have, or the lower one EXTENSOR_ISA asks for.
Isa active_isa();
const char* isa_name(Isa isa);

// What speaks against using this build here, as a sentence: a processor that has none of the sets it was built for, or an
// EXTENSOR_ISA that is not among them. nullptr if nothing does.
const char* isa_complaint();

}  // namespace extensor

#define EXTENSOR_PER_ISA(declaration)  \
  namespace baseline { declaration; } \
  namespace avx2 { declaration; }     \
  namespace avx512 { declaration; }   \
  namespace neon { declaration; }

// The build defines EXTENSOR_BUILT_<SET> for what chooses among the sets: the first is what is left if it is not a later one.
#if defined(EXTENSOR_ISA)
#define EXTENSOR_SELECT(function) (::extensor::EXTENSOR_ISA::function)
#else
#if defined(EXTENSOR_BUILT_BASELINE)
#define EXTENSOR_FIRST_SET baseline
#elif defined(EXTENSOR_BUILT_AVX2)
#define EXTENSOR_FIRST_SET avx2
#elif defined(EXTENSOR_BUILT_AVX512)
#define EXTENSOR_FIRST_SET avx512
#else
#define EXTENSOR_FIRST_SET neon
#endif
#if defined(EXTENSOR_BUILT_AVX2)
#define EXTENSOR_SELECT_AVX2(function) ::extensor::active_isa() == ::extensor::Isa::avx2 ? ::extensor::avx2::function :
#else
#define EXTENSOR_SELECT_AVX2(function)
#endif
#if defined(EXTENSOR_BUILT_AVX512)
#define EXTENSOR_SELECT_AVX512(function) ::extensor::active_isa() == ::extensor::Isa::avx512 ? ::extensor::avx512::function :
#else
#define EXTENSOR_SELECT_AVX512(function)
#endif
#define EXTENSOR_SELECT(function) \
  (EXTENSOR_SELECT_AVX512(function) EXTENSOR_SELECT_AVX2(function) ::extensor::EXTENSOR_FIRST_SET::function)
#endif
