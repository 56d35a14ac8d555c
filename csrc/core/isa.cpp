#include "core/isa.hpp"

#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <string>

#ifdef EXTENSOR_X86
#include <cpuid.h>
#endif

namespace extensor {
namespace {

constexpr Isa built[] = {
#ifdef EXTENSOR_BUILT_BASELINE
    Isa::baseline,
#endif
#ifdef EXTENSOR_BUILT_AVX2
    Isa::avx2,
#endif
#ifdef EXTENSOR_BUILT_AVX512
    Isa::avx512,
#endif
#ifdef EXTENSOR_BUILT_NEON
    Isa::neon,
#endif
};

#ifdef EXTENSOR_X86
// Clang does not know the name of this one.
bool has_f16c() {
  unsigned a, b, c, d;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}
#endif

bool is_supported(Isa isa) {
#ifdef EXTENSOR_X86
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2") && has_f16c();
  if (isa == Isa::avx2) return avx2;
  if (isa == Isa::avx512)
    return avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#endif
#ifdef __aarch64__
  if (isa == Isa::neon) return true;
#endif
  return isa == Isa::baseline;
}

const char* wish() {
  const char* text = std::getenv("EXTENSOR_ISA");
  return text == nullptr ? "" : text;
}

Isa choose_isa() {
  Isa best = built[0];
  for (Isa isa : built) {
    if (!is_supported(isa)) continue;
    best = isa;
    if (std::strcmp(wish(), isa_name(isa)) == 0) return isa;
  }
  return best;
}

std::string complaint() {
  std::string names;
  bool usable = false, granted = false, known = false;
  for (Isa isa : built) {
    names += (names.empty() ? "" : ", ") + std::string(isa_name(isa));
    usable = usable || is_supported(isa);
    granted = granted || std::strcmp(wish(), isa_name(isa)) == 0;
  }
  for (Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512, Isa::neon}) known = known || std::strcmp(wish(), isa_name(isa)) == 0;
  const std::string others = "; build it for the others, too: EXTENSOR_ISAS=all pip install .";
  if (!usable) return "[extensor] the native core was built for " + names + ", which this processor does not have" + others;
  if (known && !granted) return "[extensor] EXTENSOR_ISA=" + std::string(wish()) + ": the native core was built for " + names + others;
  return "";
}

}  // namespace

Isa active_isa() {
  static const Isa chosen = choose_isa();
  return chosen;
}

const char* isa_name(Isa isa) {
  switch (isa) {
    case Isa::avx512: return "avx512";
    case Isa::avx2: return "avx2";
    case Isa::neon: return "neon";
    default: return "baseline";
  }
}

const char* isa_complaint() {
  static const std::string text = complaint();
  return text.empty() ? nullptr : text.c_str();
}

}  // namespace extensor
