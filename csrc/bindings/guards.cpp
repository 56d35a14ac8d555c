// Questions about the elements of an array, as Python functions. The answer is a position or None.
#include "bindings/arguments.hpp"
#include "kernels/guard/guard.hpp"

namespace extensor {
namespace {

constexpr double exact = 9007199254740992.0;  // ints up to here are doubles

// An int that is exact as a double; None leaves `given` false. False for anything else.
bool read_bound(PyObject* value, bool& given, double& bound) {
  given = value != Py_None;
  if (!given) return true;
  return PyLong_CheckExact(value) && read_number(value, bound) && bound >= -exact && bound <= exact;
}

// The array as guards read it, or nullptr.
PyArrayObject* readable(PyObject* value) {
  PyArrayObject* x = as_array(value);
  const bool fits = x != nullptr && guards_cover(dtype_of(x)) && PyArray_IS_C_CONTIGUOUS(x) && is_readable(x);
  return fits ? x : nullptr;
}

// The flat place as a tuple of positions along the axes; None for -1.
PyObject* position(PyArrayObject* x, int64_t place) {
  if (place < 0) Py_RETURN_NONE;
  Ref<> found = owned(PyTuple_New(PyArray_NDIM(x)));
  for (int axis = PyArray_NDIM(x) - 1; axis >= 0; --axis) {
    PyTuple_SET_ITEM(found.get(), axis, owned(PyLong_FromLongLong(place % PyArray_DIM(x, axis))).release());
    place /= PyArray_DIM(x, axis);
  }
  return found.release();
}

// first_outside(x, low, high, allowed)
PyObject* call_first_outside(PyObject*, PyObject* const* args, Py_ssize_t count) {
  PyArrayObject* x = count == 4 ? readable(args[0]) : nullptr;
  Bounds bounds{};
  if (x == nullptr || !read_bound(args[1], bounds.has_low, bounds.low) || !read_bound(args[2], bounds.has_high, bounds.high) ||
      !read_bound(args[3], bounds.allows, bounds.allowed))
    return not_covered();
  int64_t place;
  {
    MaybeReleaseGil released(double(PyArray_SIZE(x)) * 0.2);
    place = first_outside(dtype_of(x), PyArray_DATA(x), PyArray_SIZE(x), bounds);
  }
  return position(x, place);
}

// first_unlike(x, a, b)
PyObject* call_first_unlike(PyObject*, PyObject* const* args, Py_ssize_t count) {
  PyArrayObject* x = count == 3 ? readable(args[0]) : nullptr;
  bool given[2];
  double a = 0, b = 0;
  if (x == nullptr || !read_bound(args[1], given[0], a) || !read_bound(args[2], given[1], b) || !given[0] || !given[1]) return not_covered();
  int64_t place;
  {
    MaybeReleaseGil released(double(PyArray_SIZE(x)) * 0.2);
    place = first_unlike(dtype_of(x), PyArray_DATA(x), PyArray_SIZE(x), a, b);
  }
  return position(x, place);
}

}  // namespace

void bind_guards(PyObject* kernels) {
  add_kernel(kernels, "first_outside", call_first_outside);
  add_kernel(kernels, "first_unlike", call_first_unlike);
}

}  // namespace extensor
