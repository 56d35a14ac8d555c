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
  Positions() = default;
  ~Positions() { Py_XDECREF(array_); }
  Positions(const Positions&) = delete;
  Positions& operator=(const Positions&) = delete;

  // False for anything but int64 within -length .. length - 1.
  bool read(PyObject* object, int64_t length) {
    if (!read_dense(object)) return false;
    const int64_t* values = static_cast<const int64_t*>(PyArray_DATA(array_));
    const int64_t count = PyArray_SIZE(array_);
    data_ = values;
    if (are_positions(length, count, values)) return true;
    counted_.assign(values, values + count);
    for (int64_t& value : counted_) value += value < 0 ? length : 0;
    data_ = counted_.data();
    return are_positions(length, count, data_);
  }
  // The same for indices that are checked where they are used.
  bool read_dense(PyObject* object) {
    PyArrayObject* given = as_array(object);
    if (given == nullptr || dtype_of(given) != DType::int64 || !is_readable(given)) return false;
    array_ = dense(object);
    if (array_ == nullptr) PyErr_Clear();
    else data_ = static_cast<const int64_t*>(PyArray_DATA(array_));
    return array_ != nullptr;
  }
  const int64_t* data() const { return data_; }
  PyArrayObject* array() const { return array_; }

 private:
  PyArrayObject* array_ = nullptr;
  const int64_t* data_ = nullptr;
  std::vector<int64_t> counted_;
};

// An axis of a tensor of `shape`, which is [outer, length, inner] around it; None is all of it in a row.
struct Around {
  int axis = 0;
  int64_t outer = 1, length, inner = 1;
  bool flat;

  // False for anything else.
  bool read(PyObject* object, int ndim, const npy_intp* shape) {
    flat = object == Py_None;
    length = product_of(shape, ndim);
    if (flat) return true;
    if (!PyLong_Check(object)) return false;
    int overflow;
    const long given = PyLong_AsLongAndOverflow(object, &overflow);
    if (overflow != 0 || given < -ndim || given >= ndim) return false;
    axis = int(given < 0 ? given + ndim : given);
    outer = product_of(shape, axis);
    length = shape[axis];
    inner = product_of(shape + axis + 1, ndim - axis - 1);
    return true;
  }
};

// The shape of x with the axes of the indices in place of one of its own. The number of axes, or -1 if there are too many.
int shape_of_taken(int ndim, const npy_intp* x, const Around& around, PyArrayObject* indices, npy_intp* shape) {
  const int index_ndim = PyArray_NDIM(indices), kept = around.flat ? 0 : ndim - 1;
  if (kept + index_ndim > NPY_MAXDIMS) return -1;
  int count = 0;
  for (int i = 0; !around.flat && i < around.axis; ++i) shape[count++] = x[i];
  for (int i = 0; i < index_ndim; ++i) shape[count++] = PyArray_DIM(indices, i);
  for (int i = around.axis + 1; !around.flat && i < ndim; ++i) shape[count++] = x[i];
  return count;
}

bool has_shape(PyArrayObject* array, int ndim, const npy_intp* shape) {
  return PyArray_NDIM(array) == ndim && PyArray_CompareLists(PyArray_DIMS(array), shape, ndim);
}

}  // namespace

PyObject* call_take(PyObject*, PyObject* const* args, Py_ssize_t count) {
  PyArrayObject* given = count == 3 ? as_array(args[0]) : nullptr;
  if (given == nullptr || dtype_of(given) == DType::other || !is_readable(given)) return not_covered();
  const int ndim = PyArray_NDIM(given);
  Around around;
  Positions indices;
  npy_intp shape[NPY_MAXDIMS];
  if (!around.read(args[2], ndim, PyArray_DIMS(given)) || !indices.read(args[1], around.length)) return not_covered();
  const int out_ndim = shape_of_taken(ndim, PyArray_DIMS(given), around, indices.array(), shape);
  if (out_ndim < 0) return not_covered();
  PyArrayObject* x = dense(args[0]);
  PyArrayObject* out = x == nullptr ? nullptr : new_array(dtype_of(given), out_ndim, shape);
  if (out != nullptr && PyArray_SIZE(out) > 0) {
    MaybeReleaseGil unlocked(double(PyArray_NBYTES(out)) * 0.1);
    take(around.outer, around.length, PyArray_SIZE(indices.array()), size_t(around.inner) * item_size(dtype_of(given)), indices.data(),
         PyArray_DATA(x), PyArray_DATA(out));
  }
  Py_XDECREF(x);
  return reinterpret_cast<PyObject*>(out);
}

PyObject* call_take_backward(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  PyArrayObject* given = count == 4 ? as_array(args[0]) : nullptr;
  if (given == nullptr) return not_covered();
  const DType dtype = dtype_of(given);
  if (!is_float(dtype)) return call_widened(call_take_backward, self, args, count);
  npy_intp shape[NPY_MAXDIMS], taken[NPY_MAXDIMS];
  int ndim;
  Around around;
  Positions indices;
  if (!is_readable(given) || !read_shape(args[1], ndim, shape) || !around.read(args[3], ndim, shape) || !indices.read(args[2], around.length))
    return not_covered();
  const int taken_ndim = shape_of_taken(ndim, shape, around, indices.array(), taken);
  if (taken_ndim < 0 || !has_shape(given, taken_ndim, taken)) return not_covered();
  PyArrayObject* g = dense(args[0]);
  PyArrayObject* out = g == nullptr ? nullptr : new_array(dtype, ndim, shape);
  if (out != nullptr && PyArray_SIZE(out) > 0) {
    MaybeReleaseGil unlocked(double(PyArray_NBYTES(out) + PyArray_NBYTES(g)) * 0.1);
    take_backward(dtype, around.outer, around.length, PyArray_SIZE(indices.array()), around.inner, indices.data(), PyArray_DATA(g),
                  PyArray_DATA(out));
  }
  Py_XDECREF(g);
  return reinterpret_cast<PyObject*>(out);
}

namespace {

// Whether indices have the lengths of `shape` beside the axis; the layout of both around it.
bool fits_along(PyArrayObject* indices, int ndim, const npy_intp* shape, const Around& around, AlongAxis& along) {
  if (around.flat || PyArray_NDIM(indices) != ndim) return false;
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
  PyArrayObject* x = dense(args[0]);
  PyArrayObject* out = x == nullptr ? nullptr : new_array(dtype_of(given), PyArray_NDIM(given), PyArray_DIMS(indices.array()));
  bool within = true;
  if (out != nullptr && PyArray_SIZE(out) > 0) {
    MaybeReleaseGil unlocked(double(PyArray_SIZE(out)));
    within = take_along_axis(along, item_size(dtype_of(given)), indices.data(), PyArray_DATA(x), PyArray_DATA(out));
  }
  Py_XDECREF(x);
  if (within) return reinterpret_cast<PyObject*>(out);
  Py_DECREF(out);
  return not_covered();
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
  PyArrayObject* g = dense(args[0]);
  PyArrayObject* out = g == nullptr ? nullptr : new_array(dtype, ndim, shape);
  bool within = true;
  if (out != nullptr && PyArray_SIZE(out) > 0) {
    MaybeReleaseGil unlocked(double(PyArray_SIZE(out) + PyArray_SIZE(g)));
    within = take_along_axis_backward(dtype, along, indices.data(), PyArray_DATA(g), PyArray_DATA(out));
  }
  Py_XDECREF(g);
  if (within) return reinterpret_cast<PyObject*>(out);
  Py_DECREF(out);
  return not_covered();
}

// index_add(x, key, values), where the key is one tensor of positions and nothing broadcasts.
PyObject* call_index_add(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  PyArrayObject* given = count == 3 ? as_array(args[0]) : nullptr;
  PyArrayObject* values = count == 3 ? as_array(args[2]) : nullptr;
  if (given == nullptr || values == nullptr || !PyTuple_CheckExact(args[1]) || PyTuple_GET_SIZE(args[1]) != 2 ||
      PyTuple_GET_ITEM(args[1], 1) != Py_Ellipsis || PyArray_NDIM(given) == 0)
    return not_covered();
  const DType dtype = dtype_of(given);
  if (!is_float(dtype)) return call_widened(call_index_add, self, args, count);
  npy_intp shape[NPY_MAXDIMS];
  PyObject* const zero = PyLong_FromLong(0);
  Around around;
  around.read(zero, PyArray_NDIM(given), PyArray_DIMS(given));
  Py_DECREF(zero);
  Positions indices;
  if (dtype_of(values) != dtype || !is_readable(given) || !is_readable(values) || !indices.read(PyTuple_GET_ITEM(args[1], 0), around.length))
    return not_covered();
  const int ndim = shape_of_taken(PyArray_NDIM(given), PyArray_DIMS(given), around, indices.array(), shape);
  if (ndim < 0 || !has_shape(values, ndim, shape)) return not_covered();
  PyArrayObject *x = dense(args[0]), *g = dense(args[2]);
  PyArrayObject* out = x == nullptr || g == nullptr ? nullptr : new_array(dtype, PyArray_NDIM(given), PyArray_DIMS(given));
  if (out != nullptr && PyArray_SIZE(out) > 0) {
    MaybeReleaseGil unlocked(double(PyArray_NBYTES(out) + PyArray_NBYTES(g)) * 0.1);
    add_at_positions(dtype, around.length, PyArray_SIZE(indices.array()), around.inner, indices.data(), PyArray_DATA(x), PyArray_DATA(g),
                     PyArray_DATA(out));
  }
  Py_XDECREF(x);
  Py_XDECREF(g);
  return reinterpret_cast<PyObject*>(out);
}

// Whether these are rows of a table that has so many, none counted from the end.
bool has_rows(PyObject* indices, int64_t rows) {
  Positions positions;
  return positions.read_dense(indices) && are_positions(rows, PyArray_SIZE(positions.array()), positions.data());
}

// embedding(indices, weight, padding_idx); the padding is the gradient's affair
PyObject* call_embedding(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  PyArrayObject* weight = count == 3 ? as_array(args[1]) : nullptr;
  if (weight == nullptr || PyArray_NDIM(weight) != 2) return not_covered();
  if (dtype_of(weight) < DType::float16 || dtype_of(weight) > DType::float64) return not_covered();
  if (args[2] != Py_None && read_axis(args[2], int(PyArray_DIM(weight, 0))) < 0) return not_covered();
  if (!has_rows(args[0], PyArray_DIM(weight, 0))) return not_covered();
  PyObject* const zero = PyLong_FromLong(0);
  PyObject* const taken[] = {args[1], args[0], zero};
  PyObject* result = call_take(self, taken, 3);
  Py_DECREF(zero);
  return result;
}

// embedding_backward(g, indices, shape, padding_idx)
PyObject* call_embedding_backward(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  PyArrayObject* g = count == 4 ? as_array(args[0]) : nullptr;
  PyArrayObject* indices = count == 4 ? as_array(args[1]) : nullptr;
  npy_intp shape[NPY_MAXDIMS];
  int ndim;
  if (g == nullptr || indices == nullptr || !read_shape(args[2], ndim, shape) || ndim != 2) return not_covered();
  if (!has_rows(args[1], shape[0])) return not_covered();
  PyObject* const zero = PyLong_FromLong(0);
  PyObject* const taken[] = {args[0], args[2], args[1], zero};
  PyObject* result = call_take_backward(self, taken, 4);
  Py_DECREF(zero);
  if (result == nullptr) {  // too large a table, of which the caller has more to say
    PyErr_Clear();
    return not_covered();
  }
  if (result == Py_NotImplemented || args[3] == Py_None) return result;
  PyArrayObject* out = reinterpret_cast<PyArrayObject*>(result);
  const long row = read_axis(args[3], int(PyArray_DIM(out, 0)));
  if (row < 0) {
    Py_DECREF(result);
    return not_covered();
  }
  std::memset(PyArray_GETPTR1(out, row), 0, size_t(PyArray_STRIDE(out, 0)));
  return result;
}

}  // namespace

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
