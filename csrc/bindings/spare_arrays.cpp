#include "bindings/spare_arrays.hpp"

#include <algorithm>

namespace extensor {
namespace {

constexpr size_t most_of_a_kind = 16;

struct Offered {
  SpareArrays* const* kinds;
  size_t count;
};
__thread Offered offered __attribute__((tls_model("initial-exec")));  // its memory comes with the thread, as that of `state`

// Whether nobody holds the array or watches its end, and nobody who held it has changed what it is.
bool is_free(PyArrayObject* array, int typenum, const std::vector<npy_intp>& shape) {
  auto* object = reinterpret_cast<PyObject*>(array);
  if (Py_REFCNT(object) != 1 || Py_TYPE(object) != &PyArray_Type) return false;
  if (*reinterpret_cast<PyObject**>(reinterpret_cast<char*>(object) + PyArray_Type.tp_weaklistoffset) != nullptr) return false;
  constexpr int wanted = NPY_ARRAY_OWNDATA | NPY_ARRAY_WRITEABLE | NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED;
  return PyArray_CHKFLAGS(array, wanted) && PyArray_BASE(array) == nullptr && PyArray_DESCR(array) == descriptor_of(dtype_of_number(typenum)) &&
         PyArray_NDIM(array) == int(shape.size()) && std::equal(shape.begin(), shape.end(), PyArray_DIMS(array));
}

}  // namespace

SpareArrays::~SpareArrays() {
  for (PyArrayObject* array : arrays_) Py_DECREF(array);
}

bool SpareArrays::holds(DType dtype, int ndim, const npy_intp* shape) const {
  return dtype_of_number(typenum_) == dtype && int(shape_.size()) == ndim && std::equal(shape_.begin(), shape_.end(), shape);
}

void SpareArrays::give(PyObject* array) {
  // A view would never be taken, and hold all that it is a part of.
  const bool fits = arrays_.size() < most_of_a_kind && PyArray_CheckExact(array) && PyArray_BASE(reinterpret_cast<PyArrayObject*>(array)) == nullptr;
  if (fits) arrays_.push_back(reinterpret_cast<PyArrayObject*>(array));
  else Py_DECREF(array);
}

PyArrayObject* SpareArrays::take() {
  while (!arrays_.empty()) {
    PyArrayObject* array = arrays_.back();
    arrays_.pop_back();
    if (is_free(array, typenum_, shape_)) return array;
    Py_DECREF(array);
  }
  return nullptr;
}

OfferSpareArrays::OfferSpareArrays(SpareArrays* const* kinds, size_t count) : kinds_before_(offered.kinds), count_before_(offered.count) {
  offered = {kinds, count};
}

OfferSpareArrays::~OfferSpareArrays() { offered = {kinds_before_, count_before_}; }

PyArrayObject* take_spare_array(DType dtype, int ndim, const npy_intp* shape) {
  for (size_t i = 0; i < offered.count; ++i)
    if (offered.kinds[i] != nullptr && offered.kinds[i]->holds(dtype, ndim, shape)) return offered.kinds[i]->take();
  return nullptr;
}

}  // namespace extensor
