// The exponents people write have formulas of their own, chosen once for a call.
#include "kernels/elementwise/elementwise.hpp"

namespace extensor {
namespace {

struct Simpler {
  double exponent;
  const char* name;
};

constexpr Simpler powers[] = {{2, "square"},           {3, "power_by_3"},        {0.5, "power_by_half"},
                              {-1, "reciprocal"},      {1, "power_by_1"},        {0, "power_by_0"},
                              {-2, "power_by_minus_2"}, {-0.5, "power_by_minus_half"}};
constexpr Simpler gradients[] = {{2, "power_by_2_backward"},
                                 {3, "power_by_3_backward"},
                                 {0.5, "power_by_half_backward"},
                                 {-1, "power_by_minus_1_backward"}};

}  // namespace

const ElementwiseKernel& with_last_number(const ElementwiseKernel& kernel, double number) {
  static const ElementwiseKernel *const power = find_elementwise("power"), *const gradient = find_elementwise("power_backward_a");
  if (&kernel == power) {
    for (const Simpler& one : powers)
      if (one.exponent == number) return *find_elementwise(one.name);
  } else if (&kernel == gradient) {
    for (const Simpler& one : gradients)
      if (one.exponent == number) return *find_elementwise(one.name);
  }
  return kernel;
}

}  // namespace extensor
