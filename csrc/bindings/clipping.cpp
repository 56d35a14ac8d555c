// Gradients held within a norm, as a Python function.
#include <cmath>

#include "bindings/arguments.hpp"
#include "kernels/optim/norm.hpp"

namespace extensor {
namespace {

// clip_grad_norm(grads, max_norm, order) -> list of arrays, the norm of all of them together; of order 2. Gradients that are
// short enough are returned themselves.
PyObject* call_clip_grad_norm(PyObject*, PyObject* const* args, Py_ssize_t count) {
  double most, order;
  if (count != 3 || !PyList_CheckExact(args[0]) || !read_number(args[1], most) || !read_number(args[2], order) || order != 2)
    return not_covered();
  const Py_ssize_t length = PyList_GET_SIZE(args[0]);
  for (Py_ssize_t i = 0; i < length; ++i) {
    PyArrayObject* grad = as_array(PyList_GET_ITEM(args[0], i));
    if (grad == nullptr || !is_float(dtype_of(grad)) || !PyArray_IS_C_CONTIGUOUS(grad) || !is_readable(grad))
      return not_covered();
  }
  const auto grad_at = [&](Py_ssize_t i) { return reinterpret_cast<PyArrayObject*>(PyList_GET_ITEM(args[0], i)); };
  double elements = 0, squares = 0;
  for (Py_ssize_t i = 0; i < length; ++i) elements += double(PyArray_SIZE(grad_at(i)));
  for (Py_ssize_t i = 0; i < length; ++i) {
    PyArrayObject* grad = grad_at(i);
    MaybeReleaseGil unlocked(elements * 0.2);
    squares += sum_of_squares(dtype_of(grad), PyArray_DATA(grad), PyArray_SIZE(grad));
  }
  const double total = std::sqrt(squares), scale = most / (total + 1e-6);
  Ref<> list = owned(PyList_New(length)), norm = owned(PyFloat_FromDouble(total));
  for (Py_ssize_t i = 0; i < length; ++i) {
    PyArrayObject* grad = grad_at(i);
    if (scale >= 1) {
      Py_INCREF(grad);
      PyList_SET_ITEM(list.get(), i, reinterpret_cast<PyObject*>(grad));
      continue;
    }
    Array out = make_array(dtype_of(grad), PyArray_NDIM(grad), PyArray_DIMS(grad));
    {
      MaybeReleaseGil unlocked(elements * 0.2);
      scale_by(dtype_of(grad), PyArray_DATA(grad), PyArray_DATA(out), PyArray_SIZE(grad), scale);
    }
    PyList_SET_ITEM(list.get(), i, reinterpret_cast<PyObject*>(out.release()));
  }
  return PyTuple_Pack(2, list.get(), norm.get());
}

}  // namespace

void bind_clipping(PyObject* kernels) { add_kernel(kernels, "clip_grad_norm", call_clip_grad_norm); }

}  // namespace extensor
