// The arrays that a kernel call is given and those that it returns.
#pragma once

#include <initializer_list>

#include "bindings/arguments.hpp"

namespace extensor {

// The arrays of a call, made dense and held until it is over. An argument that is None stays nullptr.
template <int most>
class Operands {
 public:
  Operands() = default;
  ~Operands() {
    for (PyArrayObject* array : arrays_) Py_XDECREF(array);
  }
  Operands(const Operands&) = delete;
  Operands& operator=(const Operands&) = delete;

  // False if the argument is neither None nor an array of `dtype` that can be read.
  bool take(int index, PyObject* argument, DType dtype) {
    if (argument == Py_None) return true;
    PyArrayObject* array = as_array(argument);
    if (array == nullptr || dtype_of(array) != dtype || !is_readable(array)) return false;
    arrays_[index] = dense(argument);
    if (arrays_[index] == nullptr) PyErr_Clear();
    return arrays_[index] != nullptr;
  }
  PyArrayObject* array(int index) const { return arrays_[index]; }
  template <class T>
  const T* data(int index) const {
    return arrays_[index] == nullptr ? nullptr : static_cast<const T*>(PyArray_DATA(arrays_[index]));
  }

 private:
  PyArrayObject* arrays_[most] = {};
};

template <class T>
T* data_of(PyArrayObject* array) {
  return array == nullptr ? nullptr : static_cast<T*>(PyArray_DATA(array));
}

// A tuple of `count` arrays, None for nullptr; takes them over. `made` says whether those that are wanted exist.
inline PyObject* results(PyArrayObject* const* arrays, Py_ssize_t count, bool made) {
  PyObject* tuple = made ? PyTuple_New(count) : nullptr;
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (tuple == nullptr) Py_XDECREF(arrays[i]);
    else PyTuple_SET_ITEM(tuple, i, arrays[i] == nullptr ? Py_NewRef(Py_None) : reinterpret_cast<PyObject*>(arrays[i]));
  }
  return tuple;
}

inline PyObject* results(std::initializer_list<PyArrayObject*> arrays, bool made) {
  return results(arrays.begin(), Py_ssize_t(arrays.size()), made);
}

}  // namespace extensor
