// Attributes of a kernel, made from what a caller gave: axes counted from the front, flags, numbers.
#pragma once

#include "bindings/arrays.hpp"

namespace extensor::recorder {

// What stands for an attribute in the `plain` of an op:
extern PyObject* last_axis;   // the number of the last axis
extern PyObject* all_axes;    // the tuple of all axes
extern PyObject* flat_axis;   // None, all elements in a row; or the number of the axis that is given
extern PyObject* any_number;  // None, or the number that is given
extern PyObject* ones;        // 1, or the int or the tuple of ints that is given
extern PyObject* zeros;       // 0, or the int or the tuple of ints that is given
extern PyObject* any_ints;    // None, or the int or the tuple of ints that is given
extern PyObject* any_dtype;   // the dtype that is given
extern PyObject* key;         // what stands between brackets
extern PyObject* tensors;     // a list of tensors

// An int, or a tuple of ints; deeper, tuples of such.
bool is_ints(PyObject* value, int depth = 1);

// What a kernel gets for a key of tensors, ints, slices, None and ...: a tuple that has the ..., tensors as their arrays. A
// new reference; nullptr without an error set: in doubt.
PyObject* made_key(PyObject* value);

// Makes these and adds them to the module. False with a Python error set on failure.
bool add_markers(PyObject* module);

// The attribute that a kernel gets where the caller gave `value` (or nullptr) and `plain` stands for none: a new
// reference. nullptr without an error set: in doubt.
PyObject* made_attribute(PyObject* value, PyObject* plain, int ndim);

}  // namespace extensor::recorder
