// Convolutions as Python functions. Arrays that are not C-contiguous are copied first.
#include "kernels/conv/conv.hpp"

#include <cstring>

#include "bindings/arguments.hpp"
#include "bindings/half.hpp"
#include "kernels/reduce/reduce.hpp"

namespace extensor {
namespace {

// Three owned dense arrays of one floating dtype; null where an argument is None.
struct Arrays {
  PyArrayObject* item[3] = {};
  DType dtype = DType::other;

  ~Arrays() {
    for (PyArrayObject* array : item) Py_XDECREF(array);
  }
  const npy_intp* shape(int i) const { return PyArray_DIMS(item[i]); }
  template <class T>
  const T* data(int i) const {
    return item[i] == nullptr ? nullptr : static_cast<const T*>(PyArray_DATA(item[i]));
  }
};

enum class Ready { yes, no, failed };

// The first two have four axes, the third has `last_axes`.
Ready read_arrays(PyObject* const* args, int last_axes, Arrays& out) {
  for (int i = 0; i < 3; ++i) {
    if (i == 2 && args[i] == Py_None) continue;
    PyArrayObject* array = as_array(args[i]);
    if (array == nullptr || !is_readable(array) || PyArray_NDIM(array) != (i == 2 ? last_axes : 4)) return Ready::no;
    if (i == 0) out.dtype = dtype_of(array);
    if (!is_float(out.dtype) || dtype_of(array) != out.dtype) return Ready::no;
  }
  for (int i = 0; i < 3; ++i) {
    if (args[i] == Py_None) continue;
    out.item[i] = dense(args[i]);
    if (out.item[i] == nullptr) return Ready::failed;
  }
  return Ready::yes;
}

// The zeros before and after both directions: as the reference takes them, or as callers of the function give them.
bool read_padding(PyObject* object, int64_t* padding) {
  int count;
  npy_intp sides[NPY_MAXDIMS];
  if (PyTuple_Check(object) && read_shape(object, count, sides) && count == 4) {
    for (int i = 0; i < 4; ++i) padding[i] = sides[i];
    return true;
  }
  int64_t pair[2];
  if (!read_pair(object, pair)) return false;
  padding[0] = padding[1] = pair[0], padding[2] = padding[3] = pair[1];
  return true;
}

// stride, padding, dilation and groups, beside the shape of the weight and of the images on the side of the inputs.
// The size of the images on the other side follows. False if they do not fit together.
bool read_geometry(PyObject* const* options, const npy_intp* weight, const npy_intp* x, ConvShape& s) {
  constexpr int64_t most = INT32_MAX;
  int64_t padding[4];
  if (!read_pair(options[0], s.stride) || !read_padding(options[1], padding) || !read_pair(options[2], s.dilation)) return false;
  s.groups = PyLong_Check(options[3]) ? PyLong_AsLong(options[3]) : 0;
  if (s.groups < 1) {
    PyErr_Clear();
    return false;
  }
  if (s.groups > most || weight[1] * s.groups != x[1] || weight[0] % s.groups != 0) return false;
  s.images = x[0], s.inputs = weight[1], s.outputs = weight[0] / s.groups;
  for (int d = 0; d < 2; ++d) {
    s.x[d] = x[2 + d], s.kernel[d] = weight[2 + d], s.padding[d] = padding[2 * d];
    const bool usual = s.stride[d] >= 1 && s.stride[d] <= most && s.dilation[d] >= 1 && s.dilation[d] <= most &&
                       padding[2 * d] <= most && padding[2 * d + 1] <= most && s.kernel[d] >= 1;
    if (!usual) return false;
    const int64_t room = s.x[d] + padding[2 * d] + padding[2 * d + 1] - s.dilation[d] * (s.kernel[d] - 1) - 1;
    if (room < 0) return false;
    s.y[d] = room / s.stride[d] + 1;
  }
  return true;
}

// body(T()) for the T of a dtype, without the interpreter lock if there is much to do.
template <class Body>
void compute(DType dtype, const ConvShape& s, const Body& body) {
  MaybeReleaseGil unlocked(conv_ns(s, int(item_size(dtype))));
  if (dtype == DType::float32) body(float());
  else body(double());
}

template <class T>
T* data_of(PyObject* array) {
  return static_cast<T*>(PyArray_DATA(reinterpret_cast<PyArrayObject*>(array)));
}

PyObject* new_object(DType dtype, int ndim, const npy_intp* shape) {
  return reinterpret_cast<PyObject*>(new_array(dtype, ndim, shape));
}

// Backwards, the kernel computes with zeros beyond the edge of an image. They do no harm unless the weight has an inf or
// nan to multiply them with; that is left to the reference.
bool is_finite(const Arrays& in, int i) {
  const int64_t size = PyArray_SIZE(in.item[i]);
  const auto all = [&](auto zero) {
    const auto* values = in.data<decltype(zero)>(i);
    for (int64_t j = 0; j < size; ++j) zero += values[j] * 0;
    return zero == 0;
  };
  return in.dtype == DType::float32 ? all(float()) : all(double());
}

// x, weight, bias, stride, padding, dilation, groups
PyObject* call_conv2d(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  if (count != 7) return not_covered();
  Arrays in;
  const Ready ready = read_arrays(args, 1, in);
  if (ready == Ready::no) return call_widened(call_conv2d, self, args, count);
  if (ready == Ready::failed) return nullptr;
  const npy_intp *x = in.shape(0), *weight = in.shape(1);
  ConvShape s;
  if (!read_geometry(args + 3, weight, x, s) || (in.item[2] != nullptr && in.shape(2)[0] != weight[0])) return not_covered();
  const npy_intp y[] = {x[0], weight[0], s.y[0], s.y[1]};
  PyObject* out = new_object(in.dtype, 4, y);
  if (out == nullptr) return nullptr;
  compute(in.dtype, s, [&](auto zero) {
    using T = decltype(zero);
    conv_forward(s, in.data<T>(0), in.data<T>(1), in.data<T>(2), data_of<T>(out));
  });
  return out;
}

// x, weight, bias, stride, padding, dilation, groups, output_padding. The images x are those on the outputs' side.
PyObject* call_conv_transpose2d(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  if (count != 8) return not_covered();
  Arrays in;
  const Ready ready = read_arrays(args, 1, in);
  if (ready == Ready::no) return call_widened(call_conv_transpose2d, self, args, count);
  if (ready == Ready::failed) return nullptr;
  const npy_intp *x = in.shape(0), *weight = in.shape(1);
  ConvShape s;
  int64_t stride[2], padding[4], dilation[2], more[2];
  if (!read_pair(args[3], stride) || !read_padding(args[4], padding) || !read_pair(args[5], dilation) || !read_pair(args[7], more))
    return not_covered();
  const long groups = PyLong_AsLong(args[6]);
  npy_intp shape[4] = {x[0], weight[1] * groups, 0, 0};
  for (int d = 0; d < 2; ++d)
    shape[2 + d] = (x[2 + d] - 1) * stride[d] + dilation[d] * (weight[2 + d] - 1) + 1 + more[d] - padding[2 * d] - padding[2 * d + 1];
  if (!read_geometry(args + 3, weight, shape, s) || !is_finite(in, 1)) return not_covered();
  s.y[0] = x[2], s.y[1] = x[3];  // fewer than fit, if output_padding is a step or more
  PyObject* out = new_object(in.dtype, 4, shape);
  if (out == nullptr) return nullptr;
  compute(in.dtype, s, [&](auto zero) {
    using T = decltype(zero);
    conv_transposed(s, in.data<T>(0), in.data<T>(1), in.data<T>(2), data_of<T>(out));
  });
  return out;
}

// The sum of images over everything but the channels.
PyObject* channel_sums(PyArrayObject* images, DType dtype) {
  const npy_intp* shape = PyArray_DIMS(images);
  PyObject* sums = new_object(dtype, 1, shape + 1);
  if (sums == nullptr) return nullptr;
  if (PyArray_SIZE(images) == 0) {
    std::memset(data_of<char>(sums), 0, size_t(shape[1]) * item_size(dtype));
    return sums;
  }
  ReduceLayout layout;
  layout.outer = shape[1], layout.outer_stride = layout.length = shape[2] * shape[3];
  layout.pieces = shape[0], layout.piece_stride = shape[1] * layout.length;
  MaybeReleaseGil unlocked(reduce_ns(Reduction::sum, double(PyArray_SIZE(images))));
  reduce(dtype, Reduction::sum, layout, PyArray_DATA(images), data_of<char>(sums));
  return sums;
}

// g, x, weight, stride, padding, dilation, groups, needs
template <bool Transposed>
PyObject* call_backward(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  bool needs[3];
  if (count != 8 || !read_flags(args[7], needs, 3)) return not_covered();
  Arrays in;
  const Ready ready = read_arrays(args, 4, in);
  if (ready == Ready::no || in.item[2] == nullptr) return call_widened(call_backward<Transposed>, self, args, count);
  if (ready == Ready::failed) return nullptr;
  const npy_intp *g = in.shape(0), *x = in.shape(1), *weight = in.shape(2);
  ConvShape s;
  if (!read_geometry(args + 3, weight, Transposed ? g : x, s) || (!Transposed && !is_finite(in, 2))) return not_covered();
  if (!Transposed && (g[0] != x[0] || g[1] != weight[0] || g[2] != s.y[0] || g[3] != s.y[1])) return not_covered();
  if (Transposed) s.y[0] = x[2], s.y[1] = x[3];  // fewer than fit, if output_padding was a step or more
  PyObject* grads = PyTuple_New(3);
  if (grads == nullptr) return nullptr;
  for (int i = 0; i < 3; ++i) {
    PyObject* grad = Py_NewRef(Py_None);
    if (needs[i])
      Py_SETREF(grad, i == 2 ? channel_sums(in.item[0], in.dtype) : new_object(in.dtype, 4, i == 0 ? x : weight));
    if (grad == nullptr) {
      Py_DECREF(grads);
      return nullptr;
    }
    PyTuple_SET_ITEM(grads, i, grad);
  }
  PyObject *grad_x = PyTuple_GET_ITEM(grads, 0), *grad_weight = PyTuple_GET_ITEM(grads, 1);
  compute(in.dtype, s, [&](auto zero) {
    using T = decltype(zero);
    const T* upstream = in.data<T>(0);
    const T* input = in.data<T>(1);
    if (grad_x != Py_None) {
      if (Transposed) conv_forward<T>(s, upstream, in.data<T>(2), nullptr, data_of<T>(grad_x));
      else conv_transposed<T>(s, upstream, in.data<T>(2), nullptr, data_of<T>(grad_x));
    }
    if (grad_weight != Py_None)
      conv_weight_gradient(s, Transposed ? input : upstream, Transposed ? upstream : input, data_of<T>(grad_weight));
  });
  return grads;
}

}  // namespace

void bind_conv(PyObject* kernels) {
  add_kernel(kernels, "conv2d", call_conv2d);
  add_kernel(kernels, "conv2d_backward", call_backward<false>);
  add_kernel(kernels, "conv_transpose2d", call_conv_transpose2d);
  add_kernel(kernels, "conv_transpose2d_backward", call_backward<true>);
}

}  // namespace extensor
