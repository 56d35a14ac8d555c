// The reference: float64 by the vector mathematics of the C library, at most 4 ulp of float64 from the exact value, which is
// 2^-27 ulp of float32. The formulas below lose at most a few bits of that, also where a gradient passes through zero: there
// float64 resolves 2^-24 of the smallest value that a float32 comes to, and 0.06 ulp are the most that the table may be off by.
#include "reference.hpp"

extern "C" {
#define VECTORISED(name) _Pragma("omp declare simd notinbranch") double name(double) noexcept;
VECTORISED(exp)
VECTORISED(expm1)
VECTORISED(log)
VECTORISED(log1p)
VECTORISED(log2)
VECTORISED(log10)
VECTORISED(sin)
VECTORISED(cos)
VECTORISED(tan)
VECTORISED(asin)
VECTORISED(acos)
VECTORISED(atan)
VECTORISED(sinh)
VECTORISED(cosh)
VECTORISED(tanh)
VECTORISED(erf)
VECTORISED(erfc)
double sqrt(double) noexcept;
double fabs(double) noexcept;
double floor(double) noexcept;
double ceil(double) noexcept;
double trunc(double) noexcept;
double rint(double) noexcept;
double copysign(double, double) noexcept;
double fmin(double, double) noexcept;
double fmax(double, double) noexcept;
}

namespace {

// An upstream gradient with all bits of a float32 in use, so that a product with it rounds.
constexpr double g = 1.61803400516510009765625;
constexpr double eps = double(1e-10f);  // the guard of a denominator, as the kernels see it
constexpr double selu_alpha = 1.6732632423543772848170429916717, selu_scale = 1.0507009873554804934193349852946;
constexpr double root_half = 0.70710678118654752440, root_two_pi_inverse = 0.39894228040143267794;
constexpr double gelu_scale = 1.5957691216057308, gelu_cubic = 0.044715;

inline double guarded(double d) { return fabs(d) < eps ? copysign(eps, d) : d; }
inline double sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }
inline double limited(double x, double limit) { return fmax(-limit, fmin(limit, x)); }
// u with gelu_tanh(x) = x sigmoid(u), and du/dx
inline double gate(double x) { return gelu_scale * (x + gelu_cubic * x * x * x); }
inline double gate_slope(double x) { return gelu_scale * (1.0 + 3.0 * gelu_cubic * x * x); }
// tanh(softplus(x)) = n/(n + 2), n = e (e + 2), e = exp(x)
inline double mish_gate(double x) {
  const double e = exp(fmin(x, 40.0)), n = e * (e + 2.0);
  return n / (n + 2.0);
}
inline double mish_slope(double x) {
  const double e = exp(fmin(x, 40.0)), n = e * (e + 2.0), d = n + 2.0;
  return n / d + x * (4.0 * e * (e + 1.0)) / (d * d);
}
inline double silu_slope(double x) {
  const double s = sigmoid(x);
  return s * (1.0 + x * sigmoid(-x));
}
inline double gelu_slope(double x) { return 0.5 * erfc(-x * root_half) + x * (root_two_pi_inverse * exp(-0.5 * x * x)); }
inline double gelu_tanh_slope(double x) {
  const double u = gate(x), s = sigmoid(u);
  return s * (1.0 + x * sigmoid(-u) * gate_slope(x));
}

#define REFERENCE(name, formula)                                                  \
  void name##_values(const double* __restrict input, double* __restrict out, int64_t n) { \
    _Pragma("omp simd") for (int64_t i = 0; i < n; ++i) {                          \
      const double x = input[i];                                                   \
      out[i] = (formula);                                                          \
    }                                                                              \
  }

REFERENCE(negate, -x)
REFERENCE(abs, fabs(x))
REFERENCE(abs_backward, x > 0 ? g : x < 0 ? -g : 0.0)
REFERENCE(sign, x > 0 ? 1.0 : x < 0 ? -1.0 : 0.0)
REFERENCE(ceil, ceil(x))
REFERENCE(floor, floor(x))
REFERENCE(round, rint(x))
REFERENCE(trunc, trunc(x))
REFERENCE(square, x * x)
REFERENCE(square_backward, 2.0 * g * x)
REFERENCE(reciprocal, 1.0 / x)
REFERENCE(reciprocal_backward, -g / (guarded(x) * guarded(x)))
REFERENCE(exp, exp(x))
REFERENCE(exp_backward, g * x)
REFERENCE(expm1, expm1(x))
REFERENCE(expm1_backward, g * exp(x))
REFERENCE(log, log(x))
REFERENCE(log_backward, g / guarded(x))
REFERENCE(log1p, log1p(x))
REFERENCE(log1p_backward, g / (1.0 + x))
REFERENCE(log2, log2(x))
REFERENCE(log2_backward, g / (guarded(x) * 0.69314718055994531))
REFERENCE(log10, log10(x))
REFERENCE(log10_backward, g / (guarded(x) * 2.3025850929940457))
REFERENCE(sqrt, sqrt(x))
REFERENCE(sqrt_backward, g / (2.0 * guarded(x)))
REFERENCE(rsqrt, 1.0 / sqrt(x))
REFERENCE(rsqrt_backward, -0.5 * g * limited(x, 1.0 / eps) * limited(x, 1.0 / eps) * limited(x, 1.0 / eps))
REFERENCE(sin, sin(x))
REFERENCE(sin_backward, g * cos(x))
REFERENCE(cos, cos(x))
REFERENCE(cos_backward, -g * sin(x))
REFERENCE(tan, tan(x))
REFERENCE(tan_backward, g / (cos(x) * cos(x)))
REFERENCE(asin, asin(x))
REFERENCE(asin_backward, g / sqrt((1.0 - x) * (1.0 + x)))
REFERENCE(acos, acos(x))
REFERENCE(acos_backward, -g / sqrt((1.0 - x) * (1.0 + x)))
REFERENCE(atan, atan(x))
REFERENCE(atan_backward, g / (1.0 + x * x))
REFERENCE(sinh, sinh(x))
REFERENCE(sinh_backward, g * cosh(x))
REFERENCE(cosh, cosh(x))
REFERENCE(cosh_backward, g * sinh(x))
REFERENCE(tanh, tanh(x))
REFERENCE(tanh_backward, g * ((1.0 - x) * (1.0 + x)))
REFERENCE(erf, erf(x))
REFERENCE(erf_backward, g * 1.1283791670955126 * exp(-x * x))
REFERENCE(relu, x > 0 ? x : 0.0)
REFERENCE(relu_backward, x > 0 ? g : 0.0)
REFERENCE(leaky_relu, x > 0 ? x : 0.125 * x)
REFERENCE(leaky_relu_backward, x > 0 ? g : 0.125 * g)
REFERENCE(sigmoid, sigmoid(x))
REFERENCE(sigmoid_backward, g * (x * (1.0 - x)))
REFERENCE(gelu, x * (0.5 * erfc(-x * root_half)))
REFERENCE(gelu_backward, g * gelu_slope(x))
REFERENCE(gelu_tanh, x * sigmoid(gate(x)))
REFERENCE(gelu_tanh_backward, g * gelu_tanh_slope(limited(x, 40.0)))
REFERENCE(silu, x * sigmoid(x))
REFERENCE(silu_backward, g * silu_slope(limited(x, 600.0)))
REFERENCE(mish, x * mish_gate(x))
REFERENCE(mish_backward, g * mish_slope(limited(x, 600.0)))
REFERENCE(elu, x > 0 ? x : expm1(x))
REFERENCE(elu_backward, x > 0 ? g : g * exp(x))
REFERENCE(selu, selu_scale * (x > 0 ? x : selu_alpha * expm1(x)))
REFERENCE(selu_backward, g * selu_scale * (x > 0 ? 1.0 : selu_alpha * exp(x)))
REFERENCE(softplus, x > 20.0 ? x : log1p(exp(x)))
REFERENCE(softplus_backward, x > 20.0 ? g : g * sigmoid(x))
REFERENCE(relu6, fmin(6.0, fmax(0.0, x)))
REFERENCE(relu6_backward, x > 0 && x < 6.0 ? g : 0.0)
REFERENCE(hard_sigmoid, fmin(6.0, fmax(0.0, x + 3.0)) / 6.0)
REFERENCE(hard_sigmoid_backward, x > -3.0 && x < 3.0 ? g / 6.0 : 0.0)
REFERENCE(hard_swish, x * (fmin(6.0, fmax(0.0, x + 3.0)) / 6.0))
REFERENCE(hard_swish_backward, x >= 3.0 ? g : x > -3.0 ? g * ((2.0 * x + 3.0) / 6.0) : 0.0)
REFERENCE(hard_tanh, fmin(1.0, fmax(-1.0, x)))
REFERENCE(hard_tanh_backward, x > -1.0 && x < 1.0 ? g : 0.0)

}  // namespace

#define FUNCTION(name, ...) {#name, 1, {__VA_ARGS__}, 0.0, name##_values}
#define GRADIENT(name, ...) {#name "_backward", 2, {__VA_ARGS__}, g, name##_backward_values}

const Reference references[] = {
    FUNCTION(negate), FUNCTION(abs), GRADIENT(abs), FUNCTION(sign), FUNCTION(ceil), FUNCTION(floor), FUNCTION(round), FUNCTION(trunc),
    FUNCTION(square), GRADIENT(square), FUNCTION(reciprocal), GRADIENT(reciprocal, eps),
    FUNCTION(exp), GRADIENT(exp), FUNCTION(expm1), GRADIENT(expm1), FUNCTION(log), GRADIENT(log, eps), FUNCTION(log1p), GRADIENT(log1p),
    FUNCTION(log2), GRADIENT(log2, eps), FUNCTION(log10), GRADIENT(log10, eps), FUNCTION(sqrt), GRADIENT(sqrt, eps),
    FUNCTION(rsqrt), GRADIENT(rsqrt, eps),
    FUNCTION(sin), GRADIENT(sin), FUNCTION(cos), GRADIENT(cos), FUNCTION(tan), GRADIENT(tan), FUNCTION(asin), GRADIENT(asin),
    FUNCTION(acos), GRADIENT(acos), FUNCTION(atan), GRADIENT(atan), FUNCTION(sinh), GRADIENT(sinh), FUNCTION(cosh), GRADIENT(cosh),
    FUNCTION(tanh), GRADIENT(tanh), FUNCTION(erf), GRADIENT(erf),
    FUNCTION(sigmoid), GRADIENT(sigmoid), FUNCTION(gelu), GRADIENT(gelu), FUNCTION(gelu_tanh), GRADIENT(gelu_tanh),
    FUNCTION(silu), GRADIENT(silu), FUNCTION(mish), GRADIENT(mish), FUNCTION(elu, 1.0), GRADIENT(elu, 1.0), FUNCTION(selu), GRADIENT(selu),
    FUNCTION(softplus, 1.0, 20.0), GRADIENT(softplus, 1.0, 20.0), FUNCTION(relu), GRADIENT(relu), FUNCTION(leaky_relu, 0.125),
    GRADIENT(leaky_relu, 0.125), FUNCTION(relu6), GRADIENT(relu6), FUNCTION(hard_sigmoid), GRADIENT(hard_sigmoid),
    FUNCTION(hard_swish), GRADIENT(hard_swish), FUNCTION(hard_tanh, -1.0, 1.0), GRADIENT(hard_tanh, -1.0, 1.0),
};
const int reference_count = sizeof references / sizeof references[0];
