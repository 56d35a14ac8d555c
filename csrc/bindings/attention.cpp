// Attention as Python functions.
#include "kernels/attention/attention.hpp"

#include <cmath>
#include <utility>
#include <vector>

#include "bindings/half.hpp"
#include "bindings/operands.hpp"
#include "kernels/attention/half.hpp"

namespace extensor {
namespace {

// Where the matrices of each batch element begin, for strides in elements.
std::vector<int64_t> offsets_of(PyArrayObject* lengths, int ndim, const npy_intp* strides) {
  std::vector<int64_t> offsets(size_t(product_of(PyArray_DIMS(lengths), ndim - 2)));
  for (size_t b = 0; b < offsets.size(); ++b) {
    npy_intp rest = npy_intp(b);
    for (int axis = ndim - 3; axis >= 0; --axis) {
      const npy_intp length = PyArray_DIM(lengths, axis);
      offsets[b] += rest % length * strides[axis], rest /= length;
    }
  }
  return offsets;
}

// An array of matrices with dense rows, wherever they lie.
struct MatrixArray {
  Array array;
  std::vector<int64_t> offsets;
  int64_t row = 0;

  // False if the rows are not dense.
  bool hold(Array given) {
    array = std::move(given);
    const int ndim = PyArray_NDIM(array);
    const npy_intp size = PyArray_ITEMSIZE(array);
    npy_intp strides[NPY_MAXDIMS];
    for (int axis = 0; axis < ndim; ++axis) {
      if (PyArray_STRIDE(array, axis) % size != 0) return false;
      strides[axis] = PyArray_STRIDE(array, axis) / size;
    }
    if (strides[ndim - 1] != 1 && PyArray_DIM(array, ndim - 1) != 1) return false;
    row = strides[ndim - 2];
    offsets = offsets_of(array, ndim, strides);
    return true;
  }

  template <class T>
  Matrices<T> matrices() const {
    return {static_cast<T*>(PyArray_DATA(array)), offsets.data(), row};
  }
};

// What both directions share: q, k and v with the same leading axes, and the mask by its strides.
struct AttentionOperands {
  MatrixArray of[4];  // q, k, v, g
  std::vector<int64_t> mask_offsets;
  DType dtype = DType::other;
  int ndim = 0;

  int64_t length(int i, int from_end) const { return PyArray_DIM(of[i].array, ndim - from_end); }
  template <class T>
  Matrices<const T> matrices(int i) const {
    return of[i].matrices<const T>();
  }
};

bool same_leading_axes(PyArrayObject* a, PyArrayObject* b) {
  if (PyArray_NDIM(a) != PyArray_NDIM(b)) return false;
  for (int axis = 0; axis < PyArray_NDIM(a) - 2; ++axis)
    if (PyArray_DIM(a, axis) != PyArray_DIM(b, axis)) return false;
  return true;
}

// Whether there are kernels for these elements as they are.
bool is_attended(DType dtype) { return is_float(dtype) || find_half_attention(dtype) != nullptr; }

template <class T>
const AttentionFunctions<T>& functions_of(DType dtype) {
  if constexpr (sizeof(T) == 2) return *find_half_attention(dtype);
  else return attention_functions<T>();
}

// run(T()) for the T that holds elements of a dtype that is attended.
template <class Run>
auto with_elements(DType dtype, const Run& run) {
  return is_half(dtype) ? run(uint16_t()) : with_type(dtype, run);
}

// Whether the elements of an array must be widened first.
bool must_widen(PyObject* argument) {
  PyArrayObject* array = as_array(argument);
  return array != nullptr && is_half(dtype_of(array)) && !is_attended(dtype_of(array));
}

bool take(AttentionOperands& operands, int index, PyObject* argument) {
  PyArrayObject* array = as_array(argument);
  if (array == nullptr || PyArray_SIZE(array) == 0 || !is_readable(array)) return false;
  if (index == 0) operands.dtype = dtype_of(array), operands.ndim = PyArray_NDIM(array);
  if (!is_attended(operands.dtype) || dtype_of(array) != operands.dtype || operands.ndim < 2) return false;
  if (index > 0 && !same_leading_axes(array, operands.of[0].array)) return false;
  return operands.of[index].hold(shared(array)) || operands.of[index].hold(dense(array));
}

// A new array of `shape` whose axes lie in memory in the order of those of `like`, if its rows stay dense: where a head was
// taken out of wider rows, the result lies in rows of that kind, and joining the heads again costs nothing.
Array make_array_like(DType dtype, int ndim, const npy_intp* shape, PyArrayObject* like) {
  int order[NPY_MAXDIMS];
  for (int i = 0; i < ndim; ++i) order[i] = i;
  for (int i = 1; i < ndim - 1; ++i)  // the last axis stays the last
    for (int j = i; j > 0 && PyArray_STRIDE(like, order[j - 1]) < PyArray_STRIDE(like, order[j]); --j)
      std::swap(order[j - 1], order[j]);
  npy_intp strides[NPY_MAXDIMS], step = npy_intp(item_size(dtype));
  for (int i = ndim - 1; i >= 0; --i) strides[order[i]] = step, step *= shape[order[i]];
  return make_array(dtype, ndim, shape, strides);
}

// Where the rows of the mask of each batch element begin, and the strides inside. False for masks of another kind.
template <class T>
bool read_mask(PyObject* argument, AttentionOperands& operands, Attention<T>& attention) {
  if (argument == Py_None) return true;
  PyArrayObject* mask = as_array(argument);
  if (mask == nullptr || !is_readable(mask) || PyArray_NDIM(mask) > operands.ndim) return false;
  const bool boolean = PyArray_TYPE(mask) == NPY_BOOL;
  if (!boolean && dtype_of(mask) != operands.dtype) return false;
  const npy_intp size = PyArray_ITEMSIZE(mask);
  npy_intp strides[NPY_MAXDIMS] = {};
  const int missing = operands.ndim - PyArray_NDIM(mask);
  for (int axis = missing; axis < operands.ndim; ++axis) {
    const npy_intp stride = PyArray_STRIDE(mask, axis - missing), length = PyArray_DIM(mask, axis - missing);
    const npy_intp whole = axis == operands.ndim - 1 ? attention.keys : PyArray_DIM(operands.of[0].array, axis);
    if (stride % size != 0 || (length != 1 && length != whole)) return false;
    strides[axis] = length == 1 ? 0 : stride / size;
  }
  operands.mask_offsets = offsets_of(operands.of[0].array, operands.ndim, strides);
  attention.mask_offsets = operands.mask_offsets.data();
  attention.mask_row = strides[operands.ndim - 2], attention.mask_column = strides[operands.ndim - 1];
  if (boolean) attention.allowed = static_cast<const uint8_t*>(PyArray_DATA(mask));
  else attention.added = static_cast<const T*>(PyArray_DATA(mask));
  return true;
}

// options: mask, causal, scale
template <class T>
bool read_attention(AttentionOperands& operands, PyObject* const* options, Attention<T>& attention) {
  bool causal;
  double factor;
  if (!read_flag(options[1], causal) || !read_number(options[2], factor)) return false;
  if (operands.length(1, 1) != operands.length(0, 1) || operands.length(2, 2) != operands.length(1, 2)) return false;
  attention = {product_of(PyArray_DIMS(operands.of[0].array), operands.ndim - 2), operands.length(0, 2),
               operands.length(1, 2), operands.length(0, 1), operands.length(2, 1), operands.matrices<T>(0),
               operands.matrices<T>(1), operands.matrices<T>(2), nullptr, nullptr, nullptr, 0, 0, causal, factor};
  return read_mask(options[0], operands, attention);
}

template <class T>
PyObject* run_forward(AttentionOperands& operands, PyObject* const* args) {
  Attention<T> attention;
  if (!read_attention(operands, args + 3, attention)) return not_covered();
  npy_intp shape[NPY_MAXDIMS];
  for (int axis = 0; axis < operands.ndim; ++axis) shape[axis] = PyArray_DIM(operands.of[0].array, axis);
  shape[operands.ndim - 1] = attention.values;
  MatrixArray out;
  out.hold(make_array_like(operands.dtype, operands.ndim, shape, operands.of[0].array));
  bool finite;
  {
    MaybeReleaseGil unlocked(attention_ns(attention));
    finite = functions_of<T>(operands.dtype).forward(attention, out.matrices<T>());
  }
  // What is hidden must not count even if it is inf or nan: the reference sees to that.
  return finite ? out.array.release() : not_covered();
}

// q, k, v, mask, causal, scale
PyObject* call_attention(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  AttentionOperands operands;
  if (count != 6) return not_covered();
  if (must_widen(args[0])) return call_widened(call_attention, self, args, count);
  for (int i = 0; i < 3; ++i)
    if (!take(operands, i, args[i])) return not_covered();
  return with_elements(operands.dtype, [&](auto zero) { return run_forward<decltype(zero)>(operands, args); });
}

template <class T>
PyObject* run_backward(AttentionOperands& operands, PyObject* const* args) {
  Attention<T> attention;
  bool needs[4];
  if (!read_attention(operands, args + 4, attention) || !read_flags(args[7], needs, 4) || needs[3] ||
      operands.length(3, 2) != attention.queries || operands.length(3, 1) != attention.values)
    return not_covered();
  MatrixArray grads[3];
  for (int i = 0; i < 3; ++i) {
    PyArrayObject* like = operands.of[i].array;
    if (needs[i]) grads[i].hold(make_array_like(operands.dtype, operands.ndim, PyArray_DIMS(like), like));
  }
  bool finite;
  {
    Matrices<T> to[3];
    for (int i = 0; i < 3; ++i)
      if (grads[i].array != nullptr) to[i] = grads[i].matrices<T>();
    MaybeReleaseGil unlocked(3 * attention_ns(attention));
    finite = functions_of<T>(operands.dtype).backward(attention, operands.matrices<T>(3), to[0], to[1], to[2]);
  }
  if (!finite) return not_covered();
  Array found[] = {std::move(grads[0].array), std::move(grads[1].array), std::move(grads[2].array), Array()};
  return tuple_of(found);
}

// g, q, k, v, mask, causal, scale, needs; the gradient of the mask is left to the reference
PyObject* call_attention_backward(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  AttentionOperands operands;
  if (count != 8) return not_covered();
  if (must_widen(args[0])) return call_widened(call_attention_backward, self, args, count);
  for (int i = 0; i < 4; ++i)
    if (!take(operands, i, args[i == 3 ? 0 : i + 1])) return not_covered();
  return with_elements(operands.dtype, [&](auto zero) { return run_backward<decltype(zero)>(operands, args); });
}

// Rows [batch, length, 3, heads, features] that hold queries, keys and values of all heads side by side.
struct PackedRows {
  int64_t batch = 0, length = 0, heads = 0, features = 0;
  std::vector<int64_t> parts, whole;  // where a head begins in these rows, and in rows [batch, length, heads, features]

  // False for anything that cannot be such rows.
  bool read(PyArrayObject* x, PyObject* count) {
    const int64_t given = PyArray_NDIM(x) == 3 ? read_below(count, PyArray_DIM(x, 2) + 1) : -1;
    if (given < 1 || PyArray_SIZE(x) == 0 || PyArray_DIM(x, 2) % (3 * given) != 0) return false;
    batch = PyArray_DIM(x, 0), length = PyArray_DIM(x, 1), heads = given, features = PyArray_DIM(x, 2) / (3 * given);
    for (int64_t i = 0; i < batch * heads; ++i) {
      const int64_t place = i % heads * features, row = i / heads * length;
      parts.push_back(row * 3 * heads * features + place), whole.push_back(row * heads * features + place);
    }
    return true;
  }
  template <class T>
  Matrices<T> part(T* data, int which) const {
    return {data + which * heads * features, parts.data(), 3 * heads * features};
  }
  template <class T>
  Matrices<T> all(T* data) const {
    return {data, whole.data(), heads * features};
  }
  template <class T>
  Attention<T> attention(const T* x, bool causal) const {
    return {batch * heads, length, length, features, features, part(x, 0), part(x, 1), part(x, 2), nullptr, nullptr, nullptr, 0, 0, causal,
            1 / std::sqrt(double(features))};
  }
};

// x, heads, causal;  back: g, x, heads, causal
PyObject* call_self_attention(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  const bool back = *kernel_context<bool>(self);
  if (count != (back ? 4 : 3)) return not_covered();
  PyArrayObject* x = as_array(args[back]);
  if (must_widen(args[back])) return call_widened(call_self_attention, self, args, count);
  if (x == nullptr || !is_attended(dtype_of(x))) return not_covered();
  const DType dtype = dtype_of(x);
  PackedRows rows;
  Operands<2> operands;
  bool causal;
  if (!rows.read(x, args[count - 2]) || !read_flag(args[count - 1], causal) || !operands.take(0, args[back], dtype) || (back && !operands.take(1, args[0], dtype))) return not_covered();
  const npy_intp shape[] = {rows.batch, rows.length, rows.heads * rows.features};
  if (back && (operands.array(1) == nullptr || !has_shape(operands.array(1), 3, shape))) return not_covered();
  Array out = make_array(dtype, 3, back ? PyArray_DIMS(x) : shape);
  const auto run = [&](auto zero) {
    using T = decltype(zero);
    const Attention<T> attention = rows.attention(operands.data<T>(0), causal);
    T* const to = data_of<T>(out);
    MaybeReleaseGil unlocked((back ? 3 : 1) * attention_ns(attention));
    if (!back) return functions_of<T>(dtype).forward(attention, rows.all(to));
    return functions_of<T>(dtype).backward(attention, rows.all(operands.data<T>(1)), rows.part(to, 0), rows.part(to, 1), rows.part(to, 2));
  };
  return with_elements(dtype, run) ? out.release() : not_covered();
}

constexpr bool forwards = false, backwards = true;

}  // namespace

void bind_attention(PyObject* kernels) {
  add_kernel(kernels, "scaled_dot_product_attention", call_attention);
  add_kernel(kernels, "scaled_dot_product_attention_backward", call_attention_backward);
  add_kernel(kernels, "self_attention", call_self_attention, &forwards);
  add_kernel(kernels, "self_attention_backward", call_self_attention, &backwards);
}

}  // namespace extensor
