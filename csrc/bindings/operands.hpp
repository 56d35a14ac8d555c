// The arrays that a kernel call is given and those that it returns.
#pragma once

#include <initializer_list>

#include "bindings/arguments.hpp"

namespace extensor {

// The arrays of a call, made dense and held until it is over. An argument that is None stays nullptr.
template <int most>
class Operands {
 public:
  // False if the argument is neither None nor an array of `dtype` that can be read.
  bool take(int index, PyObject* argument, DType dtype) {
    if (argument == Py_None) return true;
    PyArrayObject* array = as_array(argument);
    if (array == nullptr || dtype_of(array) != dtype || !is_readable(array)) return false;
    arrays_[index] = dense(array);
    return true;
  }
  PyArrayObject* array(int index) const { return arrays_[index]; }
  template <class T>
  const T* data(int index) const {
    return data_of<const T>(arrays_[index]);
  }

 private:
  Array arrays_[most];
};

// A new array if it is wanted.
inline Array make_wanted(bool wanted, DType dtype, int ndim, const npy_intp* shape) {
  return wanted ? make_array(dtype, ndim, shape) : Array();
}

// A new tuple of arrays, which it takes over; None for those that there are not.
inline PyObject* tuple_of(Array* arrays, Py_ssize_t count) {
  Ref<> tuple = owned(PyTuple_New(count));
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* item = arrays[i].release();
    PyTuple_SET_ITEM(tuple.get(), i, item == nullptr ? Py_NewRef(Py_None) : item);
  }
  return tuple.release();
}
template <int count>
PyObject* tuple_of(Array (&arrays)[count]) {
  return tuple_of(arrays, count);
}

// The tuple of gradient(0) and gradient(1), which may be None; NotImplemented as soon as one of them is.
template <class Gradient>
PyObject* pair_of_gradients(const Gradient& gradient) {
  Ref<> first = gradient(0);
  if (first == Py_NotImplemented) return first.release();
  Ref<> second = gradient(1);
  if (second == Py_NotImplemented) return second.release();
  return owned(PyTuple_Pack(2, first.get(), second.get())).release();
}

}  // namespace extensor
