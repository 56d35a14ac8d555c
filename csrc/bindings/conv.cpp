// Convolutions as Python functions. Arrays that are not C-contiguous are copied first.
#include "kernels/conv/conv.hpp"

#include <cstring>
#include <memory>
#include <type_traits>
#include <utility>

#include "bindings/half.hpp"
#include "bindings/held_weights.hpp"
#include "bindings/operands.hpp"
#include "kernels/conv/half.hpp"
#include "kernels/conv/maps.hpp"
#include "kernels/norm/norm.hpp"
#include "kernels/reduce/reduce.hpp"

namespace extensor {
namespace {

// Whether there are kernels for these elements as they are.
bool is_convolved(DType dtype) { return is_float(dtype) || has_half_conv(dtype); }

// The arrays of a convolution: images, images or weights, and a third that has `last_axes` axes or is None.
struct Arrays : Operands<3> {
  DType dtype = DType::other;

  bool read(PyObject* const* args, int last_axes) {
    PyArrayObject* first = as_array(args[0]);
    if (first == nullptr || args[1] == Py_None || !is_convolved(dtype = dtype_of(first))) return false;
    for (int i = 0; i < 3; ++i) {
      PyArrayObject* given = as_array(args[i]);
      if (given != nullptr && PyArray_NDIM(given) != (i == 2 ? last_axes : 4)) return false;
      if (!take(i, args[i], dtype)) return false;
    }
    return true;
  }
  const npy_intp* shape(int i) const { return PyArray_DIMS(array(i)); }
};

// stride, padding, dilation and groups, beside the shape of the weight and of the images on the side of the inputs.
// The size of the images on the other side follows. False if they do not fit together.
bool read_geometry(PyObject* const* options, const npy_intp* weight, const npy_intp* x, ConvShape& s) {
  constexpr int64_t most = INT32_MAX;
  int64_t padding[4];
  if (!read_pair(options[0], s.stride) || !read_wholes(options[1], padding, 4) || !read_pair(options[2], s.dilation)) return false;
  s.groups = read_below(options[3], most);
  if (s.groups < 1 || weight[1] * s.groups != x[1] || weight[0] % s.groups != 0) return false;
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
  if (is_half(dtype)) body(uint16_t());
  else with_type(dtype, body);
}

// Backwards, the kernel computes with zeros beyond the edge of an image. They do no harm unless the weight has an inf or
// nan to multiply them with; that is left to the reference.
bool is_finite(const Arrays& in, int i) {
  if (is_half(in.dtype)) {
    const auto* values = in.data<uint16_t>(i);
    bool finite = true;
    for (int64_t j = 0; j < PyArray_SIZE(in.array(i)); ++j) finite = finite && (values[j] & 0x7f80) != 0x7f80;
    return finite;
  }
  return with_type(in.dtype, [&](auto zero) {
    // by their bits, whose comparisons need not wait for each other as a sum of floating-point numbers does
    using Bits = std::conditional_t<sizeof(zero) == 4, uint32_t, uint64_t>;
    constexpr Bits exponent = Bits(sizeof(zero) == 4 ? 0x7f800000 : 0x7ff0000000000000);
    const auto* values = in.data<decltype(zero)>(i);
    const int64_t size = PyArray_SIZE(in.array(i));
    Bits strange = 0;
    for (int64_t j = 0; j < size; ++j) {
      Bits bits;
      std::memcpy(&bits, values + j, sizeof(bits));
      strange |= Bits((bits & exponent) == exponent);
    }
    return strange == 0;
  });
}

// x, weight, bias, stride, padding, dilation, groups; with "relu" behind them, max(y, 0) of the result.
PyObject* call_conv2d(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  const bool relu = count == 8 && is_text(args[7], "relu");
  if (count != 7 && !relu) return not_covered();
  Arrays in;
  if (!in.read(args, 1)) return relu ? not_covered() : call_widened(call_conv2d, self, args, count);
  if (relu && is_half(in.dtype)) return not_covered();
  const npy_intp *x = in.shape(0), *weight = in.shape(1);
  ConvShape s;
  if (!read_geometry(args + 3, weight, x, s) || (in.array(2) != nullptr && in.shape(2)[0] != weight[0])) return not_covered();
  if (is_half(in.dtype) && is_better_widened(s)) return call_widened(call_conv2d, self, args, count);
  const npy_intp y[] = {x[0], weight[0], s.y[0], s.y[1]};
  Array out = make_array(in.dtype, 4, y);
  const std::shared_ptr<KeptWeight> kept = held_weight(args[1], s, false);
  compute(in.dtype, s, [&](auto zero) {
    using T = decltype(zero);
    conv_forward(s, in.data<T>(0), in.data<T>(1), in.data<T>(2), data_of<T>(out), kept.get(), relu);
  });
  return out.release();
}

// What a fused convolution remembers: the weight of its last call, which it holds so that nobody writes to it, and what was made
// of it. Another weight or shape begins anew.
struct ConvMemory {
  Ref<> weight;
  ConvShape shape{};
  std::shared_ptr<KeptWeight> kept;

  bool knows(PyObject* other, const ConvShape& s) const {
    return kept != nullptr && weight.get() == other && std::memcmp(&shape, &s, sizeof(s)) == 0;
  }
};

// x, weight, bias, stride, padding, dilation, groups; weight, bias, mean, variance and eps of a batch norm in evaluation, with
// None for a mean if there is none, and then nothing to add; a tensor to add or None; whether relu follows; and how many results, which nobody needs,
// come before and behind: steps of a program in one.
PyObject* call_fused_conv2d(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  auto* memory = static_cast<ConvMemory*>(PyCapsule_GetPointer(self, nullptr));
  bool relu;
  double eps;
  if (count != 16 || !read_number(args[11], eps) || !read_flag(args[13], relu)) return not_covered();
  const int64_t before = read_below(args[14], 16), behind = read_below(args[15], 16);
  Arrays in;
  if (before < 0 || behind < 0 || !in.read(args, 1) || in.dtype != DType::float32) return not_covered();
  const npy_intp *x = in.shape(0), *weight = in.shape(1);
  ConvShape s;
  std::memset(&s, 0, sizeof(s));
  if (!read_geometry(args + 3, weight, x, s) || (in.array(2) != nullptr && in.shape(2)[0] != weight[0])) return not_covered();
  const npy_intp y[] = {x[0], weight[0], s.y[0], s.y[1]};
  Operands<5> norm;
  for (int i = 0; i < 5; ++i) {
    if (!norm.take(i, args[i == 4 ? 12 : 7 + i], in.dtype)) return not_covered();
    if (norm.array(i) != nullptr && !has_shape(norm.array(i), i == 4 ? 4 : 1, i == 4 ? y : y + 1)) return not_covered();
  }
  const bool normalises = norm.array(2) != nullptr;
  if (normalises != (norm.array(3) != nullptr) || (!normalises && norm.array(4) != nullptr)) return not_covered();
  Array out = make_array(in.dtype, 4, y);
  std::shared_ptr<KeptWeight> kept = memory->knows(args[1], s) ? memory->kept : std::make_shared<KeptWeight>();
  {
    MaybeReleaseGil unlocked(conv_ns(s, 4));
    float* const result = data_of<float>(out);
    conv_forward(s, in.data<float>(0), in.data<float>(1), in.data<float>(2), result, kept.get(), relu && !normalises);
    ChannelNorm<float> after{y[0], y[1], y[2] * y[3], result, norm.data<float>(0), norm.data<float>(1), norm.data<float>(2), norm.data<float>(3), false, 0, eps};
    after.added = norm.data<float>(4), after.relu = relu;
    if (normalises) norm_functions<float>().channels(after, result, nullptr, nullptr);
  }
  if (kept != memory->kept) memory->kept = kept, memory->shape = s, memory->weight = shared(args[1]);
  if (before + behind == 0) return out.release();
  Ref<> found = owned(PyTuple_New(before + 1 + behind));
  for (Py_ssize_t i = 0; i < before + 1 + behind; ++i) PyTuple_SET_ITEM(found.get(), i, i == before ? out.release() : Py_NewRef(Py_None));
  return found.release();
}

PyObject* make_fused_conv2d(PyObject*, PyObject* const*, Py_ssize_t count) {
  if (count != 0) return not_covered();
  auto memory = std::make_unique<ConvMemory>();
  Ref<> capsule = owned(PyCapsule_New(memory.get(), nullptr, [](PyObject* self) { delete static_cast<ConvMemory*>(PyCapsule_GetPointer(self, nullptr)); }));
  memory.release();
  return make_kernel(call_fused_conv2d, std::move(capsule)).release();
}

// x, weight, bias, stride, padding, dilation, groups, output_padding. The images x are those on the outputs' side.
PyObject* call_conv_transpose2d(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  if (count != 8) return not_covered();
  Arrays in;
  if (!in.read(args, 1)) return call_widened(call_conv_transpose2d, self, args, count);
  const npy_intp *x = in.shape(0), *weight = in.shape(1);
  ConvShape s;
  int64_t stride[2], padding[4], dilation[2], more[2];
  if (!read_pair(args[3], stride) || !read_wholes(args[4], padding, 4) || !read_pair(args[5], dilation) || !read_pair(args[7], more))
    return not_covered();
  const int64_t groups = read_below(args[6], INT32_MAX);
  if (groups < 1) return not_covered();
  npy_intp shape[4] = {x[0], weight[1] * groups, 0, 0};
  for (int d = 0; d < 2; ++d) {
    if (stride[d] > INT32_MAX || dilation[d] > INT32_MAX || more[d] > INT32_MAX) return not_covered();
    shape[2 + d] = (x[2 + d] - 1) * stride[d] + dilation[d] * (weight[2 + d] - 1) + 1 + more[d] - padding[2 * d] - padding[2 * d + 1];
  }
  if (!read_geometry(args + 3, weight, shape, s) || !is_finite(in, 1)) return not_covered();
  if (is_half(in.dtype) && is_better_widened(s)) return call_widened(call_conv_transpose2d, self, args, count);
  s.y[0] = x[2], s.y[1] = x[3];  // fewer than fit, if output_padding is a step or more
  Array out = make_array(in.dtype, 4, shape);
  compute(in.dtype, s, [&](auto zero) {
    using T = decltype(zero);
    conv_transposed(s, in.data<T>(0), in.data<T>(1), in.data<T>(2), data_of<T>(out));
  });
  return out.release();
}

// The sum of images over everything but the channels.
Array channel_sums(PyArrayObject* images, DType dtype) {
  const npy_intp* shape = PyArray_DIMS(images);
  Array sums = make_array(dtype, 1, shape + 1);
  if (PyArray_SIZE(images) == 0) {
    std::memset(PyArray_DATA(sums), 0, size_t(PyArray_NBYTES(sums)));
    return sums;
  }
  ReduceLayout layout;
  layout.outer = shape[1], layout.outer_stride = layout.length = shape[2] * shape[3];
  layout.pieces = shape[0], layout.piece_stride = shape[1] * layout.length;
  MaybeReleaseGil unlocked(reduce_ns(Reduction::sum, double(PyArray_SIZE(images))));
  if (is_half(dtype)) EXTENSOR_SELECT(reduce_table)().half(dtype, Reduction::sum, layout, PyArray_DATA(images), PyArray_DATA(sums));
  else reduce(dtype, Reduction::sum, layout, PyArray_DATA(images), PyArray_DATA(sums));
  return sums;
}

// g, x, weight, stride, padding, dilation, groups, needs
template <bool Transposed>
PyObject* call_backward(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  bool needs[3];
  if (count != 8 || args[2] == Py_None || !read_flags(args[7], needs, 3)) return not_covered();
  Arrays in;
  if (!in.read(args, 4)) return call_widened(call_backward<Transposed>, self, args, count);
  const npy_intp *g = in.shape(0), *x = in.shape(1), *weight = in.shape(2);
  ConvShape s;
  if (!read_geometry(args + 3, weight, Transposed ? g : x, s) || (!Transposed && !is_finite(in, 2))) return not_covered();
  if (!Transposed && (g[0] != x[0] || g[1] != weight[0] || g[2] != s.y[0] || g[3] != s.y[1])) return not_covered();
  if (is_half(in.dtype) && is_better_widened(s)) return call_widened(call_backward<Transposed>, self, args, count);
  if (Transposed) s.y[0] = x[2], s.y[1] = x[3];  // fewer than fit, if output_padding was a step or more
  Array grads[] = {make_wanted(needs[0], in.dtype, 4, x), make_wanted(needs[1], in.dtype, 4, weight), Array()};
  if (needs[2]) grads[2] = channel_sums(in.array(0), in.dtype);
  const std::shared_ptr<KeptWeight> kept = Transposed || !needs[0] ? nullptr : held_weight(args[2], s, true);
  bool covered = true;
  compute(in.dtype, s, [&](auto zero) {
    using T = decltype(zero);
    const T* upstream = in.data<T>(0);
    const T* input = in.data<T>(1);
    T *const grad_x = data_of<T>(grads[0]), *const grad_weight = data_of<T>(grads[1]);
    if (grad_x != nullptr) {
      if (Transposed) conv_forward<T>(s, upstream, in.data<T>(2), nullptr, grad_x);
      else conv_transposed<T>(s, upstream, in.data<T>(2), nullptr, grad_x, kept.get());
    }
    if (grad_weight != nullptr) covered = conv_weight_gradient(s, Transposed ? input : upstream, Transposed ? upstream : input, grad_weight);
  });
  return covered ? tuple_of(grads) : call_widened(call_backward<Transposed>, self, args, count);
}

}  // namespace

void bind_conv(PyObject* kernels) {
  add_kernel(kernels, "conv2d", call_conv2d);
  add_kernel(kernels, "conv2d_backward", call_backward<false>);
  add_kernel(kernels, "conv_transpose2d", call_conv_transpose2d);
  add_kernel(kernels, "conv_transpose2d_backward", call_backward<true>);
}

void bind_fused(PyObject* module_dict) { add_kernel(module_dict, "fused_conv2d", make_fused_conv2d); }

}  // namespace extensor
