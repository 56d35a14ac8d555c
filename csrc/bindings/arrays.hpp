// NumPy arrays at the border between Python and the kernels. Every binding includes this header and
// uses the raw NumPy C API from it; arrays.cpp alone defines the API table.
#pragma once

#include <Python.h>

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL extensor_numpy_api
#ifndef EXTENSOR_IMPORTS_NUMPY
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>

#include "bindings/ref.hpp"
#include "core/dtype.hpp"

namespace extensor {

using Array = Ref<PyArrayObject>;

// Called once when the module is imported.
void import_numpy();

// Our dtypes by NumPy's numbers; bfloat16 has one of its own that is not known before the import.
struct DTypeNumbers {
  DType builtin[NPY_NTYPES_LEGACY];
  int bfloat16 = -1;
};
extern DTypeNumbers dtype_numbers;

inline DType dtype_of_number(int number) {
  if (number >= 0 && number < NPY_NTYPES_LEGACY) return dtype_numbers.builtin[number];
  return number == dtype_numbers.bfloat16 ? DType::bfloat16 : DType::other;
}

// The dtype of an array in native byte order, DType::other for what no kernel takes.
inline DType dtype_of(PyArrayObject* array) { return dtype_of_number(PyArray_TYPE(array)); }
DType dtype_of(PyArray_Descr* descriptor);

// A borrowed descriptor for one of our dtypes.
PyArray_Descr* descriptor_of(DType dtype);

// True if kernels may read the array as it lies: aligned, native byte order.
inline bool is_readable(PyArrayObject* array) { return PyArray_ISALIGNED(array) && PyArray_ISNOTSWAPPED(array); }

// A new array, contents undefined; from 64 KiB on its memory comes from the buffer pool. C-contiguous, or with strides of the
// caller's choice, which must cover exactly the bytes of a dense array. nullptr with a Python error set when memory runs out.
PyArrayObject* new_array(DType dtype, int ndim, const npy_intp* shape, const npy_intp* strides = nullptr);

// The same for bindings: PythonError when memory runs out.
inline Array make_array(DType dtype, int ndim, const npy_intp* shape, const npy_intp* strides = nullptr) {
  return owned(new_array(dtype, ndim, shape, strides));
}

// A view of an array's memory, which it keeps alive, from `data` on.
Array view_of(PyArrayObject* array, int ndim, const npy_intp* shape, const npy_intp* strides, char* data, int flags);

// Whether copy_of can read the array.
bool can_copy(PyArrayObject* array);

// A C-contiguous copy in a new array.
Array copy_of(PyArrayObject* array);

// A new reference to NotImplemented: "not covered here, ask the reference kernel".
inline PyObject* not_covered() { return Py_NewRef(Py_NotImplemented); }

// Adds `function` to the dict of kernels under `name`. What it throws becomes a Python error (exceptions.hpp). The function's self
// is a capsule that holds `context`; read it with kernel_context. PythonError when memory runs out.
using KernelFunction = PyObject* (*)(PyObject* self, PyObject* const* args, Py_ssize_t count);

// What stands behind a function that add_kernel made, for callers that catch C++ exceptions themselves; nullptr for others.
struct NativeKernel {
  KernelFunction function;
  PyObject* self;
};
const NativeKernel* native_kernel(PyObject* callable);
void add_kernel(PyObject* dict, const char* name, KernelFunction function, const void* context = nullptr);

// A kernel with a memory of its own: each call gets `memory`, which goes with the last reference to the kernel.
Ref<> make_kernel(KernelFunction function, Ref<> memory);

template <class Context>
const Context* kernel_context(PyObject* self) {
  return static_cast<const Context*>(PyCapsule_GetPointer(self, nullptr));
}

// Releases the interpreter lock while it lives if the work is long enough to be worth it.
class MaybeReleaseGil {
 public:
  explicit MaybeReleaseGil(double work_ns) : state_(work_ns > 20e3 ? PyEval_SaveThread() : nullptr) {}
  ~MaybeReleaseGil() {
    if (state_ != nullptr) take_back_gil(state_);
  }
  MaybeReleaseGil(const MaybeReleaseGil&) = delete;
  MaybeReleaseGil& operator=(const MaybeReleaseGil&) = delete;

 private:
  // An interpreter that is going away does not give its lock back to a daemon thread: that thread waits for the end.
  static void take_back_gil(PyThreadState* state);
  PyThreadState* state_;
};

}  // namespace extensor
