// Taking by position and its gradient, as Python functions.
#include "bindings/gather.hpp"

#include <cstring>
#include <vector>

#include "bindings/arguments.hpp"
#include "bindings/half.hpp"
#include "kernels/gather/gather.hpp"

namespace extensor {
namespace {

// Indices into an axis, dense and counted from the front.
class Positions {
 public:
  // False for anything but int64 within 0 .. length - 1.
  bool read_from_front(PyObject* object, int64_t length) {
    return read_dense(object) && are_positions(length, PyArray_SIZE(array_), data_);
  }
  // The same where negative ones count from the end.
  bool read(PyObject* object, int64_t length) {
    if (read_from_front(object, length)) return true;
    if (array_ == nullptr) return false;
    const int64_t count = PyArray_SIZE(array_);
    counted_.assign(data_, data_ + count);
    for (int64_t& value : counted_) value += value < 0 ? length : 0;
    data_ = counted_.data();
    return are_positions(length, count, data_);
  }
  // The same for indices that are checked where they are used.
  bool read_dense(PyObject* object) {
    PyArrayObject* given = as_array(object);
    if (given == nullptr || dtype_of(given) != DType::int64 || !is_readable(given)) return false;
    array_ = dense(given);
    data_ = data_of<int64_t>(array_);
    return true;
  }
  const int64_t* data() const { return data_; }
  PyArrayObject* array() const { return array_; }

 private:
  Array array_;
  const int64_t* data_ = nullptr;
  std::vector<int64_t> counted_;
};

// An axis of a tensor of `shape`, which is [outer, length, inner] around it.
struct Around {
  int axis = 0;
  int64_t outer = 1, length = 0, inner = 1;

  // False if there is no such axis.
  bool set(int place, int ndim, const npy_intp* shape) {
    if (place < 0 || place >= ndim) return false;
    axis = place;
    outer = product_of(shape, axis);
    length = shape[axis];
    inner = product_of(shape + axis + 1, ndim - axis - 1);
    return true;
  }

  bool read(PyObject* object, int ndim, const npy_intp* shape) { return set(read_axis(object, ndim), ndim, shape); }
};

// The shape of x with the axes of the indices in place of one of its own. The number of axes, or -1 if there are too many.
int shape_of_taken(int ndim, const npy_intp* x, const Around& around, PyArrayObject* indices, npy_intp* shape) {
  const int index_ndim = PyArray_NDIM(indices);
  if (ndim - 1 + index_ndim > NPY_MAXDIMS) return -1;
  int count = 0;
  for (int i = 0; i < around.axis; ++i) shape[count++] = x[i];
  for (int i = 0; i < index_ndim; ++i) shape[count++] = PyArray_DIM(indices, i);
  for (int i = around.axis + 1; i < ndim; ++i) shape[count++] = x[i];
  return count;
}

// The elements of x at positions along an axis.
PyObject* taken(PyArrayObject* given, const Around& around, const Positions& indices) {
  npy_intp shape[NPY_MAXDIMS];
  if (dtype_of(given) == DType::other || !is_readable(given)) return not_covered();
  const int ndim = shape_of_taken(PyArray_NDIM(given), PyArray_DIMS(given), around, indices.array(), shape);
  if (ndim < 0) return not_covered();
  const Array x = dense(given);
  Array out = make_array(dtype_of(given), ndim, shape);
  if (PyArray_SIZE(out) > 0) {
    MaybeReleaseGil unlocked(double(PyArray_NBYTES(out)) * 0.1);
    take(around.outer, around.length, PyArray_SIZE(indices.array()), size_t(around.inner) * item_size(dtype_of(given)), indices.data(),
         PyArray_DATA(x), PyArray_DATA(out));
  }
  return out.release();
}

// take(x, indices, axis)
PyObject* call_take(PyObject*, PyObject* const* args, Py_ssize_t count) {
  PyArrayObject* x = count == 3 ? as_array(args[0]) : nullptr;
  Around around;
  Positions indices;
  if (x == nullptr || !around.read(args[2], PyArray_NDIM(x), PyArray_DIMS(x)) || !indices.read(args[1], around.length)) return not_covered();
  return taken(x, around, indices);
}

// Zeros of a shape with g added at positions along an axis. g is float32 or float64.
PyObject* taken_backward(PyArrayObject* given, int ndim, const npy_intp* shape, const Around& around, const Positions& indices) {
  npy_intp picked[NPY_MAXDIMS];
  if (!is_readable(given)) return not_covered();
  const int picked_ndim = shape_of_taken(ndim, shape, around, indices.array(), picked);
  if (picked_ndim < 0 || !has_shape(given, picked_ndim, picked)) return not_covered();
  const DType dtype = dtype_of(given);
  const Array g = dense(given);
  Array out = make_array(dtype, ndim, shape);
  if (PyArray_SIZE(out) > 0) {
    MaybeReleaseGil unlocked(double(PyArray_NBYTES(out) + PyArray_NBYTES(g)) * 0.1);
    take_backward(dtype, around.outer, around.length, PyArray_SIZE(indices.array()), around.inner, indices.data(), PyArray_DATA(g),
                  PyArray_DATA(out));
  }
  return out.release();
}

// take_backward(g, shape, indices, axis)
PyObject* call_take_backward(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  PyArrayObject* g = count == 4 ? as_array(args[0]) : nullptr;
  if (g == nullptr) return not_covered();
  if (!is_float(dtype_of(g))) return call_widened(call_take_backward, self, args, count);
  npy_intp shape[NPY_MAXDIMS];
  int ndim;
  Around around;
  Positions indices;
  if (!read_shape(args[1], ndim, shape) || !around.read(args[3], ndim, shape) || !indices.read(args[2], around.length)) return not_covered();
  return taken_backward(g, ndim, shape, around, indices);
}

// Whether indices have the lengths of `shape` beside the axis; the layout of both around it.
bool fits_along(PyArrayObject* indices, int ndim, const npy_intp* shape, const Around& around, AlongAxis& along) {
  if (PyArray_NDIM(indices) != ndim) return false;
  for (int i = 0; i < ndim; ++i)
    if (i != around.axis && PyArray_DIM(indices, i) != shape[i]) return false;
  along = {around.outer, around.length, PyArray_DIM(indices, around.axis), around.inner};
  return true;
}

// take_along_axis(x, indices, axis), where nothing broadcasts. Negative indices count from the end.
PyObject* call_take_along_axis(PyObject*, PyObject* const* args, Py_ssize_t count) {
  PyArrayObject* given = count == 3 ? as_array(args[0]) : nullptr;
  if (given == nullptr || dtype_of(given) == DType::other || !is_readable(given)) return not_covered();
  Around around;
  AlongAxis along;
  Positions indices;
  if (!around.read(args[2], PyArray_NDIM(given), PyArray_DIMS(given)) || !indices.read_dense(args[1]) ||
      !fits_along(indices.array(), PyArray_NDIM(given), PyArray_DIMS(given), around, along))
    return not_covered();
  const Array x = dense(given);
  Array out = make_array(dtype_of(given), PyArray_NDIM(given), PyArray_DIMS(indices.array()));
  bool within = true;
  if (PyArray_SIZE(out) > 0) {
    MaybeReleaseGil unlocked(double(PyArray_SIZE(out)));
    within = take_along_axis(along, item_size(dtype_of(given)), indices.data(), PyArray_DATA(x), PyArray_DATA(out));
  }
  return within ? out.release() : not_covered();
}

// take_along_axis_backward(g, shape, indices, axis)
PyObject* call_take_along_axis_backward(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  PyArrayObject* given = count == 4 ? as_array(args[0]) : nullptr;
  if (given == nullptr) return not_covered();
  const DType dtype = dtype_of(given);
  if (!is_float(dtype)) return call_widened(call_take_along_axis_backward, self, args, count);
  npy_intp shape[NPY_MAXDIMS];
  int ndim;
  Around around;
  AlongAxis along;
  Positions indices;
  if (!is_readable(given) || !read_shape(args[1], ndim, shape) || !around.read(args[3], ndim, shape) || !indices.read_dense(args[2]) ||
      !fits_along(indices.array(), ndim, shape, around, along) || !has_shape(given, ndim, PyArray_DIMS(indices.array())))
    return not_covered();
  if (along.length == 0 && PyArray_SIZE(indices.array()) > 0) return not_covered();
  const Array g = dense(given);
  Array out = make_array(dtype, ndim, shape);
  bool within = true;
  if (PyArray_SIZE(out) > 0) {
    MaybeReleaseGil unlocked(double(PyArray_SIZE(out) + PyArray_SIZE(g)));
    within = take_along_axis_backward(dtype, along, indices.data(), PyArray_DATA(g), PyArray_DATA(out));
  }
  return within ? out.release() : not_covered();
}

// index_add(x, key, values), where the key is one tensor of positions and nothing broadcasts.
PyObject* call_index_add(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  PyArrayObject* given = count == 3 ? as_array(args[0]) : nullptr;
  PyArrayObject* values = count == 3 ? as_array(args[2]) : nullptr;
  PyObject* positions = count == 3 ? only_positions(args[1]) : nullptr;
  if (given == nullptr || values == nullptr || positions == nullptr) return not_covered();
  const DType dtype = dtype_of(given);
  if (!is_float(dtype)) return call_widened(call_index_add, self, args, count);
  npy_intp shape[NPY_MAXDIMS];
  Around around;
  Positions indices;
  if (dtype_of(values) != dtype || !is_readable(given) || !is_readable(values) ||
      !around.set(0, PyArray_NDIM(given), PyArray_DIMS(given)) || !indices.read(positions, around.length))
    return not_covered();
  const int ndim = shape_of_taken(PyArray_NDIM(given), PyArray_DIMS(given), around, indices.array(), shape);
  if (ndim < 0 || !has_shape(values, ndim, shape)) return not_covered();
  const Array x = dense(given), g = dense(values);
  Array out = make_array(dtype, PyArray_NDIM(given), PyArray_DIMS(given));
  if (PyArray_SIZE(out) > 0) {
    MaybeReleaseGil unlocked(double(PyArray_NBYTES(out) + PyArray_NBYTES(g)) * 0.1);
    add_at_positions(dtype, around.length, PyArray_SIZE(indices.array()), around.inner, indices.data(), PyArray_DATA(x), PyArray_DATA(g),
                     PyArray_DATA(out));
  }
  return out.release();
}

// embedding(indices, weight, padding_idx); the padding matters to the gradient alone
PyObject* call_embedding(PyObject*, PyObject* const* args, Py_ssize_t count) {
  PyArrayObject* weight = count == 3 ? as_array(args[1]) : nullptr;
  if (weight == nullptr || PyArray_NDIM(weight) != 2 || !(is_float(dtype_of(weight)) || is_half(dtype_of(weight)))) return not_covered();
  if (args[2] != Py_None && read_below(args[2], PyArray_DIM(weight, 0)) < 0) return not_covered();
  Around rows;
  Positions indices;
  rows.set(0, 2, PyArray_DIMS(weight));
  return indices.read_from_front(args[0], rows.length) ? taken(weight, rows, indices) : not_covered();
}

// embedding_backward(g, indices, shape, padding_idx)
PyObject* call_embedding_backward(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  PyArrayObject* g = count == 4 ? as_array(args[0]) : nullptr;
  if (g == nullptr) return not_covered();
  if (!is_float(dtype_of(g))) return call_widened(call_embedding_backward, self, args, count);
  npy_intp shape[NPY_MAXDIMS];
  int ndim;
  Around rows;
  Positions indices;
  if (!read_shape(args[2], ndim, shape) || ndim != 2 || !rows.set(0, 2, shape) || !indices.read_from_front(args[1], rows.length)) return not_covered();
  const int64_t padding = args[3] == Py_None ? -1 : read_below(args[3], shape[0]);
  if (args[3] != Py_None && padding < 0) return not_covered();
  Ref<> result = owned(taken_backward(g, ndim, shape, rows, indices));
  if (padding >= 0 && result != Py_NotImplemented) {
    PyArrayObject* out = as_array(result);
    std::memset(PyArray_GETPTR1(out, padding), 0, size_t(PyArray_STRIDE(out, 0)));
  }
  return result.release();
}

}  // namespace

PyObject* only_positions(PyObject* key) {
  if (!PyTuple_CheckExact(key) || PyTuple_GET_SIZE(key) != 2 || PyTuple_GET_ITEM(key, 1) != Py_Ellipsis) return nullptr;
  PyArrayObject* array = as_array(PyTuple_GET_ITEM(key, 0));
  return array != nullptr && dtype_of(array) == DType::int64 ? PyTuple_GET_ITEM(key, 0) : nullptr;
}

PyObject* take_rows(PyArrayObject* x, PyObject* positions) {
  Around rows;
  Positions indices;
  if (!rows.set(0, PyArray_NDIM(x), PyArray_DIMS(x)) || !indices.read(positions, rows.length)) return not_covered();
  return taken(x, rows, indices);
}

PyObject* take_rows_backward(PyArrayObject* g, int ndim, const npy_intp* shape, PyObject* positions) {
  Around rows;
  Positions indices;
  if (!rows.set(0, ndim, shape) || !indices.read(positions, rows.length)) return not_covered();
  return taken_backward(g, ndim, shape, rows, indices);
}

void bind_gather(PyObject* kernels) {
  add_kernel(kernels, "take", call_take);
  add_kernel(kernels, "take_backward", call_take_backward);
  add_kernel(kernels, "take_along_axis", call_take_along_axis);
  add_kernel(kernels, "take_along_axis_backward", call_take_along_axis_backward);
  add_kernel(kernels, "index_add", call_index_add);
  add_kernel(kernels, "embedding", call_embedding);
  add_kernel(kernels, "embedding_backward", call_embedding_backward);
}

}  // namespace extensor
