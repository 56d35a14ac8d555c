// Elementwise kernels as Python functions: kernel(*arrays, *attributes).
#include "bindings/arrays.hpp"
#include "kernels/elementwise/elementwise.hpp"

namespace extensor {
namespace {

// The operands of one call after they were looked at.
struct Operands {
  PyArrayObject* arrays[max_elementwise_inputs];  // nullptr for a Python number
  alignas(8) char numbers[max_elementwise_inputs][8];
  DType dtype = DType::other;
};

PyObject* call_elementwise(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  const ElementwiseKernel& kernel = *kernel_context<ElementwiseKernel>(self);
  if (count != kernel.inputs + kernel.scalars) return not_covered();
  PyArrayObject* array = reinterpret_cast<PyArrayObject*>(args[0]);
  if (!PyArray_Check(args[0])) return not_covered();
  const DType dtype = dtype_of(array);
  PyArrayObject* out = new_array(dtype, PyArray_NDIM(array), PyArray_DIMS(array));
  const void* in[] = {PyArray_DATA(array)};
  void* outs[] = {PyArray_DATA(out)};
  bool is_scalar[] = {false};
  run_elementwise_contiguous(kernel, dtype, PyArray_SIZE(array), in, is_scalar, outs, nullptr);
  return (PyObject*)out;
}

}  // namespace

void bind_elementwise(PyObject* kernels) {
  const ElementwiseTable& table = EXTENSOR_SELECT(elementwise_table)();
  for (int i = 0; i < table.count; ++i) add_kernel(kernels, table.kernels[i].name, call_elementwise, &table.kernels[i]);
}

}  // namespace extensor
