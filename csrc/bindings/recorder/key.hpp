// The kind of a call, as words: the op, dtype and shape of each tensor, the value of each option, the modes of the thread.
// Everything that the readable body of an op can look at is in it, so calls with the same key get the same decision.
#pragma once

#include <cstdint>
#include <cstring>

#include "bindings/recorder/objects.hpp"

namespace extensor::recorder {

constexpr int max_words = 256, max_leaves = 64, max_held = 16, max_depth = 3;

class Key {
 public:
  Key() = default;
  Key(const Key&) = delete;
  Key& operator=(const Key&) = delete;
  ~Key() {
    for (int i = 0; i < leaf_count; ++i) {
      Py_DECREF(leaves[i]);
      Py_DECREF(values[i]);
    }
  }

  // False if the call has an argument whose value no key can hold: an array, a generator, a very long list.
  bool read(const Op* op, PyObject* const* args, Py_ssize_t count, PyObject* kwnames, uint64_t modes) {
    if (count > max_leaves) return false;
    words[0] = op->id | uint64_t(count) << 43 | modes << 50;
    word_count = 1;
    for (Py_ssize_t i = 0; i < count; ++i) {
      if (op->is_number(i, args[i])) {
        if (!push(number) || !add_leaf(args[i], args[i])) return false;
      } else if (!add(args[i], 0)) {
        return false;
      }
    }
    const Py_ssize_t named = kwnames == nullptr ? 0 : PyTuple_GET_SIZE(kwnames);
    for (Py_ssize_t i = 0; i < named; ++i) {
      if (!add_text(PyTuple_GET_ITEM(kwnames, i)) || !add(args[count + i], 0)) return false;
    }
    hash = 0;
    for (int i = 0; i < word_count; ++i) {
      const __uint128_t product = __uint128_t(words[i] ^ hash) * 0x9e3779b97f4a7c15u;
      hash = uint64_t(product) ^ uint64_t(product >> 64);
    }
    hash = (hash ^ hash >> 32) * 0xd6e8feb86659fd93u;  // tables look at its lowest bits, which shapes alone hardly reach
    hash ^= hash >> 32;
    return true;
  }

  // Tensors and numbers that are handed to kernels, in order, and what kernels get of them. Both are owned: while a kernel runs
  // without the interpreter lock, another thread may give a parameter a new array, or empty the list that a tensor came in.
  PyObject* leaves[max_leaves];
  PyObject* values[max_leaves];
  int leaf_count = 0;
  bool requires_grad = false;

  uint64_t words[max_words];
  int word_count = 0;
  uint64_t hash = 0;
  PyObject* held[max_held];  // objects whose addresses are words; borrowed
  int held_count = 0;

 private:
  enum Tag : uint64_t { tensor = 1, vector, matrix, same_tensor, same_array, number, none, ellipsis, yes, no, integer, long_integer, real, text, tuple, list, slice, object };

  bool push(uint64_t word) {
    if (word_count == max_words) return false;
    words[word_count++] = word;
    return true;
  }

  bool add_leaf(PyObject* leaf, PyObject* value) {
    if (leaf_count == max_leaves) return false;
    leaves[leaf_count] = Py_NewRef(leaf);
    values[leaf_count++] = Py_NewRef(value);
    return true;
  }

  bool add_tensor(PyObject* value) {
    auto* self = reinterpret_cast<Tensor*>(value);
    if (is_on_device(self->array)) return false;
    auto* array = reinterpret_cast<PyArrayObject*>(self->array);
    requires_grad |= self->requires_grad != 0;
    for (int i = 0; i < leaf_count; ++i) {
      if (values[i] != self->array) continue;
      const uint64_t tag = leaves[i] == value ? same_tensor : same_array;
      return push(tag | uint64_t(i) << 8 | uint64_t(self->requires_grad != 0) << 16) && (leaves[i] == value || add_leaf(value, self->array));
    }
    const int ndim = PyArray_NDIM(array);
    const npy_intp* shape = PyArray_DIMS(array);
    if (word_count + 1 + ndim > max_words || !add_leaf(value, self->array)) return false;
    // Bits: the tag 0-5, gradient 6, byte order 7, dtype 8-19, then the lengths of a vector or a matrix, or the number of axes.
    const uint64_t head = uint64_t(self->requires_grad != 0) << 6 | uint64_t(!PyArray_ISNOTSWAPPED(array)) << 7 | uint64_t(PyArray_TYPE(array)) << 8;
    if (ndim == 1 && shape[0] < int64_t(1) << 43) return push(vector | head | uint64_t(shape[0]) << 20);
    if (ndim == 2 && (shape[0] | shape[1]) < 1 << 22) return push(matrix | head | uint64_t(shape[0]) << 20 | uint64_t(shape[1]) << 42);
    words[word_count++] = tensor | head | uint64_t(ndim) << 20;
    for (int i = 0; i < ndim; ++i) words[word_count++] = uint64_t(shape[i]);
    return true;
  }

  bool add_text(PyObject* value) {
    if (!PyUnicode_IS_COMPACT_ASCII(value)) return false;
    const Py_ssize_t length = PyUnicode_GET_LENGTH(value);
    const int needed = int((length + 7) / 8);
    if (length > 256 || word_count + 1 + needed > max_words) return false;
    words[word_count++] = text | uint64_t(length) << 8;
    if (needed > 0) words[word_count + needed - 1] = 0;
    std::memcpy(words + word_count, PyUnicode_1BYTE_DATA(value), size_t(length));
    word_count += needed;
    return true;
  }

  bool add_items(PyObject* const* items, Py_ssize_t count, Tag tag, int depth) {
    if (depth == max_depth || !push(tag | uint64_t(count) << 8)) return false;
    for (Py_ssize_t i = 0; i < count; ++i)
      if (!add(items[i], depth + 1)) return false;
    return true;
  }

  bool add(PyObject* value, int depth) {
    PyTypeObject* type = Py_TYPE(value);
    if (type == tensor_type) return add_tensor(value);
    if (value == Py_None) return push(none);
    if (value == Py_True) return push(yes);
    if (value == Py_False) return push(no);
    if (value == Py_Ellipsis) return push(ellipsis);
    if (type == &PyLong_Type) {
      int overflow;
      const long found = PyLong_AsLongAndOverflow(value, &overflow);
      if (overflow != 0) return false;
      if (found >> 55 == 0 || found >> 55 == -1) return push(integer | uint64_t(found) << 8);  // beside its tag, as most are
      return push(long_integer) && push(uint64_t(found));
    }
    if (type == &PyFloat_Type) {
      const double found = PyFloat_AS_DOUBLE(value);
      uint64_t bits;
      std::memcpy(&bits, &found, sizeof bits);
      return push(real) && push(bits);
    }
    if (type == &PyUnicode_Type) return add_text(value);
    if (type == &PyTuple_Type) return add_items(reinterpret_cast<PyTupleObject*>(value)->ob_item, PyTuple_GET_SIZE(value), tuple, depth);
    if (type == &PyList_Type) return add_items(reinterpret_cast<PyListObject*>(value)->ob_item, PyList_GET_SIZE(value), list, depth);
    if (type == &PySlice_Type) return add_items(&reinterpret_cast<PySliceObject*>(value)->start, 3, slice, depth);
    if (is_tensor(value)) return is_our_subclass(type) && add_tensor(value);  // asked late: it walks through the bases of a class
    // A class made in Python may change.
    if (PyArray_DescrCheck(value) || (PyType_Check(value) && !(reinterpret_cast<PyTypeObject*>(value)->tp_flags & Py_TPFLAGS_HEAPTYPE))) {
      if (held_count == max_held) return false;
      held[held_count++] = value;
      return push(object) && push(reinterpret_cast<uint64_t>(value));
    }
    return false;
  }
};

}  // namespace extensor::recorder
