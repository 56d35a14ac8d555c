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

enum class Isa { baseline, avx2, avx512 };

// The best set this processor and this build have, or the lower one EXTENSOR_ISA asks for.
Isa active_isa();
const char* isa_name(Isa isa);

}  // namespace extensor

// EXTENSOR_X86 is defined by the build when the avx2 variants are compiled in, EXTENSOR_AVX512 when those are too.
#ifdef EXTENSOR_X86
#define EXTENSOR_PER_ISA(declaration)  \
  namespace baseline { declaration; } \
  namespace avx2 { declaration; }     \
  namespace avx512 { declaration; }
#ifdef EXTENSOR_AVX512
#define EXTENSOR_SELECT_AVX512(function) ::extensor::active_isa() == ::extensor::Isa::avx512 ? ::extensor::avx512::function :
#else
#define EXTENSOR_SELECT_AVX512(function)
#endif
#define EXTENSOR_SELECT(function)                                                   \
  (EXTENSOR_SELECT_AVX512(function)                                                 \
   ::extensor::active_isa() == ::extensor::Isa::avx2 ? ::extensor::avx2::function   \
                                                     : ::extensor::baseline::function)
#else
#define EXTENSOR_PER_ISA(declaration) namespace baseline { declaration; }
#define EXTENSOR_SELECT(function) (::extensor::baseline::function)
#endif
