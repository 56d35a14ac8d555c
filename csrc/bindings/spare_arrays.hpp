// Small arrays that a program has done with, for the next result of the same dtype and shape: most of what a small result costs
// is the making and the end of its array. Large ones come from the buffer pool in any case.
#pragma once

#include <vector>

#include "bindings/arrays.hpp"

namespace extensor {

// Whether an array that nobody else holds has its memory for itself too.
bool has_own_memory(PyArrayObject* array);

// Arrays of one dtype and shape. To be used under the interpreter lock.
class SpareArrays {
 public:
  SpareArrays(int typenum, std::vector<npy_intp> shape) : typenum_(typenum), shape_(std::move(shape)) {}
  ~SpareArrays();
  SpareArrays(const SpareArrays&) = delete;
  SpareArrays& operator=(const SpareArrays&) = delete;

  bool holds(int typenum, const std::vector<npy_intp>& shape) const { return typenum == typenum_ && shape == shape_; }
  bool holds(DType dtype, int ndim, const npy_intp* shape) const;

  // Keeps an array, whose reference it takes over. It may still have other holders: that is looked at when it is taken.
  void give(PyObject* array);

  // An array that belongs to nobody, contents undefined; nullptr if there is none.
  PyArrayObject* take();

 private:
  int typenum_;
  std::vector<npy_intp> shape_;
  std::vector<PyArrayObject*> arrays_;
};

// While it lives, new arrays of this thread may be taken from these.
class OfferSpareArrays {
 public:
  OfferSpareArrays(SpareArrays* const* kinds, size_t count);
  ~OfferSpareArrays();
  OfferSpareArrays(const OfferSpareArrays&) = delete;
  OfferSpareArrays& operator=(const OfferSpareArrays&) = delete;

 private:
  SpareArrays* const* kinds_before_;
  size_t count_before_;
};

// One of what is offered to this thread; nullptr if nothing fits.
PyArrayObject* take_spare_array(DType dtype, int ndim, const npy_intp* shape);

}  // namespace extensor
