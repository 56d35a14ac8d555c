#include "bindings/half.hpp"

#include "bindings/operands.hpp"
#include "kernels/elementwise/elementwise.hpp"

namespace extensor {
namespace {

constexpr Py_ssize_t most_arguments = 16;

// A float32 array becomes an array of `dtype`, a tuple is one of such, everything else stays.
Ref<> narrowed_results(Ref<> result, DType dtype) {
  if (PyTuple_Check(result.get())) {
    Ref<> tuple = owned(PyTuple_New(PyTuple_GET_SIZE(result.get())));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(result.get()); ++i)
      PyTuple_SET_ITEM(tuple.get(), i, narrowed_results(shared(PyTuple_GET_ITEM(result.get(), i)), dtype).release());
    return tuple;
  }
  PyArrayObject* wide = as_array(result);
  if (wide == nullptr || dtype_of(wide) != DType::float32) return result;
  return owned(narrowed(shared(wide), dtype).release());
}

}  // namespace

Array widened(PyArrayObject* array) {
  const DType dtype = dtype_of(array);
  if (!is_half(dtype)) return shared(array);
  const Array from = owned(reinterpret_cast<PyArrayObject*>(
      PyArray_FromArray(array, nullptr, NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED | NPY_ARRAY_NOTSWAPPED)));
  Array wide = make_array(DType::float32, PyArray_NDIM(array), PyArray_DIMS(array));
  const ElementwiseTable& table = EXTENSOR_SELECT(elementwise_table)();
  const auto convert = dtype == DType::float16 ? table.widen_float16 : table.widen_bfloat16;
  convert(PyArray_DATA(from), data_of<float>(wide), PyArray_SIZE(array));
  return wide;
}

Array narrowed(Array wide, DType dtype) {
  if (!is_half(dtype)) return wide;
  Array out = make_array(dtype, PyArray_NDIM(wide), PyArray_DIMS(wide));
  const ElementwiseTable& table = EXTENSOR_SELECT(elementwise_table)();
  const auto convert = dtype == DType::float16 ? table.narrow_float16 : table.narrow_bfloat16;
  convert(data_of<float>(wide), PyArray_DATA(out), PyArray_SIZE(wide));
  return out;
}

PyObject* call_widened(KernelFunction function, PyObject* self, PyObject* const* args, Py_ssize_t count) {
  if (count > most_arguments) return not_covered();
  DType half = DType::other;
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (!PyArray_Check(args[i])) continue;
    const DType dtype = dtype_of(as_array(args[i]));
    if (is_float(dtype)) return not_covered();
    if (!is_half(dtype)) continue;
    if (half != DType::other && half != dtype) return not_covered();
    half = dtype;
  }
  if (half == DType::other) return not_covered();

  Array held[most_arguments];
  PyObject* wide[most_arguments];
  for (Py_ssize_t i = 0; i < count; ++i) {
    wide[i] = args[i];
    if (!PyArray_Check(args[i]) || !is_half(dtype_of(as_array(args[i])))) continue;
    held[i] = widened(as_array(args[i]));
    wide[i] = held[i].object();
  }
  return narrowed_results(owned(function(self, wide, count)), half).release();
}

}  // namespace extensor
