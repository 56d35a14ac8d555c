// Matrix products as Python functions.
#include "bindings/operands.hpp"
#include "core/workspace.hpp"
#include "kernels/convert/convert.hpp"
#include "kernels/matmul/half.hpp"
#include "kernels/matmul/matmul.hpp"
#include "kernels/reduce/reduce.hpp"

namespace extensor {
namespace {

bool is_multiplied(DType dtype) { return is_float(dtype) || is_half(dtype); }

// Of this dtype, and laid out so that strides count whole elements.
bool is_covered(PyArrayObject* array, DType dtype) {
  if (array == nullptr || dtype_of(array) != dtype || !is_readable(array)) return false;
  const npy_intp size = npy_intp(item_size(dtype));
  for (int axis = 0; axis < PyArray_NDIM(array); ++axis)
    if (PyArray_STRIDE(array, axis) % size != 0) return false;
  return true;
}

// One operand as a stack of matrices: strides count elements.
struct Stack {
  const char* data;
  int64_t rows, columns, row, column;
  int batch_ndim;
  npy_intp batch_shape[NPY_MAXDIMS], batch[NPY_MAXDIMS];

  Stack transposed() const {
    Stack other = *this;
    other.rows = columns, other.columns = rows, other.row = column, other.column = row;
    return other;
  }
};

// A vector on the left of a product is a row, on the right a column.
Stack stack_of(PyArrayObject* array, bool vector_is_column) {
  Stack stack;
  const npy_intp size = PyArray_ITEMSIZE(array);
  const int ndim = PyArray_NDIM(array);
  stack.data = PyArray_BYTES(array);
  stack.rows = stack.columns = stack.row = stack.column = 1;
  if (ndim == 1) {
    (vector_is_column ? stack.rows : stack.columns) = PyArray_DIM(array, 0);
    (vector_is_column ? stack.row : stack.column) = PyArray_STRIDE(array, 0) / size;
  } else {
    stack.rows = PyArray_DIM(array, ndim - 2), stack.columns = PyArray_DIM(array, ndim - 1);
    stack.row = PyArray_STRIDE(array, ndim - 2) / size, stack.column = PyArray_STRIDE(array, ndim - 1) / size;
  }
  // The stride of an axis of length 1 means nothing; as if dense it leads to the fast ways.
  if (stack.columns == 1) stack.column = 1;
  if (stack.rows == 1) stack.row = stack.columns;
  stack.batch_ndim = ndim > 2 ? ndim - 2 : 0;
  for (int axis = 0; axis < stack.batch_ndim; ++axis) {
    stack.batch_shape[axis] = PyArray_DIM(array, axis);
    stack.batch[axis] = PyArray_STRIDE(array, axis) / size;
  }
  return stack;
}

// The batch axes become rows if their strides continue those of the rows. False if they do not.
bool merge_batch_into_rows(Stack& stack) {
  int64_t rows = stack.rows, row = stack.row;
  for (int axis = stack.batch_ndim - 1; axis >= 0; --axis) {
    if (stack.batch_shape[axis] == 1) continue;
    if (rows == 1) row = stack.batch[axis];
    else if (stack.batch[axis] != rows * row) return false;
    rows *= stack.batch_shape[axis];
  }
  stack.rows = rows, stack.row = row, stack.batch_ndim = 0;
  return true;
}

int64_t batch_size(const Stack& stack) {
  int64_t size = 1;
  for (int axis = 0; axis < stack.batch_ndim; ++axis) size *= stack.batch_shape[axis];
  return size;
}

// Gives `stack` the batch axes of `shape`, to which its own broadcast, with stride 0 where it is repeated.
void broadcast_batch(Stack& stack, int ndim, const npy_intp* shape) {
  const int missing = ndim - stack.batch_ndim;
  for (int axis = ndim - 1; axis >= 0; --axis) {
    const npy_intp length = axis < missing ? 1 : stack.batch_shape[axis - missing];
    stack.batch[axis] = length == 1 ? 0 : stack.batch[axis - missing];
    stack.batch_shape[axis] = shape[axis];
  }
  stack.batch_ndim = ndim;
}

// a[batch] @ b[batch] over the batch axes of `shape`; the result is dense. multiply(batch, a, b, c) multiplies a batch of matrices
// with one common step, from these elements on.
template <class Multiply>
void multiply_stacks(const Stack& a, const Stack& b, int ndim, const npy_intp* shape, const Multiply& multiply) {
  // As many of the inner batch axes as have one common step go into one call.
  struct {
    int64_t count = 1, a = 0, b = 0, c = 0;
  } batch;
  batch.c = a.rows * b.columns;
  int outer = ndim;
  for (; outer > 0; --outer) {
    const int axis = outer - 1;
    if (shape[axis] == 1) continue;
    if (batch.count == 1) batch.a = a.batch[axis], batch.b = b.batch[axis];
    else if (a.batch[axis] != batch.a * batch.count || b.batch[axis] != batch.b * batch.count) break;
    batch.count *= shape[axis];
  }
  int64_t repeats = 1;
  for (int axis = 0; axis < outer; ++axis) repeats *= shape[axis];
  npy_intp position[NPY_MAXDIMS] = {};
  int64_t from_a = 0, from_b = 0;
  for (int64_t i = 0; i < repeats; ++i) {
    multiply(batch, from_a, from_b, i * batch.count * batch.c);
    for (int axis = outer - 1; axis >= 0; --axis) {
      from_a += a.batch[axis], from_b += b.batch[axis];
      if (++position[axis] < shape[axis]) break;
      from_a -= shape[axis] * a.batch[axis], from_b -= shape[axis] * b.batch[axis];
      position[axis] = 0;
    }
  }
}

// What follows a product.
struct Extras {
  const void* column_bias = nullptr;  // of the dtype of the product
  Activation activation = Activation::none;
};

template <class T>
void multiply_floats(const Stack& a, const Stack& b, int ndim, const npy_intp* shape, T* out, const Extras& extras) {
  Product<T> product{a.rows, b.columns, a.columns, reinterpret_cast<const T*>(a.data), a.row, a.column,
                     reinterpret_cast<const T*>(b.data), b.row, b.column, out, b.columns};
  product.column_bias = static_cast<const T*>(extras.column_bias);
  product.activation = extras.activation;
  multiply_stacks(a, b, ndim, shape, [&](const auto& batch, int64_t from_a, int64_t from_b, int64_t to) {
    Product<T> here = product;
    here.a += from_a, here.b += from_b, here.c += to;
    matmul(here, Batch<T>{batch.count, batch.a, batch.b, batch.c});
  });
}

void multiply_halves(DType dtype, const Stack& a, const Stack& b, int ndim, const npy_intp* shape, uint16_t* out, const Extras& extras) {
  HalfProduct product{a.rows, b.columns, a.columns, reinterpret_cast<const uint16_t*>(a.data), a.row, a.column,
                      reinterpret_cast<const uint16_t*>(b.data), b.row, b.column, out, b.columns};
  Workspace<float, 4096> bias(extras.column_bias == nullptr ? 0 : b.columns);
  if (extras.column_bias != nullptr) {
    EXTENSOR_SELECT(find_conversion)(dtype, DType::float32)(extras.column_bias, bias.data(), b.columns);
    product.column_bias = bias.data();
  }
  product.activation = extras.activation;
  multiply_stacks(a, b, ndim, shape, [&](const auto& batch, int64_t from_a, int64_t from_b, int64_t to) {
    HalfProduct here = product;
    here.a += from_a, here.b += from_b, here.c = out + to;
    half_matmul(dtype, here, HalfBatch{batch.count, batch.a, batch.b, batch.c});
  });
}

// A new array of `shape` that holds a @ b over the batch axes of `shape` (its first `batch_ndim` axes).
Array multiplied(DType dtype, Stack a, Stack b, int ndim, const npy_intp* shape, int batch_ndim,
                           const void* column_bias = nullptr, Activation activation = Activation::none) {
  Array out = make_array(dtype, ndim, shape);
  if (PyArray_SIZE(out) == 0) return out;
  // One B for all of A's matrices: one tall product.
  if (batch_size(b) == 1 && merge_batch_into_rows(a)) b.batch_ndim = batch_ndim = 0;
  broadcast_batch(a, batch_ndim, shape);
  broadcast_batch(b, batch_ndim, shape);
  int64_t count = 1;
  for (int axis = 0; axis < batch_ndim; ++axis) count *= shape[axis];
  const Extras extras{column_bias, activation};
  if (is_half(dtype)) {
    MaybeReleaseGil unlocked(half_product_ns(dtype, a.rows, b.columns, a.columns) * double(count));
    multiply_halves(dtype, a, b, batch_ndim, shape, data_of<uint16_t>(out), extras);
    return out;
  }
  with_type(dtype, [&](auto zero) {
    using T = decltype(zero);
    MaybeReleaseGil unlocked(product_ns<T>(a.rows, b.columns, a.columns) * double(count));
    multiply_floats<T>(a, b, batch_ndim, shape, data_of<T>(out), extras);
  });
  return out;
}

bool broadcast_shapes(const Stack& a, const Stack& b, int& ndim, npy_intp* shape) {
  ndim = a.batch_ndim > b.batch_ndim ? a.batch_ndim : b.batch_ndim;
  for (int axis = 0; axis < ndim; ++axis) {
    const int from_a = axis - (ndim - a.batch_ndim), from_b = axis - (ndim - b.batch_ndim);
    const npy_intp left = from_a < 0 ? 1 : a.batch_shape[from_a], right = from_b < 0 ? 1 : b.batch_shape[from_b];
    if (left != right && left != 1 && right != 1) return false;
    shape[axis] = left == 1 ? right : left;
  }
  return true;
}

PyObject* call_matmul(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count != 2) return not_covered();
  PyArrayObject* a = as_array(args[0]);
  PyArrayObject* b = as_array(args[1]);
  if (a == nullptr || b == nullptr || PyArray_NDIM(a) == 0 || PyArray_NDIM(b) == 0) return not_covered();
  const DType dtype = dtype_of(a);
  if (!is_multiplied(dtype)) return not_covered();
  if (!is_covered(a, dtype) || !is_covered(b, dtype)) return not_covered();
  const Stack left = stack_of(a, false), right = stack_of(b, true);
  npy_intp shape[NPY_MAXDIMS + 2];
  int batch_ndim;
  if (left.columns != right.rows || !broadcast_shapes(left, right, batch_ndim, shape)) return not_covered();
  int ndim = batch_ndim;
  if (PyArray_NDIM(a) > 1) shape[ndim++] = left.rows;
  if (PyArray_NDIM(b) > 1) shape[ndim++] = right.columns;
  return multiplied(dtype, left, right, ndim, shape, batch_ndim).release();
}

// Of a vector or matrix on the right, or of two vectors: the same products.
PyObject* call_dot(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  PyArrayObject* b = count == 2 ? as_array(args[1]) : nullptr;
  return b == nullptr || PyArray_NDIM(b) > 2 ? not_covered() : call_matmul(self, args, count);
}
PyObject* call_inner(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  PyArrayObject* b = count == 2 ? as_array(args[1]) : nullptr;
  return b == nullptr || PyArray_NDIM(b) > 1 ? not_covered() : call_matmul(self, args, count);
}

// An array as a matrix of rows, copied if its leading axes do not follow each other, or if it is to be dense along one side
// and is not.
struct Rows {
  explicit Rows(PyArrayObject* array, bool along_one_side = false) : matrix(stack_of(array, false)) {
    if (merge_batch_into_rows(matrix) && (!along_one_side || matrix.row == 1 || matrix.column == 1)) return;
    copy = can_copy(array) ? copy_of(array) : owned(reinterpret_cast<PyArrayObject*>(PyArray_NewCopy(array, NPY_CORDER)));
    matrix = stack_of(copy, false);
    merge_batch_into_rows(matrix);
  }
  Stack matrix;
  Array copy;
};

// y = x @ weight.T + bias; with "relu" as a fourth argument, max(y, 0) of it.
PyObject* call_linear(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count != 3 && count != 4) return not_covered();
  if (count == 4 && !is_text(args[3], "relu")) return not_covered();
  PyArrayObject* x = as_array(args[0]);
  PyArrayObject* weight = as_array(args[1]);
  PyArrayObject* bias = as_array(args[2]);
  if (x == nullptr || weight == nullptr || PyArray_NDIM(x) < 1 || PyArray_NDIM(weight) != 2) return not_covered();
  if (bias == nullptr && args[2] != Py_None) return not_covered();
  const DType dtype = dtype_of(x);
  if (!is_multiplied(dtype)) return not_covered();
  const int ndim = PyArray_NDIM(x);
  if (!is_covered(x, dtype) || !is_covered(weight, dtype) || PyArray_DIM(x, ndim - 1) != PyArray_DIM(weight, 1)) return not_covered();
  if (bias != nullptr && (!is_covered(bias, dtype) || PyArray_NDIM(bias) != 1 || !PyArray_IS_C_CONTIGUOUS(bias) ||
                          PyArray_DIM(bias, 0) != PyArray_DIM(weight, 0)))
    return not_covered();
  const Rows rows(x);
  npy_intp shape[NPY_MAXDIMS];
  for (int axis = 0; axis < ndim - 1; ++axis) shape[axis] = PyArray_DIM(x, axis);
  shape[ndim - 1] = PyArray_DIM(weight, 0);
  return multiplied(dtype, rows.matrix, stack_of(weight, false).transposed(), ndim, shape, 0, data_of<const void>(bias),
                    count == 4 ? Activation::relu : Activation::none)
      .release();
}

// The sum of the rows of a matrix. It is dense along one side.
void sum_rows(DType dtype, const Stack& matrix, void* out) {
  if (is_half(dtype)) {
    const MaybeReleaseGil unlocked(reduce_ns(Reduction::sum, double(matrix.rows * matrix.columns)));
    return EXTENSOR_SELECT(sum_half_rows)(dtype, matrix.rows, matrix.columns, matrix.data, matrix.row, matrix.column, out);
  }
  ReduceLayout layout;
  if (matrix.column == 1) {
    layout.length = matrix.rows, layout.length_stride = matrix.row, layout.inner = matrix.columns;
  } else {
    layout.outer = matrix.columns, layout.outer_stride = matrix.column, layout.length = matrix.rows;
  }
  reduce(dtype, Reduction::sum, layout, matrix.data, out);
}

// (g @ weight, rows(g).T @ rows(x), the sum of rows(g)), each None where it is not needed.
PyObject* call_linear_backward(PyObject*, PyObject* const* args, Py_ssize_t count) {
  bool needs[3];
  if (count != 4 || !read_flags(args[3], needs, 3)) return not_covered();
  PyArrayObject* g = as_array(args[0]);
  PyArrayObject* x = as_array(args[1]);
  PyArrayObject* weight = as_array(args[2]);
  if (g == nullptr || x == nullptr || weight == nullptr || PyArray_NDIM(weight) != 2) return not_covered();
  const DType dtype = dtype_of(g);
  if (!is_multiplied(dtype)) return not_covered();
  const int ndim = PyArray_NDIM(x);
  if (!is_covered(g, dtype) || !is_covered(x, dtype) || !is_covered(weight, dtype) || ndim < 1 || PyArray_NDIM(g) != ndim ||
      PyArray_DIM(g, ndim - 1) != PyArray_DIM(weight, 0) || PyArray_DIM(x, ndim - 1) != PyArray_DIM(weight, 1))
    return not_covered();
  for (int axis = 0; axis < ndim - 1; ++axis)
    if (PyArray_DIM(g, axis) != PyArray_DIM(x, axis)) return not_covered();
  const Rows g_rows(g, true), x_rows(x);
  Array grads[3];
  if (needs[0]) grads[0] = multiplied(dtype, g_rows.matrix, stack_of(weight, false), ndim, PyArray_DIMS(x), 0);
  if (needs[1]) grads[1] = multiplied(dtype, g_rows.matrix.transposed(), x_rows.matrix, 2, PyArray_DIMS(weight), 0);
  if (needs[2]) {
    grads[2] = make_array(dtype, 1, PyArray_DIMS(weight));
    sum_rows(dtype, g_rows.matrix, PyArray_DATA(grads[2]));
  }
  return tuple_of(grads);
}

// The gradients of a product of a matrix and a vector, or of two vectors.
PyObject* vector_gradients(PyArrayObject* g, PyArrayObject* a, PyArrayObject* b, const bool* needs) {
  const DType dtype = dtype_of(g);
  const int a_ndim = PyArray_NDIM(a), b_ndim = PyArray_NDIM(b), g_ndim = PyArray_NDIM(g);
  const Stack left = stack_of(a, false), right = stack_of(b, true);
  if (left.columns != right.rows || g_ndim != a_ndim + b_ndim - 2) return not_covered();
  Stack upstream = left;  // one row, one column, or one number
  upstream.data = PyArray_BYTES(g), upstream.columns = right.columns, upstream.column = 1;
  const int64_t step = g_ndim == 0 ? 1 : PyArray_STRIDE(g, 0) / PyArray_ITEMSIZE(g);
  if (g_ndim == 1 && PyArray_DIM(g, 0) != left.rows * right.columns) return not_covered();
  upstream.row = a_ndim == 2 ? step : 1;
  if (b_ndim == 2) upstream.column = step;
  Array grads[2];
  if (needs[0]) grads[0] = multiplied(dtype, upstream, right.transposed(), a_ndim, PyArray_DIMS(a), 0);
  if (needs[1]) grads[1] = multiplied(dtype, left.transposed(), upstream, b_ndim, PyArray_DIMS(b), 0);
  return tuple_of(grads);
}

// (g @ b.T, a.T @ g) for matrices and vectors, stacks of the same batch shape, and a batch of A's with one B.
PyObject* call_matmul_backward(PyObject*, PyObject* const* args, Py_ssize_t count) {
  bool needs[2];
  if (count != 4 || !read_flags(args[3], needs, 2)) return not_covered();
  PyArrayObject* g = as_array(args[0]);
  PyArrayObject* a = as_array(args[1]);
  PyArrayObject* b = as_array(args[2]);
  if (g == nullptr || a == nullptr || b == nullptr) return not_covered();
  const DType dtype = dtype_of(g);
  if (!is_multiplied(dtype)) return not_covered();
  const int a_ndim = PyArray_NDIM(a), b_ndim = PyArray_NDIM(b);
  if (!is_covered(g, dtype) || !is_covered(a, dtype) || !is_covered(b, dtype)) return not_covered();
  if (a_ndim <= 2 && b_ndim <= 2 && a_ndim * b_ndim > 0 && a_ndim + b_ndim < 4) return vector_gradients(g, a, b, needs);
  if (a_ndim < 2 || b_ndim < 2 || PyArray_NDIM(g) != a_ndim || (b_ndim != a_ndim && b_ndim != 2)) return not_covered();
  for (int axis = 0; axis < a_ndim - 2; ++axis)
    if (PyArray_DIM(a, axis) != PyArray_DIM(g, axis) || (b_ndim > 2 && PyArray_DIM(a, axis) != PyArray_DIM(b, axis))) return not_covered();
  const Stack upstream = stack_of(g, false), left = stack_of(a, false), right = stack_of(b, true);
  if (upstream.rows != left.rows || upstream.columns != right.columns || left.columns != right.rows) return not_covered();
  Array grads[2];
  if (needs[0]) grads[0] = multiplied(dtype, upstream, right.transposed(), a_ndim, PyArray_DIMS(a), a_ndim - 2);
  if (needs[1] && b_ndim == 2) {
    const Rows g_rows(g), a_rows(a);
    grads[1] = multiplied(dtype, a_rows.matrix.transposed(), g_rows.matrix, 2, PyArray_DIMS(b), 0);
  } else if (needs[1]) {
    grads[1] = multiplied(dtype, left.transposed(), upstream, b_ndim, PyArray_DIMS(b), b_ndim - 2);
  }
  return tuple_of(grads);
}

}  // namespace

void bind_matmul(PyObject* kernels) {
  add_kernel(kernels, "matmul", call_matmul);
  add_kernel(kernels, "matmul_backward", call_matmul_backward);
  add_kernel(kernels, "dot", call_dot);
  add_kernel(kernels, "inner", call_inner);
  add_kernel(kernels, "linear", call_linear);
  add_kernel(kernels, "linear_backward", call_linear_backward);
}

}  // namespace extensor
