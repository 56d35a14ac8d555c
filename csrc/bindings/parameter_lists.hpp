// Parallel lists of arrays, as the steps of optimisers take and return them.
#pragma once

#include "bindings/arguments.hpp"

namespace extensor {

// Lists of equal length whose i-th entries are arrays of one shape and dtype; `optional` may hold None.
inline bool are_parallel(PyObject* const* lists, int count, PyObject* optional) {
  if (!PyList_CheckExact(lists[0])) return false;
  const Py_ssize_t length = PyList_GET_SIZE(lists[0]);
  for (int k = 0; k < count; ++k) {
    if (!PyList_CheckExact(lists[k]) || PyList_GET_SIZE(lists[k]) != length) return false;
    for (Py_ssize_t i = 0; i < length; ++i) {
      PyObject* entry = PyList_GET_ITEM(lists[k], i);
      if (entry == Py_None && lists[k] == optional) continue;
      if (!PyArray_Check(entry) || !PyArray_Check(PyList_GET_ITEM(lists[0], i))) return false;
      PyArrayObject* array = reinterpret_cast<PyArrayObject*>(entry);
      PyArrayObject* first = reinterpret_cast<PyArrayObject*>(PyList_GET_ITEM(lists[0], i));
      const DType dtype = dtype_of(array);
      if (dtype != dtype_of(first) || !is_float(dtype) || !is_readable(array) || !PyArray_SAMESHAPE(array, first)) return false;
    }
  }
  return true;
}

// New lists of `length` entries, which are filled one after the other.
template <int count>
struct Lists {
  explicit Lists(Py_ssize_t length) {
    for (Ref<>& list : lists) list = owned(PyList_New(length));
  }
  // Takes over.
  void put(int k, Py_ssize_t i, Ref<> value) { PyList_SET_ITEM(lists[k].get(), i, value.release()); }
  // What a kernel returned, one array or a tuple of arrays, each in a list of its own; false if it covers this not.
  bool put_all(Py_ssize_t i, Ref<> outputs) {
    if (outputs == Py_NotImplemented) return false;
    if (!PyTuple_CheckExact(outputs.get())) {
      put(0, i, std::move(outputs));
      return true;
    }
    for (int k = 0; k < PyTuple_GET_SIZE(outputs.get()); ++k) put(k, i, shared(PyTuple_GET_ITEM(outputs.get(), k)));
    return true;
  }
  Ref<> lists[count];
};

// The numbers and flags at the end of a call.
template <int count>
bool read_numbers(PyObject* const* args, double (&numbers)[count]) {
  for (int i = 0; i < count; ++i)
    if (!read_number(args[i], numbers[i])) return false;
  return true;
}

}  // namespace extensor
