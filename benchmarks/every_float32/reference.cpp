// The reference: float64 by the vector mathematics of the C library, at most 4 ulp of float64 from the exact value, which is
// 2^-27 ulp of float32. The formulas below lose at most a few bits of that, also where a gradient passes through zero: there
// float64 resolves 2^-24 of the smallest value that a float32 comes to, and 0.06 ulp are the most that the table may be off by.
//
// The vector functions leave arguments out of their usual range to scalar ones, which take ten times as long. So arguments
// beyond what float32 can tell apart are held at a bound, and angles are reduced here (angles.hpp).
#include "reference.hpp"

#include "angles.hpp"

extern "C" {
#define VECTORISED(name) _Pragma("omp declare simd notinbranch") double name(double) noexcept;
VECTORISED(exp)
VECTORISED(expm1)
VECTORISED(log)
VECTORISED(log1p)
VECTORISED(log2)
VECTORISED(log10)
VECTORISED(asin)
VECTORISED(acos)
VECTORISED(atan)
VECTORISED(sinh)
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
}

namespace {

// An upstream gradient with all bits of a float32 in use, so that a product with it rounds.
constexpr double g = 1.61803400516510009765625;
constexpr double eps = double(1e-10f);  // the guard of a denominator, as the kernels see it
constexpr double selu_alpha = 1.6732632423543772848170429916717, selu_scale = 1.0507009873554804934193349852946;
constexpr double root_half = 0.70710678118654752440, root_two_pi_inverse = 0.39894228040143267794;
constexpr double gelu_scale = 1.5957691216057308, gelu_cubic = 0.044715;

inline double guarded(double d) { return fabs(d) < eps ? copysign(eps, d) : d; }
inline double sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }  // |x| <= 600
inline double chosen(bool condition, double a, double b) { return condition ? a : b; }  // evaluates both
inline double between(double low, double x, double high) { return x < low ? low : x > high ? high : x; }
inline double limited(double x, double limit) { return between(-limit, x, limit); }
constexpr double nan = __builtin_nan(""), infinity = __builtin_inf();
// y = f(x) where x > edge, else as a logarithm there. Both branches are evaluated, so that a loop can be a vector's.
inline double above(double edge, double x, double y) { return x > edge ? y : x < edge ? nan : -infinity; }
inline double inside(double x, double y) { return fabs(x) <= 1.0 ? y : nan; }
inline double positive(double x) { return x > 0.0 ? x : 1.0; }
inline double sine_of(double x) { return fabs(x) <= 1.0 ? x : 0.0; }
// u with gelu_tanh(x) = x sigmoid(u), held where the sigmoid is 0 or 1, and du/dx
inline double gate(double x) { return limited(gelu_scale * (x + gelu_cubic * x * x * x), 600.0); }
inline double gate_slope(double x) { return gelu_scale * (1.0 + 3.0 * gelu_cubic * x * x); }
// tanh(softplus(x)) = n/(n + 2), n = e (e + 2), e = exp(x)
inline double mish_gate(double exp_x) {
  const double e = exp_x < 1e17 ? exp_x : 1e17, n = e * (e + 2.0);
  return n / (n + 2.0);
}
inline double mish_slope(double x, double exp_x) {
  const double e = exp_x < 1e17 ? exp_x : 1e17, n = e * (e + 2.0), d = n + 2.0;
  return n / d + x * (4.0 * e * (e + 1.0)) / (d * d);
}
inline double silu_slope(double x, double e) { return e / (1.0 + e) * (1.0 + x / (1.0 + e)); }
inline double gelu_slope(double x, double erfc_x) { return 0.5 * erfc_x + x * (root_two_pi_inverse * exp(-0.5 * x * x)); }
inline double gelu_tanh_slope(double x) {
  const double e = exp(gate(x));  // of u
  return e / (1.0 + e) * (1.0 + x / (1.0 + e) * gate_slope(x));
}

#define REFERENCE(name, formula)                                        \
  void name##_values(const Block& given, double* __restrict out) {      \
    _Pragma("omp simd") for (int64_t i = 0; i < block; ++i) {           \
      [[maybe_unused]] const double x = given.x[i];                     \
      out[i] = (formula);                                               \
    }                                                                   \
  }
#define E given.exp[i]  // of x

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
REFERENCE(exp, E)
REFERENCE(exp_backward, g * x)
REFERENCE(expm1, given.expm1[i])
REFERENCE(expm1_backward, g * E)
REFERENCE(log, above(0.0, x, log(positive(x))))
REFERENCE(log_backward, g / guarded(x))
REFERENCE(log1p, above(-1.0, x, log1p(x > -1.0 ? x : 0.0)))
REFERENCE(log1p_backward, g / (1.0 + x))
REFERENCE(log2, above(0.0, x, log2(positive(x))))
REFERENCE(log2_backward, g / (guarded(x) * 0.69314718055994531))
REFERENCE(log10, above(0.0, x, log10(positive(x))))
REFERENCE(log10_backward, g / (guarded(x) * 2.3025850929940457))
REFERENCE(sqrt, sqrt(x))
REFERENCE(sqrt_backward, g / (2.0 * guarded(x)))
REFERENCE(rsqrt, 1.0 / sqrt(x))
REFERENCE(rsqrt_backward, -0.5 * g * limited(x, 1.0 / eps) * limited(x, 1.0 / eps) * limited(x, 1.0 / eps))
REFERENCE(sin, given.sin[i])
REFERENCE(sin_backward, g * given.cos[i])
REFERENCE(cos, given.cos[i])
REFERENCE(cos_backward, -g * given.sin[i])
REFERENCE(tan, given.sin[i] / given.cos[i])
REFERENCE(tan_backward, g / (given.cos[i] * given.cos[i]))
REFERENCE(asin, inside(x, asin(sine_of(x))))
REFERENCE(asin_backward, g / sqrt((1.0 - x) * (1.0 + x)))
REFERENCE(acos, inside(x, acos(sine_of(x))))
REFERENCE(acos_backward, -g / sqrt((1.0 - x) * (1.0 + x)))
REFERENCE(atan, atan(x))
REFERENCE(atan_backward, g / (1.0 + x * x))
REFERENCE(sinh, given.sinh[i])
REFERENCE(sinh_backward, g * (0.5 * (E + 1.0 / E)))
REFERENCE(cosh, 0.5 * (E + 1.0 / E))
REFERENCE(cosh_backward, g * given.sinh[i])
REFERENCE(tanh, tanh(x))
REFERENCE(tanh_backward, g * ((1.0 - x) * (1.0 + x)))
REFERENCE(erf, erf(x))
REFERENCE(erf_backward, g * 1.1283791670955126 * exp(-limited(x, 20.0) * limited(x, 20.0)))
REFERENCE(relu, x > 0 ? x : 0.0)
REFERENCE(relu_backward, x > 0 ? g : 0.0)
REFERENCE(leaky_relu, x > 0 ? x : 0.125 * x)
REFERENCE(leaky_relu_backward, x > 0 ? g : 0.125 * g)
REFERENCE(sigmoid, E / (1.0 + E))
REFERENCE(sigmoid_backward, g * (x * (1.0 - x)))
REFERENCE(gelu, x * (0.5 * given.erfc[i]))
REFERENCE(gelu_backward, g * gelu_slope(limited(x, 34.0), given.erfc[i]))
REFERENCE(gelu_tanh, x * sigmoid(gate(x)))
REFERENCE(gelu_tanh_backward, g * gelu_tanh_slope(limited(x, 40.0)))
REFERENCE(silu, x * (E / (1.0 + E)))
REFERENCE(silu_backward, g * silu_slope(limited(x, 600.0), E))
REFERENCE(mish, x * mish_gate(E))
REFERENCE(mish_backward, g * mish_slope(limited(x, 600.0), E))
REFERENCE(elu, x > 0 ? x : given.expm1[i])
REFERENCE(elu_backward, x > 0 ? g : g * E)
REFERENCE(selu, selu_scale * (x > 0 ? x : selu_alpha * given.expm1[i]))
REFERENCE(selu_backward, g * selu_scale * (x > 0 ? 1.0 : selu_alpha * E))
REFERENCE(softplus, chosen(x > 20.0, x, log1p(E < 1e10 ? E : 1e10)))
REFERENCE(softplus_backward, x > 20.0 ? g : g * (E / (1.0 + E)))
REFERENCE(relu6, between(0.0, x, 6.0))
REFERENCE(relu6_backward, x > 0 && x < 6.0 ? g : 0.0)
REFERENCE(hard_sigmoid, between(0.0, x + 3.0, 6.0) / 6.0)
REFERENCE(hard_sigmoid_backward, x > -3.0 && x < 3.0 ? g / 6.0 : 0.0)
REFERENCE(hard_swish, x * (between(0.0, x + 3.0, 6.0) / 6.0))
REFERENCE(hard_swish_backward, x >= 3.0 ? g : x > -3.0 ? g * ((2.0 * x + 3.0) / 6.0) : 0.0)
REFERENCE(hard_tanh, limited(x, 1.0))
REFERENCE(hard_tanh_backward, x > -1.0 && x < 1.0 ? g : 0.0)

}  // namespace

void fill(Block& given) {
  _Pragma("omp simd") for (int64_t i = 0; i < block; ++i) {
    const double x = given.x[i];
    given.exp[i] = exp(limited(x, 600.0));
    given.expm1[i] = expm1(limited(x, 600.0));
    given.sinh[i] = sinh(limited(x, 600.0));
    given.erfc[i] = erfc(-limited(x, 34.0) * root_half);
  }
  angles::sines_and_cosines(given.x, given.sin, given.cos, block);
}

#define FUNCTION(name, parity, ...) {#name, 1, Parity::parity, {__VA_ARGS__}, 0.0, name##_values}
#define GRADIENT(name, parity, ...) {#name "_backward", 2, Parity::parity, {__VA_ARGS__}, g, name##_backward_values}

const Reference references[] = {
    FUNCTION(negate, odd),
    FUNCTION(abs, even), GRADIENT(abs, odd),
    FUNCTION(sign, odd),
    FUNCTION(ceil, none),
    FUNCTION(floor, none),
    FUNCTION(round, odd),
    FUNCTION(trunc, odd),
    FUNCTION(square, even), GRADIENT(square, odd),
    FUNCTION(reciprocal, odd), GRADIENT(reciprocal, even, eps),
    FUNCTION(exp, none), GRADIENT(exp, odd),
    FUNCTION(expm1, none), GRADIENT(expm1, none),
    FUNCTION(log, none), GRADIENT(log, odd, eps),
    FUNCTION(log1p, none), GRADIENT(log1p, none),
    FUNCTION(log2, none), GRADIENT(log2, odd, eps),
    FUNCTION(log10, none), GRADIENT(log10, odd, eps),
    FUNCTION(sqrt, none), GRADIENT(sqrt, odd, eps),
    FUNCTION(rsqrt, none), GRADIENT(rsqrt, odd, eps),
    FUNCTION(sin, odd), GRADIENT(sin, even),
    FUNCTION(cos, even), GRADIENT(cos, odd),
    FUNCTION(tan, odd), GRADIENT(tan, even),
    FUNCTION(asin, odd), GRADIENT(asin, even),
    FUNCTION(acos, none), GRADIENT(acos, even),
    FUNCTION(atan, odd), GRADIENT(atan, even),
    FUNCTION(sinh, odd), GRADIENT(sinh, even),
    FUNCTION(cosh, even), GRADIENT(cosh, odd),
    FUNCTION(tanh, odd), GRADIENT(tanh, even),
    FUNCTION(erf, odd), GRADIENT(erf, even),
    FUNCTION(sigmoid, none), GRADIENT(sigmoid, none),
    FUNCTION(gelu, none), GRADIENT(gelu, none),
    FUNCTION(gelu_tanh, none), GRADIENT(gelu_tanh, none),
    FUNCTION(silu, none), GRADIENT(silu, none),
    FUNCTION(mish, none), GRADIENT(mish, none),
    FUNCTION(elu, none, 1.0), GRADIENT(elu, none, 1.0),
    FUNCTION(selu, none), GRADIENT(selu, none),
    FUNCTION(softplus, none, 1.0, 20.0), GRADIENT(softplus, none, 1.0, 20.0),
    FUNCTION(relu, none), GRADIENT(relu, none),
    FUNCTION(leaky_relu, none, 0.125), GRADIENT(leaky_relu, none, 0.125),
    FUNCTION(relu6, none), GRADIENT(relu6, none),
    FUNCTION(hard_sigmoid, none), GRADIENT(hard_sigmoid, none),
    FUNCTION(hard_swish, none), GRADIENT(hard_swish, none),
    FUNCTION(hard_tanh, odd, -1.0, 1.0), GRADIENT(hard_tanh, even, -1.0, 1.0),
};
const int reference_count = sizeof references / sizeof references[0];
