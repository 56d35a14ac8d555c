// Connectionist temporal classification as Python functions.
#include "kernels/loss/ctc.hpp"

#include "bindings/arguments.hpp"

namespace extensor {
namespace {

// The array of `ndim` axes in C order, of one of NumPy's types.
PyArrayObject* as_table(PyObject* object, int type, int ndim) {
  PyArrayObject* array = as_array(object);
  return array != nullptr && PyArray_TYPE(array) == type && PyArray_NDIM(array) == ndim && PyArray_ISCARRAY_RO(array) ? array : nullptr;
}

// x, states, jumps, lengths, counts; false if they do not fit together.
bool read_paths(PyObject* const* args, CtcPaths& paths) {
  PyArrayObject* x = as_array(args[0]);
  if (x == nullptr || PyArray_NDIM(x) != 3 || !is_float(dtype_of(x)) || !is_readable(x)) return false;
  PyArrayObject *states = as_table(args[1], NPY_INT64, 2), *jumps = as_table(args[2], NPY_BOOL, 2), *lengths = as_table(args[3], NPY_INT64, 1),
                *counts = as_table(args[4], NPY_INT64, 1);
  if (states == nullptr || jumps == nullptr || lengths == nullptr || counts == nullptr) return false;
  paths.times = PyArray_DIM(x, 0), paths.batch = PyArray_DIM(x, 1), paths.classes = PyArray_DIM(x, 2), paths.states = PyArray_DIM(states, 1);
  if (!PyArray_SAMESHAPE(states, jumps) || PyArray_DIM(states, 0) != paths.batch || PyArray_DIM(lengths, 0) != paths.batch ||
      PyArray_DIM(counts, 0) != paths.batch || paths.states == 0)
    return false;
  paths.labels = data_of<const int64_t>(states), paths.jumps = data_of<const unsigned char>(jumps);
  paths.lengths = data_of<const int64_t>(lengths), paths.counts = data_of<const int64_t>(counts);
  for (int64_t n = 0; n < paths.batch; ++n)
    if (paths.lengths[n] < 0 || paths.lengths[n] > paths.times || paths.counts[n] < 0 || 2 * paths.counts[n] + 1 > paths.states) return false;
  for (int64_t i = 0; i < paths.batch * paths.states; ++i)
    if (paths.labels[i] < 0 || paths.labels[i] >= paths.classes) return false;
  return true;
}

// ctc_losses(x, states, jumps, lengths, counts)
PyObject* call_losses(PyObject*, PyObject* const* args, Py_ssize_t count) {
  CtcPaths paths;
  if (count != 5 || !read_paths(args, paths)) return not_covered();
  const Array x = dense(as_array(args[0]));
  const npy_intp shape[] = {npy_intp(paths.batch)};
  Array out = make_array(DType::float64, 1, shape);
  {
    MaybeReleaseGil unlocked(double(paths.times * paths.batch * paths.states) * 30);
    ctc_losses(dtype_of(x), paths, PyArray_DATA(x), data_of<double>(out));
  }
  return reinterpret_cast<PyObject*>(out.release());
}

// ctc_shares(rates, x, states, jumps, lengths, counts)
PyObject* call_shares(PyObject*, PyObject* const* args, Py_ssize_t count) {
  CtcPaths paths;
  PyArrayObject* rates = count == 6 ? as_table(args[0], NPY_FLOAT64, 1) : nullptr;
  if (rates == nullptr || !read_paths(args + 1, paths) || PyArray_DIM(rates, 0) != paths.batch) return not_covered();
  const Array x = dense(as_array(args[1]));
  Array out = make_array(DType::float64, 3, PyArray_DIMS(x));
  {
    MaybeReleaseGil unlocked(double(paths.times * paths.batch * paths.states) * 70);
    ctc_shares(dtype_of(x), paths, data_of<double>(rates), PyArray_DATA(x), data_of<double>(out));
  }
  return reinterpret_cast<PyObject*>(out.release());
}

}  // namespace

void bind_ctc(PyObject* kernels) {
  add_kernel(kernels, "ctc_losses", call_losses);
  add_kernel(kernels, "ctc_shares", call_shares);
}

}  // namespace extensor
