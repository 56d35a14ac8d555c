#include "core/isa.hpp"

#include <cstdlib>
#include <cstring>
#include <initializer_list>

namespace extensor {
namespace {

Isa best_isa() {
#ifdef EXTENSOR_X86
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
#ifdef EXTENSOR_AVX512
  if (avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    return Isa::avx512;
#endif
  return avx2 ? Isa::avx2 : Isa::baseline;
#else
  return Isa::baseline;
#endif
}

Isa choose_isa() {
  const Isa best = best_isa();
  if (const char* wish = std::getenv("EXTENSOR_ISA")) {
    for (Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512}) {
      if (std::strcmp(wish, isa_name(isa)) == 0 && isa < best) return isa;
    }
  }
  return best;
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
    default: return "baseline";
  }
}

}  // namespace extensor
