// Resampling along an axis as Python functions.
#include "kernels/resample/resample.hpp"

#include "bindings/arguments.hpp"
#include "bindings/half.hpp"

namespace extensor {
namespace {

PyArrayObject* as_floats(PyObject* object) {
  PyArrayObject* array = as_array(object);
  return array != nullptr && PyArray_NDIM(array) > 0 && is_readable(array) && is_float(dtype_of(array)) ? array : nullptr;
}

// positions, weights, for an axis of `before` elements. False if they do not fit.
bool read_taps(PyObject* positions, PyObject* weights, int64_t before, Taps& taps) {
  PyArrayObject *places = as_array(positions), *scale = as_array(weights);
  if (places == nullptr || PyArray_TYPE(places) != NPY_INT64 || PyArray_NDIM(places) != 2 || !PyArray_ISCARRAY_RO(places)) return false;
  taps.taps = PyArray_DIM(places, 0), taps.after = PyArray_DIM(places, 1), taps.before = before;
  if (scale == nullptr ? weights != Py_None || taps.taps != 1
                       : PyArray_TYPE(scale) != NPY_FLOAT64 || !PyArray_SAMESHAPE(scale, places) || !PyArray_ISCARRAY_RO(scale))
    return false;
  taps.positions = data_of<const int64_t>(places);
  taps.weights = data_of<const double>(scale);
  for (int64_t i = 0; i < taps.taps * taps.after; ++i)
    if (taps.positions[i] < 0 || taps.positions[i] >= before) return false;
  return taps.taps > 0;
}

// The shape of `from` with another length along `axis`; the sizes around it.
void read_sizes(PyArrayObject* from, int axis, int64_t length, Taps& taps, npy_intp* shape) {
  const int ndim = PyArray_NDIM(from);
  for (int i = 0; i < ndim; ++i) shape[i] = i == axis ? npy_intp(length) : PyArray_DIM(from, i);
  taps.outer = product_of(shape, axis);
  taps.inner = product_of(shape + axis + 1, ndim - axis - 1);
}

// resample(x, positions, weights, axis)
PyObject* call_resample(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  if (count != 4) return not_covered();
  PyArrayObject* given = as_floats(args[0]);
  if (given == nullptr) return call_widened(call_resample, self, args, count);
  const int axis = read_axis(args[3], PyArray_NDIM(given));
  Taps taps;
  if (axis < 0 || !read_taps(args[1], args[2], PyArray_DIM(given, axis), taps)) return not_covered();
  npy_intp shape[NPY_MAXDIMS];
  read_sizes(given, axis, taps.after, taps, shape);
  const DType dtype = dtype_of(given);
  const Array x = dense(given);
  Array out = make_array(dtype, PyArray_NDIM(given), shape);
  if (PyArray_SIZE(out) > 0) {
    MaybeReleaseGil unlocked(double(taps.outer) * resample_ns(taps));
    const ResampleTable& table = EXTENSOR_SELECT(resample_table)();
    if (dtype == DType::float32) table.forward32(taps, data_of<float>(x), data_of<float>(out));
    else table.forward64(taps, data_of<double>(x), data_of<double>(out));
  }
  return reinterpret_cast<PyObject*>(out.release());
}

// resample_backward(g, length, positions, weights, axis)
PyObject* call_resample_backward(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  if (count != 5) return not_covered();
  PyArrayObject* given = as_floats(args[0]);
  if (given == nullptr) return call_widened(call_resample_backward, self, args, count);
  const int axis = read_axis(args[4], PyArray_NDIM(given));
  const int64_t length = read_below(args[1], INT32_MAX);
  Taps taps;
  if (axis < 0 || length < 1 || !read_taps(args[2], args[3], length, taps) || PyArray_DIM(given, axis) != taps.after) return not_covered();
  npy_intp shape[NPY_MAXDIMS];
  read_sizes(given, axis, length, taps, shape);
  const DType dtype = dtype_of(given);
  const Array g = dense(given);
  Array out = make_array(dtype, PyArray_NDIM(given), shape);
  if (PyArray_SIZE(out) > 0) {
    MaybeReleaseGil unlocked(double(taps.outer) * resample_ns(taps));
    const ResampleTable& table = EXTENSOR_SELECT(resample_table)();
    if (dtype == DType::float32) table.backward32(taps, data_of<float>(g), data_of<float>(out));
    else table.backward64(taps, data_of<double>(g), data_of<double>(out));
  }
  return reinterpret_cast<PyObject*>(out.release());
}

}  // namespace

void bind_resample(PyObject* kernels) {
  add_kernel(kernels, "resample", call_resample);
  add_kernel(kernels, "resample_backward", call_resample_backward);
}

}  // namespace extensor
