// Adafactor, Muon and the average of parameters as Python functions over lists of float32 or float64 arrays. Arguments and results
// are those of the reference kernels of the same names.
#include "kernels/optim/matrices.hpp"

#include <cfloat>
#include <cmath>

#include "bindings/parameter_lists.hpp"
#include "kernels/optim/norm.hpp"

namespace extensor {
namespace {

PyArrayObject* entry(PyObject* list, Py_ssize_t i) { return as_array(PyList_GET_ITEM(list, i)); }

Array make_like(PyArrayObject* array) { return make_array(dtype_of(array), PyArray_NDIM(array), PyArray_DIMS(array)); }

bool is_list_of(PyObject* list, Py_ssize_t length) { return PyList_CheckExact(list) && PyList_GET_SIZE(list) == length; }

// ema_step(averages, values, decay)
PyObject* ema_step(PyObject*, PyObject* const* args, Py_ssize_t count) {
  double decay;
  if (count != 3 || !are_parallel(args, 2, nullptr) || !read_number(args[2], decay)) return not_covered();
  Lists<1> found(PyList_GET_SIZE(args[0]));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(args[0]); ++i) {
    const Array average = dense(entry(args[0], i)), value = dense(entry(args[1], i));
    Array to = make_like(average);
    {
      MaybeReleaseGil unlocked(double(PyArray_SIZE(to)) * 0.15);
      with_type(dtype_of(average), [&](auto zero) {
        using T = decltype(zero);
        moving_average<T>(PyArray_SIZE(to), decay, data_of<T>(average), data_of<T>(value), data_of<T>(to));
      });
    }
    found.put(0, i, owned(to.release()));
  }
  return found.lists[0].release();
}

// Whether an array has the shape of a parameter but for one axis, -1 or -2, which is 1.
bool is_mean_along(PyArrayObject* mean, PyArrayObject* param, int axis) {
  if (mean == nullptr || dtype_of(mean) != dtype_of(param) || !is_readable(mean) || PyArray_NDIM(mean) != PyArray_NDIM(param)) return false;
  for (int i = 0; i < PyArray_NDIM(param); ++i)
    if (PyArray_DIM(mean, i) != (i == PyArray_NDIM(param) + axis ? 1 : PyArray_DIM(param, i))) return false;
  return true;
}

// The averages of the squares of a parameter: a row and a column of them, or one for each element; false if they do not fit it.
struct Averages {
  Array row, column;
  bool is_matrix = false;

  bool read(PyArrayObject* param, PyObject* rows, PyObject* columns, PyObject* each) {
    is_matrix = each == Py_None;
    if (!is_matrix) {
      PyArrayObject* found = as_array(each);
      if (rows != Py_None || columns != Py_None || found == nullptr || dtype_of(found) != dtype_of(param) || !is_readable(found) ||
          !PyArray_SAMESHAPE(found, param))
        return false;
      column = dense(found);
      return true;
    }
    if (!is_mean_along(as_array(rows), param, -1) || !is_mean_along(as_array(columns), param, -2)) return false;
    row = dense(as_array(rows)), column = dense(as_array(columns));
    return true;
  }
};

// adafactor_step(params, grads, rows, columns, variances, steps, lr, beta2_decay, eps1, eps2, d, weight_decay, maximize)
//   -> params, rows, columns, variances
PyObject* adafactor_step(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count != 13 || !are_parallel(args, 2, nullptr)) return not_covered();
  const Py_ssize_t length = PyList_GET_SIZE(args[0]);
  double lr, decay, eps1 = 0, eps2, clip, weight_decay;
  bool maximize;
  for (int k = 2; k < 6; ++k)
    if (!is_list_of(args[k], length)) return not_covered();
  if (!read_number(args[6], lr) || !read_number(args[7], decay) || (args[8] != Py_None && !read_number(args[8], eps1)) ||
      !read_number(args[9], eps2) || !read_number(args[10], clip) || !read_number(args[11], weight_decay) || !read_flag(args[12], maximize))
    return not_covered();
  Lists<4> found(length);
  for (Py_ssize_t i = 0; i < length; ++i) {
    const Array param = dense(entry(args[0], i)), grad = dense(entry(args[1], i));
    Averages before;
    double step;
    if (!read_number(PyList_GET_ITEM(args[5], i), step) || step < 1 ||
        !before.read(param, PyList_GET_ITEM(args[2], i), PyList_GET_ITEM(args[3], i), PyList_GET_ITEM(args[4], i)))
      return not_covered();
    const DType dtype = dtype_of(param);
    const int ndim = PyArray_NDIM(param);
    const int64_t size = PyArray_SIZE(param);
    if (before.is_matrix && size == 0) return not_covered();  // means of nothing
    Adafactor s;
    s.batch = before.is_matrix ? product_of(PyArray_DIMS(param), ndim - 2) : 1;
    s.rows = before.is_matrix ? PyArray_DIM(param, ndim - 2) : 0;
    s.columns = before.is_matrix ? PyArray_DIM(param, ndim - 1) : size;
    s.share = std::pow(step, decay), s.clip = clip, s.sign = maximize ? -1.0 : 1.0;
    s.tiny = args[8] != Py_None ? eps1 : dtype == DType::float32 ? double(FLT_EPSILON) : DBL_EPSILON;
    s.shrink = weight_decay != 0 ? 1 - lr * weight_decay : 1.0;
    const double own = std::sqrt(sum_of_squares(dtype, PyArray_DATA(param), size) / double(size > 0 ? size : 1));
    const double most = 1 / std::sqrt(step);
    s.length = (own > eps2 ? own : eps2) * (most < lr ? most : lr);
    Array moved = make_like(param), row = before.is_matrix ? make_like(before.row) : Array(), column = make_like(before.column);
    {
      MaybeReleaseGil unlocked(double(size) * 3);
      with_type(dtype, [&](auto zero) {
        using T = decltype(zero);
        adafactor<T>(s, data_of<T>(param), data_of<T>(grad), data_of<T>(before.row), data_of<T>(before.column), data_of<T>(moved), data_of<T>(row),
                     data_of<T>(column));
      });
    }
    found.put(0, i, owned(moved.release()));
    found.put(1, i, before.is_matrix ? owned(row.release()) : shared(Py_None));
    found.put(before.is_matrix ? 2 : 3, i, owned(column.release()));
    found.put(before.is_matrix ? 3 : 2, i, shared(Py_None));
  }
  return PyTuple_Pack(4, found.lists[0].get(), found.lists[1].get(), found.lists[2].get(), found.lists[3].get());
}

// muon_step(params, grads, buffers, lr, momentum, weight_decay, nesterov, coefficients, eps, steps, match_adamw, maximize)
//   -> params, buffers
PyObject* muon_step(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count != 12 || !are_parallel(args, 3, nullptr)) return not_covered();
  Muon s;
  double lr, weight_decay;
  bool match_adamw, maximize;
  if (!read_number(args[3], lr) || !read_number(args[4], s.momentum) || !read_number(args[5], weight_decay) || !read_flag(args[6], s.nesterov) ||
      !PyTuple_Check(args[7]) || PyTuple_GET_SIZE(args[7]) != 3 || !read_number(args[8], s.eps) || !read_flag(args[10], match_adamw) ||
      !read_flag(args[11], maximize))
    return not_covered();
  for (int k = 0; k < 3; ++k)
    if (!read_number(PyTuple_GET_ITEM(args[7], k), s.coefficients[k])) return not_covered();
  s.steps = read_below(args[9], INT32_MAX);
  if (s.steps < 0) return not_covered();
  s.shrink = 1 - lr * weight_decay, s.sign = maximize ? -1.0 : 1.0;
  Lists<2> found(PyList_GET_SIZE(args[0]));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(args[0]); ++i) {
    const Array param = dense(entry(args[0], i)), grad = dense(entry(args[1], i)), buffer = dense(entry(args[2], i));
    if (PyArray_NDIM(param) != 2 || PyArray_SIZE(param) == 0) return not_covered();
    s.rows = PyArray_DIM(param, 0), s.columns = PyArray_DIM(param, 1);
    const double rows = double(s.rows), columns = double(s.columns);
    s.rate = lr * (match_adamw ? 0.2 * std::sqrt(rows > columns ? rows : columns) : std::sqrt(rows > columns ? rows / columns : 1.0));
    Array moved = make_like(param), after = make_like(param);
    {
      MaybeReleaseGil unlocked(double(PyArray_SIZE(param)) * 100);
      with_type(dtype_of(param), [&](auto zero) {
        using T = decltype(zero);
        muon<T>(s, data_of<T>(param), data_of<T>(grad), data_of<T>(buffer), data_of<T>(moved), data_of<T>(after));
      });
    }
    found.put(0, i, owned(moved.release()));
    found.put(1, i, owned(after.release()));
  }
  return PyTuple_Pack(2, found.lists[0].get(), found.lists[1].get());
}

}  // namespace

void bind_optim_matrices(PyObject* kernels) {
  add_kernel(kernels, "ema_step", ema_step);
  add_kernel(kernels, "adafactor_step", adafactor_step);
  add_kernel(kernels, "muon_step", muon_step);
}

}  // namespace extensor
