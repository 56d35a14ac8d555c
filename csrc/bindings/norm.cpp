// Normalisation as Python functions.
#include "kernels/norm/norm.hpp"

#include <cmath>
#include <utility>

#include "bindings/half.hpp"
#include "bindings/operands.hpp"
#include "core/workspace.hpp"

namespace extensor {
namespace {

bool read_eps(PyObject* object, double& eps) { return read_number(object, eps) && eps >= 0 && std::isfinite(eps); }

// How many axes are normalised: those of `lengths`, if x ends with them and `eps` is one; else 0.
int normalised_axes(PyArrayObject* x, PyObject* lengths, PyObject* eps, double& number) {
  npy_intp shape[NPY_MAXDIMS];
  int count;
  if (!read_shape(lengths, count, shape) || count == 0 || count > PyArray_NDIM(x) || !PyArray_CompareLists(PyArray_DIMS(x) + PyArray_NDIM(x) - count, shape, count)) return 0;
  return read_eps(eps, number) ? count : 0;
}

// Whether a weight or a bias, if there is one, has the last `count` axes of x.
bool has_last_axes(PyArrayObject* array, PyArrayObject* x, int count) {
  return array == nullptr || has_shape(array, count, PyArray_DIMS(x) + PyArray_NDIM(x) - count);
}

Array widened_or_none(PyArrayObject* array) { return array == nullptr ? Array() : widened(array); }

// layer_norm: x, normalized_shape, weight, bias, eps.  rms_norm: x, normalized_shape, weight, eps.
PyObject* call_rows(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  const bool centre = *kernel_context<bool>(self);
  if (count != (centre ? 5 : 4)) return not_covered();
  PyArrayObject* x = as_array(args[0]);
  if (x == nullptr) return not_covered();
  const DType dtype = dtype_of(x);
  if (!is_float(dtype) && !is_half(dtype)) return not_covered();
  Operands<3> operands;
  double eps;
  const int inner = normalised_axes(x, args[1], args[count - 1], eps);
  if (inner == 0 || !operands.take(0, args[0], dtype) || !operands.take(1, args[2], dtype) ||
      (centre && !operands.take(2, args[3], dtype)) || !has_last_axes(operands.array(1), x, inner) || !has_last_axes(operands.array(2), x, inner))
    return not_covered();
  Array out = make_array(dtype, PyArray_NDIM(x), PyArray_DIMS(x));
  if (PyArray_SIZE(out) == 0) return out.release();
  const int64_t rows = product_of(PyArray_DIMS(x), PyArray_NDIM(x) - inner), n = PyArray_SIZE(x) / rows;
  const Array weight = widened_or_none(operands.array(1)), bias = widened_or_none(operands.array(2));
  with_type(computed_in(dtype), [&](auto zero) {
    using T = decltype(zero);
    MaybeReleaseGil unlocked(double(rows * n) * norm_ns);
    norm_functions<T>().rows({rows, n, dtype, operands.data<void>(0), data_of<const T>(weight), data_of<const T>(bias), eps, centre}, PyArray_DATA(out));
  });
  return out.release();
}

// g, x, normalized_shape, weight, eps, needs
PyObject* call_rows_backward(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  const bool centre = *kernel_context<bool>(self);
  if (count != 6) return not_covered();
  PyArrayObject* x = as_array(args[1]);
  if (x == nullptr) return not_covered();
  const DType dtype = dtype_of(x);
  if (!is_float(dtype) && !is_half(dtype)) return not_covered();
  Operands<3> operands;
  double eps;
  bool needs[3] = {};
  const int inner = normalised_axes(x, args[2], args[4], eps), start = PyArray_NDIM(x) - inner;
  if (inner == 0 || PyArray_SIZE(x) == 0 || !read_flags(args[5], needs, centre ? 3 : 2) || !operands.take(0, args[1], dtype) ||
      !operands.take(1, args[3], dtype) || !operands.take(2, args[0], dtype) || operands.data<char>(2) == nullptr ||
      !has_last_axes(operands.array(1), x, inner) || !has_last_axes(operands.array(2), x, PyArray_NDIM(x)))
    return not_covered();
  if (needs[1] && operands.array(1) == nullptr) return not_covered();  // whoever asks must know that there is none
  const npy_intp* shape = PyArray_DIMS(x);
  const DType summed = computed_in(dtype);
  Array grads[] = {make_wanted(needs[0], dtype, PyArray_NDIM(x), shape), make_wanted(needs[1], summed, inner, shape + start),
                   make_wanted(needs[2], summed, inner, shape + start)};
  const int64_t rows = product_of(shape, start), n = PyArray_SIZE(x) / rows;
  const Array weight = widened_or_none(operands.array(1));
  with_type(summed, [&](auto zero) {
    using T = decltype(zero);
    const RowNorm<T> norm{rows, n, dtype, operands.data<void>(0), data_of<const T>(weight), nullptr, eps, centre};
    MaybeReleaseGil unlocked(double(rows * n) * norm_ns * 3);
    norm_functions<T>().rows_backward(norm, operands.data<void>(2), data_of<void>(grads[0]), data_of<T>(grads[1]), data_of<T>(grads[2]));
  });
  for (int i = 1; i < 3; ++i)
    if (grads[i] != nullptr) grads[i] = narrowed(std::move(grads[i]), dtype);
  return tuple_of(grads, centre ? 3 : 2);
}

// A channel is read in pieces of neighbours; very short ones are left to the reference.
bool covers_channels(PyArrayObject* x) {
  return x != nullptr && is_float(dtype_of(x)) && PyArray_NDIM(x) > 2 && PyArray_SIZE(x) > 0 &&
         product_of(PyArray_DIMS(x) + 2, PyArray_NDIM(x) - 2) >= 4;
}

// Whether the arrays, if there are any, have one value for each channel of x.
template <int most>
bool are_vectors(const Operands<most>& operands, std::initializer_list<int> indices, npy_intp channels) {
  for (int i : indices)
    if (operands.array(i) != nullptr && !has_shape(operands.array(i), 1, &channels)) return false;
  return true;
}

// x, weight, bias, running_mean, running_var, training, momentum, eps. Two more join what follows: a tensor that is added, or None, and
// whether relu comes last.
PyObject* call_channels(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  PyArrayObject* x = count == 8 || count == 10 ? as_array(args[0]) : nullptr;
  if (x != nullptr && is_half(dtype_of(x))) return count == 8 ? call_widened(call_channels, self, args, count) : not_covered();
  if (!covers_channels(x)) return not_covered();
  const DType dtype = dtype_of(x);
  Operands<6> operands;
  for (int i = 0; i < 5; ++i)
    if (!operands.take(i, args[i], dtype)) return not_covered();
  bool relu = false;
  if (count == 10 && (!operands.take(5, args[8], dtype) || !has_last_axes(operands.array(5), x, PyArray_NDIM(x)) || !read_flag(args[9], relu)))
    return not_covered();
  double momentum, eps;
  bool training;
  if (!read_flag(args[5], training) || !read_number(args[6], momentum) || !read_number(args[7], eps)) return not_covered();
  const npy_intp* shape = PyArray_DIMS(x);
  if (!are_vectors(operands, {1, 2, 3, 4}, shape[1]) || (!training && (args[3] == Py_None || args[4] == Py_None))) return not_covered();
  const bool keeps_mean = training && args[3] != Py_None, keeps_var = training && args[4] != Py_None;
  Array found[] = {make_array(dtype, PyArray_NDIM(x), shape), make_wanted(keeps_mean, dtype, 1, shape + 1),
                   make_wanted(keeps_var, dtype, 1, shape + 1)};
  with_type(dtype, [&](auto zero) {
    using T = decltype(zero);
    const ChannelNorm<T> norm{shape[0], shape[1], product_of(shape + 2, PyArray_NDIM(x) - 2), operands.data<T>(0), operands.data<T>(1),
                              operands.data<T>(2), operands.data<T>(3), operands.data<T>(4), training, momentum, eps, operands.data<T>(5), relu};
    MaybeReleaseGil unlocked(double(PyArray_SIZE(x)) * norm_ns * 2);
    norm_functions<T>().channels(norm, data_of<T>(found[0]), data_of<T>(found[1]), data_of<T>(found[2]));
  });
  for (int i = 1; i < 3; ++i)
    if (!training && args[2 + i] != Py_None) found[i] = shared(as_array(args[2 + i]));
  return tuple_of(found);
}

// g, g_mean, g_var, x, weight, running_mean, running_var, training, momentum, eps, needs. Three more join what follows, on its way
// back: what relu returned; a gradient that is added to g first, or None; and whether what then arrives here is wanted as a fourth
// result. There g_mean and g_var may be None, for zeros.
PyObject* call_channels_backward(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  const bool joined = count == 14;
  PyArrayObject* x = count == 11 || joined ? as_array(args[3]) : nullptr;
  if (x != nullptr && is_half(dtype_of(x))) return joined ? not_covered() : call_widened(call_channels_backward, self, args, count);
  if (!covers_channels(x)) return not_covered();
  const DType dtype = dtype_of(x);
  Operands<9> operands;
  for (int i = 0; i < 7; ++i)
    if (!operands.take(i, args[i], dtype)) return not_covered();
  bool keeps = false;
  if (joined) {
    for (int i = 7; i < 9; ++i)
      if (!operands.take(i, args[4 + i], dtype) || !has_last_axes(operands.array(i), x, PyArray_NDIM(x))) return not_covered();
    if (operands.array(7) == nullptr || !read_flag(args[13], keeps)) return not_covered();
  }
  double momentum, eps;
  bool training, needs[3];
  if (!read_flag(args[7], training) || !read_number(args[8], momentum) || !read_number(args[9], eps) || !read_flags(args[10], needs, 3))
    return not_covered();
  const npy_intp* shape = PyArray_DIMS(x);
  const int known = training ? 1 : 5;  // the gradients of the new statistics, or the statistics
  if (operands.array(0) == nullptr || !has_last_axes(operands.array(0), x, PyArray_NDIM(x)) || !are_vectors(operands, {1, 2, 4, 5, 6}, shape[1]) ||
      (!(joined && training) && (operands.array(known) == nullptr || operands.array(known + 1) == nullptr)))
    return not_covered();
  Array grads[] = {make_wanted(needs[0], dtype, PyArray_NDIM(x), shape), make_wanted(needs[1], dtype, 1, shape + 1),
                   make_wanted(needs[2], dtype, 1, shape + 1), make_wanted(keeps, dtype, PyArray_NDIM(x), shape)};
  with_type(dtype, [&](auto zero) {
    using T = decltype(zero);
    const ChannelNorm<T> norm{shape[0], shape[1], product_of(shape + 2, PyArray_NDIM(x) - 2), operands.data<T>(3), operands.data<T>(4),
                              nullptr, operands.data<T>(5), operands.data<T>(6), training, momentum, eps};
    const ChannelGradient<T> arriving{operands.data<T>(0), operands.data<T>(7), operands.data<T>(8), data_of<T>(grads[keeps ? 3 : 0])};
    MaybeReleaseGil unlocked(double(PyArray_SIZE(x)) * norm_ns * 3);
    norm_functions<T>().channels_backward(norm, arriving, operands.data<T>(1), operands.data<T>(2), data_of<T>(grads[0]), data_of<T>(grads[1]),
                                          data_of<T>(grads[2]));
  });
  return tuple_of(grads, joined ? 4 : 3);
}

// The number of groups, which must divide the channels; 0 for anything else.
int64_t read_groups(PyObject* object, int64_t channels) {
  const int64_t groups = read_below(object, channels + 1);
  return groups > 0 && channels % groups == 0 ? groups : 0;
}

// x, groups, weight, bias, eps
PyObject* call_groups(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  PyArrayObject* x = count == 5 ? as_array(args[0]) : nullptr;
  if (x == nullptr) return not_covered();
  if (!is_float(dtype_of(x))) return call_widened(call_groups, self, args, count);
  if (!covers_channels(x)) return not_covered();
  const DType dtype = dtype_of(x);
  const npy_intp* shape = PyArray_DIMS(x);
  const int64_t groups = read_groups(args[1], shape[1]);
  Operands<3> operands;
  double eps;
  if (groups == 0 || !read_eps(args[4], eps) || !operands.take(0, args[0], dtype) || !operands.take(1, args[2], dtype) ||
      !operands.take(2, args[3], dtype) || !are_vectors(operands, {1, 2}, shape[1]))
    return not_covered();
  Array out = make_array(dtype, PyArray_NDIM(x), shape);
  with_type(dtype, [&](auto zero) {
    using T = decltype(zero);
    const GroupNorm<T> norm{shape[0], shape[1], product_of(shape + 2, PyArray_NDIM(x) - 2), groups, operands.data<T>(0), operands.data<T>(1),
                            operands.data<T>(2), eps};
    MaybeReleaseGil unlocked(double(PyArray_SIZE(x)) * norm_ns);
    group_norm_functions<T>().forward(norm, data_of<T>(out));
  });
  return out.release();
}

// g, x, groups, weight, eps, needs
PyObject* call_groups_backward(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  PyArrayObject* x = count == 6 ? as_array(args[1]) : nullptr;
  if (x == nullptr) return not_covered();
  if (!is_float(dtype_of(x))) return call_widened(call_groups_backward, self, args, count);
  if (!covers_channels(x)) return not_covered();
  const DType dtype = dtype_of(x);
  const npy_intp* shape = PyArray_DIMS(x);
  const int64_t groups = read_groups(args[2], shape[1]);
  Operands<3> operands;
  double eps;
  bool needs[3];
  if (groups == 0 || !read_eps(args[4], eps) || !read_flags(args[5], needs, 3) || !operands.take(0, args[0], dtype) ||
      !operands.take(1, args[1], dtype) || !operands.take(2, args[3], dtype) || operands.array(0) == nullptr ||
      !has_last_axes(operands.array(0), x, PyArray_NDIM(x)) || !are_vectors(operands, {2}, shape[1]))
    return not_covered();
  if (needs[1] && operands.array(2) == nullptr) return not_covered();  // whoever asks must know that there is none
  Array grads[] = {make_wanted(needs[0], dtype, PyArray_NDIM(x), shape), make_wanted(needs[1], dtype, 1, shape + 1),
                   make_wanted(needs[2], dtype, 1, shape + 1)};
  Workspace<double> sums(shape[0] * shape[1] * 2);
  with_type(dtype, [&](auto zero) {
    using T = decltype(zero);
    const GroupNorm<T> norm{shape[0], shape[1], product_of(shape + 2, PyArray_NDIM(x) - 2), groups, operands.data<T>(1), operands.data<T>(2),
                            nullptr, eps};
    MaybeReleaseGil unlocked(double(PyArray_SIZE(x)) * norm_ns * 3);
    group_norm_functions<T>().backward(norm, operands.data<T>(0), sums.data(), data_of<T>(grads[0]), data_of<T>(grads[1]), data_of<T>(grads[2]));
  });
  return tuple_of(grads);
}

constexpr bool centres = true, keeps_mean = false;

}  // namespace

void bind_norm(PyObject* kernels) {
  add_kernel(kernels, "layer_norm", call_rows, &centres);
  add_kernel(kernels, "layer_norm_backward", call_rows_backward, &centres);
  add_kernel(kernels, "rms_norm", call_rows, &keeps_mean);
  add_kernel(kernels, "rms_norm_backward", call_rows_backward, &keeps_mean);
  add_kernel(kernels, "group_norm", call_groups);
  add_kernel(kernels, "group_norm_backward", call_groups_backward);
  add_kernel(kernels, "batch_norm", call_channels);
  add_kernel(kernels, "batch_norm_backward", call_channels_backward);
}

}  // namespace extensor
