// Pooling as Python functions.
#include "kernels/pooling/pooling.hpp"

#include <vector>

#include "bindings/arguments.hpp"
#include "bindings/half.hpp"

namespace extensor {
namespace {

// window, stride, padding and the size of the output, beside the shape of the images. False if they do not fit together.
bool read_pool(PyObject* const* options, const npy_intp* x, PoolShape& s) {
  if (!read_pair(options[0], s.size) || !read_pair(options[1], s.stride) || !read_pair(options[2], s.padding) || !read_pair(options[3], s.y))
    return false;
  s.planes = x[0] * x[1];
  for (int d = 0; d < 2; ++d) {
    s.x[d] = x[2 + d];
    if (s.size[d] < 1 || s.size[d] > INT32_MAX || s.stride[d] < 1 || s.stride[d] > INT32_MAX || s.padding[d] > s.size[d] / 2) return false;
    // Every window begins on the image or on the padding before it.
    if (s.y[d] > INT32_MAX || (s.y[d] - 1) * s.stride[d] >= s.x[d] + s.padding[d]) return false;
  }
  return true;
}

// Whether an array is as large as the output.
bool fits(PyArrayObject* array, const npy_intp* x, const PoolShape& s) {
  const npy_intp* shape = PyArray_DIMS(array);
  return shape[0] == x[0] && shape[1] == x[1] && shape[2] == s.y[0] && shape[3] == s.y[1];
}

// An array with four axes in a dtype that is covered.
PyArrayObject* as_images(PyObject* object) {
  PyArrayObject* array = as_array(object);
  return array != nullptr && PyArray_NDIM(array) == 4 && is_readable(array) && is_float(dtype_of(array)) ? array : nullptr;
}

// By what the sum of each window of a plane is divided: see the reference kernel.
std::vector<double> divisors_of(const PoolShape& s, bool count_include_pad) {
  std::vector<double> divisors(size_t(s.y[0] * s.y[1]));
  const auto length = [&](int d, int64_t i) {
    const int64_t start = i * s.stride[d] - s.padding[d], last = s.x[d] + (count_include_pad ? s.padding[d] : 0);
    const int64_t end = start + s.size[d] < last ? start + s.size[d] : last;
    return double(end - (count_include_pad || start > 0 ? start : 0));
  };
  for (int64_t i = 0; i < s.y[0]; ++i)
    for (int64_t j = 0; j < s.y[1]; ++j) divisors[size_t(i * s.y[1] + j)] = length(0, i) * length(1, j);
  return divisors;
}

// x, window, stride, padding, size
PyObject* call_max_pool2d(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  if (count != 5) return not_covered();
  PoolShape s;
  PyArrayObject* images = as_images(args[0]);
  if (images == nullptr) return call_widened(call_max_pool2d, self, args, count);
  if (!read_pool(args + 1, PyArray_DIMS(images), s)) return not_covered();
  const DType dtype = dtype_of(images);
  const npy_intp shape[] = {PyArray_DIM(images, 0), PyArray_DIM(images, 1), s.y[0], s.y[1]};
  const Array x = dense(images);
  Array out = make_array(dtype, 4, shape);
  if (PyArray_SIZE(out) > 0) {
    MaybeReleaseGil unlocked(pool_ns(s));
    const PoolTable& table = EXTENSOR_SELECT(pool_table)();
    if (dtype == DType::float32) table.max32(s, data_of<float>(x), data_of<float>(out));
    else table.max64(s, data_of<double>(x), data_of<double>(out));
  }
  return out.release();
}

// g, x, window, stride, padding, size
PyObject* call_max_pool2d_backward(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  if (count != 6) return not_covered();
  PoolShape s;
  PyArrayObject *upstream = as_images(args[0]), *images = as_images(args[1]);
  if (upstream == nullptr || images == nullptr) return call_widened(call_max_pool2d_backward, self, args, count);
  const DType dtype = dtype_of(images);
  if (dtype_of(upstream) != dtype || !read_pool(args + 2, PyArray_DIMS(images), s) || !fits(upstream, PyArray_DIMS(images), s))
    return not_covered();
  const Array g = dense(upstream), x = dense(images);
  Array out = make_array(dtype, 4, PyArray_DIMS(images));
  if (PyArray_SIZE(out) > 0) {
    MaybeReleaseGil unlocked(pool_ns(s));
    const PoolTable& table = EXTENSOR_SELECT(pool_table)();
    if (dtype == DType::float32) table.max_backward32(s, data_of<float>(g), data_of<float>(x), data_of<float>(out));
    else table.max_backward64(s, data_of<double>(g), data_of<double>(x), data_of<double>(out));
  }
  return out.release();
}

// x, window, stride, padding, size, count_include_pad
PyObject* call_avg_pool2d(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  if (count != 6) return not_covered();
  PoolShape s;
  PyArrayObject* images = as_images(args[0]);
  if (images == nullptr) return call_widened(call_avg_pool2d, self, args, count);
  bool with_padding;
  if (!read_pool(args + 1, PyArray_DIMS(images), s) || !read_flag(args[5], with_padding)) return not_covered();
  const DType dtype = dtype_of(images);
  const npy_intp shape[] = {PyArray_DIM(images, 0), PyArray_DIM(images, 1), s.y[0], s.y[1]};
  const Array x = dense(images);
  Array out = make_array(dtype, 4, shape);
  if (PyArray_SIZE(out) > 0) {
    const std::vector<double> divisors = divisors_of(s, with_padding);
    MaybeReleaseGil unlocked(pool_ns(s));
    const PoolTable& table = EXTENSOR_SELECT(pool_table)();
    if (dtype == DType::float32) table.mean32(s, divisors.data(), data_of<float>(x), data_of<float>(out));
    else table.mean64(s, divisors.data(), data_of<double>(x), data_of<double>(out));
  }
  return out.release();
}

// g, shape, window, stride, padding, size, count_include_pad
PyObject* call_avg_pool2d_backward(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  if (count != 7) return not_covered();
  PoolShape s;
  int ndim;
  npy_intp shape[NPY_MAXDIMS];
  PyArrayObject* upstream = as_images(args[0]);
  if (upstream == nullptr) return call_widened(call_avg_pool2d_backward, self, args, count);
  bool with_padding;
  if (!read_shape(args[1], ndim, shape) || ndim != 4 || !read_pool(args + 2, shape, s) || !fits(upstream, shape, s) ||
      !read_flag(args[6], with_padding))
    return not_covered();
  const DType dtype = dtype_of(upstream);
  const Array g = dense(upstream);
  Array out = make_array(dtype, 4, shape);
  if (PyArray_SIZE(out) > 0) {
    const std::vector<double> divisors = divisors_of(s, with_padding);
    MaybeReleaseGil unlocked(pool_ns(s));
    const PoolTable& table = EXTENSOR_SELECT(pool_table)();
    if (dtype == DType::float32) table.mean_backward32(s, divisors.data(), data_of<float>(g), data_of<float>(out));
    else table.mean_backward64(s, divisors.data(), data_of<double>(g), data_of<double>(out));
  }
  return out.release();
}

}  // namespace

void bind_pooling(PyObject* kernels) {
  add_kernel(kernels, "max_pool2d", call_max_pool2d);
  add_kernel(kernels, "max_pool2d_backward", call_max_pool2d_backward);
  add_kernel(kernels, "avg_pool2d", call_avg_pool2d);
  add_kernel(kernels, "avg_pool2d_backward", call_avg_pool2d_backward);
}

}  // namespace extensor
