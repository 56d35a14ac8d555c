// Gradients without the scale of their loss, as a Python function.
#include "kernels/optim/unscale.hpp"

#include "bindings/arguments.hpp"

namespace extensor {
namespace {

// unscale_gradients(grads, scale) -> list of arrays, whether all of them are finite
PyObject* call_unscale(PyObject*, PyObject* const* args, Py_ssize_t count) {
  double scale;
  if (count != 2 || !PyList_CheckExact(args[0]) || !read_number(args[1], scale)) return not_covered();
  const Py_ssize_t length = PyList_GET_SIZE(args[0]);
  for (Py_ssize_t i = 0; i < length; ++i) {
    PyArrayObject* grad = as_array(PyList_GET_ITEM(args[0], i));
    if (grad == nullptr || !(is_float(dtype_of(grad)) || is_half(dtype_of(grad))) || !is_readable(grad)) return not_covered();
  }
  Ref<> list = owned(PyList_New(length));
  bool finite = true;
  for (Py_ssize_t i = 0; i < length; ++i) {
    const Array grad = dense(reinterpret_cast<PyArrayObject*>(PyList_GET_ITEM(args[0], i)));
    const DType dtype = dtype_of(grad);
    Array out = make_array(is_half(dtype) ? DType::float32 : dtype, PyArray_NDIM(grad), PyArray_DIMS(grad));
    {
      MaybeReleaseGil unlocked(double(PyArray_SIZE(grad)) * 0.15);
      finite &= unscale(dtype, PyArray_DATA(grad), PyArray_DATA(out), PyArray_SIZE(grad), scale);
    }
    PyList_SET_ITEM(list.get(), i, reinterpret_cast<PyObject*>(out.release()));
  }
  return PyTuple_Pack(2, list.get(), finite ? Py_True : Py_False);
}

}  // namespace

void bind_unscale(PyObject* kernels) { add_kernel(kernels, "unscale_gradients", call_unscale); }

}  // namespace extensor
