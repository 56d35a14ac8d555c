#define EXTENSOR_IMPORTS_NUMPY
#include "bindings/arrays.hpp"

#include <chrono>
#include <cstring>
#include <thread>

#include "bindings/exceptions.hpp"
#include "bindings/spare_arrays.hpp"
#include "core/allocation_failure.hpp"
#include "core/memory.hpp"
#include "kernels/copy/copy.hpp"

namespace extensor {
namespace {

constexpr size_t pooled_bytes = 64 << 10;

PyArray_Descr* descriptors[static_cast<int>(DType::other)];

// Owns one buffer of the pool; the base object of the array that uses it.
struct BufferObject {
  PyObject_HEAD
  void* data;
  size_t bytes;
};

void free_buffer_object(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  BufferObject* buffer = reinterpret_cast<BufferObject*>(self);
  recycle_buffer(buffer->data, buffer->bytes);
  PyObject_Free(self);
  Py_DECREF(type);
}

PyTypeObject* buffer_type = nullptr;

PyTypeObject* make_buffer_type() {
  static char doc[] = "Memory of an array, returned to the buffer pool when the array is gone.";
  PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(free_buffer_object)}, {Py_tp_doc, doc}, {0, nullptr}};
  PyType_Spec spec = {"extensor._native.Buffer", sizeof(BufferObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  return reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
}

size_t byte_count(DType dtype, int ndim, const npy_intp* shape) {
  size_t bytes = item_size(dtype);
  bool overflows = false;
  for (int axis = 0; axis < ndim; ++axis) {
    if (shape[axis] == 0) return 0;
    overflows |= __builtin_mul_overflow(bytes, static_cast<size_t>(shape[axis]), &bytes);
  }
  return overflows ? SIZE_MAX : bytes;
}

// Says what there was no memory for, in NumPy's words.
PyArrayObject* no_memory_for(PyArray_Descr* descriptor, int ndim, const npy_intp* shape) {
  PyObject* lengths = PyArray_IntTupleFromIntp(ndim, shape);
  if (lengths != nullptr) PyErr_Format(PyExc_MemoryError, "Unable to allocate an array with shape %S and data type %S", lengths, descriptor);
  Py_XDECREF(lengths);
  return nullptr;
}

PyArrayObject* new_pooled_array(PyArray_Descr* descriptor, size_t bytes, int ndim, const npy_intp* shape, const npy_intp* strides) {
  void* data = acquire_buffer(bytes);
  if (data == nullptr) return no_memory_for(descriptor, ndim, shape);
  BufferObject* buffer = PyObject_New(BufferObject, buffer_type);
  if (buffer == nullptr) {
    recycle_buffer(data, bytes);
    return nullptr;
  }
  buffer->data = data;
  buffer->bytes = bytes;
  Py_INCREF(descriptor);  // PyArray_NewFromDescr steals it
  PyObject* array = PyArray_NewFromDescr(&PyArray_Type, descriptor, ndim, shape, strides, data, NPY_ARRAY_WRITEABLE, nullptr);
  if (array == nullptr) {
    Py_DECREF(buffer);
    return nullptr;
  }
  PyArrayObject* typed = reinterpret_cast<PyArrayObject*>(array);
  if (PyArray_SetBaseObject(typed, reinterpret_cast<PyObject*>(buffer)) < 0) {
    Py_DECREF(array);
    return nullptr;
  }
  return typed;
}

}  // namespace

DTypeNumbers dtype_numbers;

void import_numpy() {
  if (_import_array() < 0) throw PythonError();
  buffer_type = make_buffer_type();
  if (buffer_type == nullptr) throw PythonError();
  const struct { DType dtype; int number; } known[] = {
      {DType::boolean, NPY_BOOL},   {DType::int8, NPY_INT8},      {DType::int16, NPY_INT16},   {DType::int32, NPY_INT32},
      {DType::int64, NPY_INT64},    {DType::uint8, NPY_UINT8},    {DType::uint16, NPY_UINT16}, {DType::uint32, NPY_UINT32},
      {DType::uint64, NPY_UINT64},  {DType::float16, NPY_HALF},   {DType::float32, NPY_FLOAT}, {DType::float64, NPY_DOUBLE}};
  for (DType& dtype : dtype_numbers.builtin) dtype = DType::other;
  // long and long long are two NumPy types of one size.
  dtype_numbers.builtin[NPY_LONGLONG] = DType::int64;
  dtype_numbers.builtin[NPY_ULONGLONG] = DType::uint64;
  for (auto [dtype, number] : known) {
    descriptors[static_cast<int>(dtype)] = PyArray_DescrFromType(number);
    dtype_numbers.builtin[number] = dtype;
  }

  const Ref<> module = owned(PyImport_ImportModule("ml_dtypes"));
  const Ref<> type = owned(PyObject_GetAttrString(module, "bfloat16"));
  PyArray_Descr* descriptor = nullptr;
  if (PyArray_DescrConverter(type, &descriptor) != NPY_SUCCEED) throw PythonError();
  dtype_numbers.bfloat16 = descriptor->type_num;
  descriptors[static_cast<int>(DType::bfloat16)] = descriptor;
}

DType dtype_of(PyArray_Descr* descriptor) { return PyArray_ISNBO(descriptor->byteorder) ? dtype_of_number(descriptor->type_num) : DType::other; }

PyArray_Descr* descriptor_of(DType dtype) { return descriptors[static_cast<int>(dtype)]; }

PyArrayObject* new_array(DType dtype, int ndim, const npy_intp* shape, const npy_intp* strides) {
  const size_t bytes = byte_count(dtype, ndim, shape);
  PyArray_Descr* descriptor = descriptor_of(dtype);
  if (bytes >= pooled_bytes) return new_pooled_array(descriptor, bytes, ndim, shape, strides);
  if (allocation_fails()) return no_memory_for(descriptor, ndim, shape);
  if (strides == nullptr)
    if (PyArrayObject* spare = take_spare_array(dtype, ndim, shape)) return spare;
  Py_INCREF(descriptor);  // PyArray_NewFromDescr steals it
  PyObject* array = PyArray_NewFromDescr(&PyArray_Type, descriptor, ndim, shape, nullptr, nullptr, 0, nullptr);
  if (array != nullptr && strides != nullptr) {
    // NumPy takes strides only together with memory; a small array of unusual layout is made C-contiguous
    // and then given its strides, which cover the same bytes.
    PyArrayObject* typed = reinterpret_cast<PyArrayObject*>(array);
    std::memcpy(PyArray_STRIDES(typed), strides, sizeof(npy_intp) * static_cast<size_t>(ndim));
    PyArray_UpdateFlags(typed, NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_F_CONTIGUOUS);
  }
  return reinterpret_cast<PyArrayObject*>(array);
}

bool has_own_memory(PyArrayObject* array) {
  if (PyArray_CHKFLAGS(array, NPY_ARRAY_OWNDATA)) return true;
  PyObject* base = PyArray_BASE(array);
  return base != nullptr && Py_TYPE(base) == buffer_type && Py_REFCNT(base) == 1;
}

Array view_of(PyArrayObject* array, int ndim, const npy_intp* shape, const npy_intp* strides, char* data, int flags) {
  PyArray_Descr* descriptor = PyArray_DESCR(array);
  Py_INCREF(descriptor);  // which the new array takes over
  PyObject* made = PyArray_NewFromDescr(&PyArray_Type, descriptor, ndim, shape, strides, data, flags, nullptr);
  Array view = owned(reinterpret_cast<PyArrayObject*>(made));
  if (PyArray_SetBaseObject(view, Py_NewRef(reinterpret_cast<PyObject*>(array))) < 0) throw PythonError();
  return view;
}

bool can_copy(PyArrayObject* array) {
  if (dtype_of(array) == DType::other || !is_readable(array) || PyArray_NDIM(array) > 32) return false;
  for (int axis = 0; axis < PyArray_NDIM(array); ++axis)
    if (PyArray_STRIDE(array, axis) % PyArray_ITEMSIZE(array) != 0) return false;
  return true;
}

Array copy_of(PyArrayObject* array) {
  const int ndim = PyArray_NDIM(array);
  int64_t shape[32], strides[32];
  for (int axis = 0; axis < ndim; ++axis) shape[axis] = PyArray_DIM(array, axis), strides[axis] = PyArray_STRIDE(array, axis);
  Array out = make_array(dtype_of(array), ndim, PyArray_DIMS(array));
  if (PyArray_SIZE(out) > 0) {
    MaybeReleaseGil unlocked(double(PyArray_NBYTES(out)) * 0.1);
    copy_to_dense(ndim, shape, strides, size_t(PyArray_ITEMSIZE(array)), PyArray_DATA(array), PyArray_DATA(out));
  }
  return out;
}

void MaybeReleaseGil::take_back_gil(PyThreadState* state) {
#ifdef __GLIBCXX__
  try {
    PyEval_RestoreThread(state);
  } catch (const abi::__forced_unwind&) {
    // Before Python 3.14 it ends the thread by an exception that must not leave this handler, nor pass the references that
    // the thread holds: so wait until the process is over, as later versions do.
    for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
  }
#else
  PyEval_RestoreThread(state);
#endif
}

namespace {

PyObject* call_guarded(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  const NativeKernel* kernel = kernel_context<NativeKernel>(self);
  return guarded([&] { return kernel->function(kernel->self, args, count); });
}

}  // namespace

const NativeKernel* native_kernel(PyObject* callable) {
  const auto guarded = reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(call_guarded));
  if (!PyCFunction_Check(callable) || PyCFunction_GET_FUNCTION(callable) != guarded) return nullptr;
  return kernel_context<NativeKernel>(PyCFunction_GET_SELF(callable));
}

Ref<> make_kernel(KernelFunction function, Ref<> memory) {
  static PyMethodDef definition = {"kernel", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(call_guarded)), METH_FASTCALL, nullptr};
  auto* kernel = new NativeKernel{function, memory.get()};
  PyObject* const capsule = PyCapsule_New(kernel, nullptr, [](PyObject* self) {
    const auto* gone = kernel_context<NativeKernel>(self);
    Py_DECREF(gone->self);
    delete gone;
  });
  if (capsule == nullptr) delete kernel;
  const Ref<> self = owned(capsule);
  memory.release();
  return owned(PyCFunction_New(&definition, self));
}

void add_kernel(PyObject* dict, const char* name, KernelFunction function, const void* context) {
  // Kernels live as long as the process, and so do their definitions.
  PyMethodDef* definition = new PyMethodDef{name, nullptr, METH_FASTCALL, nullptr};
  definition->ml_meth = reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(call_guarded));
  PyObject* inner = context == nullptr ? nullptr : owned(PyCapsule_New(const_cast<void*>(context), nullptr, nullptr)).release();
  const Ref<> self = owned(PyCapsule_New(new NativeKernel{function, inner}, nullptr, nullptr));
  const Ref<> callable = owned(PyCFunction_New(definition, self));
  if (PyDict_SetItemString(dict, name, callable) < 0) throw PythonError();
}

}  // namespace extensor
