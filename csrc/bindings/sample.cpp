// Sampling of images as Python functions.
#include "kernels/resample/sample.hpp"

#include "bindings/half.hpp"
#include "bindings/operands.hpp"

namespace extensor {
namespace {

template <class T>
const SampleFunctions<T>& functions() {
  const SampleTable& table = EXTENSOR_SELECT(sample_table)();
  if constexpr (sizeof(T) == 4) return table.of32;
  else return table.of64;
}

// (batch, channels or taps, elements) in a dtype that is covered.
PyArrayObject* as_floats(PyObject* object) {
  PyArrayObject* array = as_array(object);
  return array != nullptr && PyArray_NDIM(array) == 3 && is_readable(array) && is_float(dtype_of(array)) ? array : nullptr;
}

// Positions and weights (taps, batch, points) beside an image (batch, channels, pixels). False if they do not fit.
bool read_samples(PyArrayObject* image, PyObject* positions, PyArrayObject* weights, Samples& samples) {
  PyArrayObject* places = as_array(positions);
  if (places == nullptr || PyArray_TYPE(places) != NPY_INT64 || PyArray_NDIM(places) != 3 || !PyArray_ISCARRAY_RO(places)) return false;
  if (dtype_of(weights) != dtype_of(image) || !PyArray_SAMESHAPE(weights, places)) return false;
  const npy_intp *shape = PyArray_DIMS(places), *of_image = PyArray_DIMS(image);
  samples = {of_image[0], of_image[1], of_image[2], shape[2], shape[0], data_of<const int64_t>(places)};
  if ((shape[0] != 1 && shape[0] != 4 && shape[0] != 8) || shape[1] != samples.batch || samples.pixels == 0) return false;
  bool below = true;
  for (int64_t i = 0; i < PyArray_SIZE(places); ++i) below &= samples.positions[i] < samples.pixels;
  return below;
}

// sample(image, positions, weights)
PyObject* call_sample(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  if (count != 3) return not_covered();
  PyArrayObject *image = as_floats(args[0]), *weights = as_floats(args[2]);
  if (image == nullptr || weights == nullptr) return call_widened(call_sample, self, args, count);
  const DType dtype = dtype_of(image);
  Samples samples;
  if (!read_samples(image, args[1], weights, samples)) return not_covered();
  const npy_intp shape[] = {npy_intp(samples.batch), npy_intp(samples.channels), npy_intp(samples.points)};
  const Array from = dense(image), by = dense(weights);
  Array out = make_array(dtype, 3, shape);
  if (PyArray_SIZE(out) > 0) {
    MaybeReleaseGil unlocked(double(samples.batch * samples.channels) * sample_ns(samples));
    with_type(dtype, [&](auto zero) {
      using T = decltype(zero);
      functions<T>().forward(samples, data_of<T>(from), data_of<T>(by), data_of<T>(out));
    });
  }
  return reinterpret_cast<PyObject*>(out.release());
}

// sample_backward(g, image, positions, weights, needs) -> (grad_image, grad_weights), None where not needed
PyObject* call_sample_backward(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  if (count != 5) return not_covered();
  PyArrayObject *upstream = as_floats(args[0]), *image = as_floats(args[1]), *weights = as_floats(args[3]);
  if (upstream == nullptr || image == nullptr || weights == nullptr) return call_widened(call_sample_backward, self, args, count);
  const DType dtype = dtype_of(image);
  Samples samples;
  bool needs[2];
  if (dtype_of(upstream) != dtype || !read_flags(args[4], needs, 2) || !read_samples(image, args[2], weights, samples)) return not_covered();
  const npy_intp shape[] = {npy_intp(samples.batch), npy_intp(samples.channels), npy_intp(samples.points)};
  if (!has_shape(upstream, 3, shape)) return not_covered();
  const Array g = dense(upstream), from = dense(image), by = dense(weights);
  Array grads[2] = {make_wanted(needs[0], dtype, 3, PyArray_DIMS(image)), make_wanted(needs[1], dtype, 3, PyArray_DIMS(weights))};
  {
    MaybeReleaseGil unlocked(2 * double(samples.batch * samples.channels) * sample_ns(samples));
    with_type(dtype, [&](auto zero) {
      using T = decltype(zero);
      if (needs[0] && PyArray_SIZE(grads[0]) > 0) functions<T>().image_gradient(samples, data_of<T>(g), data_of<T>(by), data_of<T>(grads[0]));
      if (needs[1] && PyArray_SIZE(grads[1]) > 0) functions<T>().weights_gradient(samples, data_of<T>(g), data_of<T>(from), data_of<T>(grads[1]));
    });
  }
  return tuple_of(grads);
}

}  // namespace

void bind_sample(PyObject* kernels) {
  add_kernel(kernels, "sample", call_sample);
  add_kernel(kernels, "sample_backward", call_sample_backward);
}

}  // namespace extensor
