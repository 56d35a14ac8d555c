#include "bindings/half.hpp"

#include "kernels/elementwise/elementwise.hpp"

namespace extensor {
namespace {

constexpr Py_ssize_t most_arguments = 16;

bool is_half(DType dtype) { return dtype == DType::float16 || dtype == DType::bfloat16; }

// A new float32 array with the values of `array`.
PyObject* widened(PyArrayObject* array, DType dtype) {
  PyArrayObject* dense = reinterpret_cast<PyArrayObject*>(
      PyArray_FromArray(array, nullptr, NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED | NPY_ARRAY_NOTSWAPPED));
  if (dense == nullptr) return nullptr;
  PyArrayObject* wide = new_array(DType::float32, PyArray_NDIM(array), PyArray_DIMS(array));
  if (wide != nullptr) {
    const ElementwiseTable& table = EXTENSOR_SELECT(elementwise_table)();
    const auto convert = dtype == DType::float16 ? table.widen_float16 : table.widen_bfloat16;
    convert(PyArray_DATA(dense), static_cast<float*>(PyArray_DATA(wide)), PyArray_SIZE(array));
  }
  Py_DECREF(dense);
  return reinterpret_cast<PyObject*>(wide);
}

// Takes over `result`: its float32 arrays become arrays of `dtype`, everything else stays.
PyObject* narrowed(PyObject* result, DType dtype) {
  if (PyTuple_Check(result)) {
    PyObject* tuple = PyTuple_New(PyTuple_GET_SIZE(result));
    for (Py_ssize_t i = 0; tuple != nullptr && i < PyTuple_GET_SIZE(result); ++i) {
      PyObject* item = narrowed(Py_NewRef(PyTuple_GET_ITEM(result, i)), dtype);
      if (item == nullptr) Py_CLEAR(tuple);
      else PyTuple_SET_ITEM(tuple, i, item);
    }
    Py_DECREF(result);
    return tuple;
  }
  PyArrayObject* wide = reinterpret_cast<PyArrayObject*>(result);
  if (!PyArray_Check(result) || dtype_of(wide) != DType::float32) return result;
  PyArrayObject* out = new_array(dtype, PyArray_NDIM(wide), PyArray_DIMS(wide));
  if (out != nullptr) {
    const ElementwiseTable& table = EXTENSOR_SELECT(elementwise_table)();
    const auto convert = dtype == DType::float16 ? table.narrow_float16 : table.narrow_bfloat16;
    convert(static_cast<const float*>(PyArray_DATA(wide)), PyArray_DATA(out), PyArray_SIZE(wide));
  }
  Py_DECREF(result);
  return reinterpret_cast<PyObject*>(out);
}

}  // namespace

PyObject* call_widened(KernelFunction function, PyObject* self, PyObject* const* args, Py_ssize_t count) {
  if (count > most_arguments) return not_covered();
  DType half = DType::other;
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (!PyArray_Check(args[i])) continue;
    const DType dtype = dtype_of(reinterpret_cast<PyArrayObject*>(args[i]));
    if (dtype == DType::float32 || dtype == DType::float64) return not_covered();
    if (!is_half(dtype)) continue;
    if (half != DType::other && half != dtype) return not_covered();
    half = dtype;
  }
  if (half == DType::other) return not_covered();

  PyObject* wide[most_arguments] = {};
  PyObject* result = nullptr;
  bool converted = true;
  for (Py_ssize_t i = 0; i < count && converted; ++i) {
    PyArrayObject* array = reinterpret_cast<PyArrayObject*>(args[i]);
    wide[i] = PyArray_Check(args[i]) && is_half(dtype_of(array)) ? widened(array, half) : Py_NewRef(args[i]);
    converted = wide[i] != nullptr;
  }
  if (converted) result = function(self, wide, count);
  for (PyObject* argument : wide) Py_XDECREF(argument);
  return result == nullptr ? nullptr : narrowed(result, half);
}

}  // namespace extensor
