#include "bindings/recorder/attributes.hpp"

#include "bindings/arguments.hpp"
#include "bindings/recorder/objects.hpp"

namespace extensor::recorder {

PyObject* last_axis = nullptr;
PyObject* all_axes = nullptr;
PyObject* flat_axis = nullptr;
PyObject* any_number = nullptr;
PyObject* ones = nullptr;
PyObject* zeros = nullptr;
PyObject* any_ints = nullptr;
PyObject* any_dtype = nullptr;
PyObject* key = nullptr;
PyObject* tensors = nullptr;

namespace {

// What a kernel gets for the axes of its caller: None, an axis, or a tuple of them. nullptr without an error set: in doubt.
PyObject* made_axes(PyObject* value, int ndim) {
  const bool all = value == Py_None, single = PyLong_CheckExact(value);
  if (!all && !single && !PyTuple_CheckExact(value)) return nullptr;
  const Py_ssize_t count = all ? ndim : single ? 1 : PyTuple_GET_SIZE(value);
  uint64_t seen = 0;
  long axes[NPY_MAXDIMS];
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (i == NPY_MAXDIMS) return nullptr;
    axes[i] = all ? long(i) : read_axis_from_either_end(single ? value : PyTuple_GET_ITEM(value, i), ndim);
    if (axes[i] < 0 || seen >> axes[i] & 1) return nullptr;
    seen |= uint64_t(1) << axes[i];
  }
  PyObject* made = PyTuple_New(count);
  for (Py_ssize_t i = 0; made != nullptr && i < count; ++i) PyTuple_SET_ITEM(made, i, PyLong_FromLong(axes[i]));
  return made;
}

struct Marker {
  PyObject** place;
  const char *name, *text;
};
constexpr Marker markers[] = {{&last_axis, "LAST_AXIS", "last axis"},
                              {&all_axes, "ALL_AXES", "all axes"},
                              {&flat_axis, "FLAT_AXIS", "flat axis"},
                              {&any_number, "ANY_NUMBER", "any number"},
                              {&ones, "ONES", "ones"},
                              {&zeros, "ZEROS", "zeros"},
                              {&any_ints, "ANY_INTS", "any ints"},
                              {&any_dtype, "DTYPE", "dtype"},
                              {&key, "KEY", "key"},
                              {&tensors, "TENSORS", "tensors"}};

}  // namespace

bool is_ints(PyObject* value, int depth) {
  if (PyLong_CheckExact(value)) return true;
  if (!PyTuple_CheckExact(value) || depth == 0) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value); ++i)
    if (!is_ints(PyTuple_GET_ITEM(value, i), depth - 1)) return false;
  return true;
}

PyObject* made_key(PyObject* value) {
  const bool several = PyTuple_CheckExact(value);
  const Py_ssize_t count = several ? PyTuple_GET_SIZE(value) : 1;
  bool open = true;
  for (Py_ssize_t i = 0; several && i < count; ++i) open &= PyTuple_GET_ITEM(value, i) != Py_Ellipsis;
  open &= value != Py_Ellipsis;
  PyObject* made = PyTuple_New(count + open);
  for (Py_ssize_t i = 0; made != nullptr && i < count; ++i) {
    PyObject* part = several ? PyTuple_GET_ITEM(value, i) : value;
    if (PyObject_TypeCheck(part, tensor_base)) {
      part = reinterpret_cast<Tensor*>(part)->array;
      if (dtype_of(reinterpret_cast<PyArrayObject*>(part)) > DType::uint64) part = nullptr;
    } else if (!PyLong_CheckExact(part) && !PySlice_Check(part) && part != Py_None && part != Py_Ellipsis) {
      part = nullptr;
    }
    if (part == nullptr) {
      Py_DECREF(made);
      return nullptr;
    }
    PyTuple_SET_ITEM(made, i, Py_NewRef(part));
  }
  if (made != nullptr && open) PyTuple_SET_ITEM(made, count, Py_NewRef(Py_Ellipsis));
  return made;
}

bool add_markers(PyObject* module) {
  for (const Marker& marker : markers) {
    *marker.place = PyUnicode_InternFromString(marker.text);
    if (*marker.place == nullptr || PyModule_AddObjectRef(module, marker.name, *marker.place) < 0) return false;
  }
  return true;
}

PyObject* made_attribute(PyObject* value, PyObject* plain, int ndim) {
  if (plain == last_axis || plain == all_axes || plain == flat_axis) {
    if (ndim == 0) return nullptr;
    if (plain == flat_axis && (value == nullptr || value == Py_None)) return Py_NewRef(Py_None);
    if (plain == all_axes) return made_axes(value != nullptr ? value : Py_None, ndim);
    const long axis = value != nullptr ? read_axis_from_either_end(value, ndim) : ndim - 1;
    return axis < 0 ? nullptr : PyLong_FromLong(axis);
  }
  if (plain == any_number) {
    if (value == nullptr || value == Py_None) return Py_NewRef(Py_None);
    return PyFloat_CheckExact(value) || PyLong_CheckExact(value) ? Py_NewRef(value) : nullptr;
  }
  if (plain == any_ints && (value == nullptr || value == Py_None)) return Py_NewRef(Py_None);
  if (plain == ones || plain == zeros || plain == any_ints) {
    if (value == nullptr) return PyLong_FromLong(plain == ones);
    return is_ints(value) ? Py_NewRef(value) : nullptr;
  }
  if (plain == any_dtype) return value != nullptr && PyArray_DescrCheck(value) ? Py_NewRef(value) : nullptr;
  if (value == nullptr || value == plain) return Py_NewRef(plain);
  // keepdims, an eps, the needs of a backward, the reduction of a loss
  const bool alike = (PyFloat_CheckExact(plain) && PyFloat_CheckExact(value)) || (PyBool_Check(plain) && PyBool_Check(value)) || (PyTuple_CheckExact(plain) && PyTuple_CheckExact(value)) ||
                     (PyUnicode_CheckExact(plain) && PyUnicode_CheckExact(value));
  return alike ? Py_NewRef(value) : nullptr;
}

}  // namespace extensor::recorder
