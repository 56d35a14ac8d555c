#include "core/bf16_unit.hpp"

#include <cstdlib>
#include <cstring>

#include "core/isa.hpp"

namespace extensor {
namespace {

bool is_usable() {
#ifdef EXTENSOR_BUILT_AVX512BF16
  const char* wish = std::getenv("EXTENSOR_BF16_UNIT");
  if (wish != nullptr && std::strcmp(wish, "0") == 0) return false;
  __builtin_cpu_init();
  return active_isa() == Isa::avx512 && __builtin_cpu_supports("avx512bf16");
#else
  return false;
#endif
}

}  // namespace

bool has_bf16_unit() {
  static const bool usable = is_usable();
  return usable;
}

}  // namespace extensor
