// Which axes are reduced, and how what is reduced lies in memory.
#pragma once

#include "bindings/arguments.hpp"
#include "kernels/reduce/reduce.hpp"

namespace extensor {

// A bit per axis; false if `axes` is not a tuple of axes of a tensor of `ndim` dimensions.
inline bool read_axes(PyObject* axes, int ndim, uint64_t& reduced) {
  if (!PyTuple_Check(axes)) return false;
  reduced = 0;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(axes); ++i) {
    const int axis = read_axis(PyTuple_GET_ITEM(axes, i), ndim);
    if (axis < 0) return false;
    reduced |= uint64_t(1) << axis;
  }
  return true;
}

// Neighbouring axes that are all kept or all reduced become one. False if what is left is not one of the forms of
// ReduceLayout: kept, kept-reduced-kept, or reduced-kept-reduced.
inline bool find_layout(int ndim, const npy_intp* shape, uint64_t reduced, ReduceLayout& layout) {
  int64_t lengths[NPY_MAXDIMS];
  bool kinds[NPY_MAXDIMS];
  int groups = 0;
  for (int axis = 0; axis < ndim; ++axis) {
    if (shape[axis] == 1) continue;
    const bool kind = reduced >> axis & 1;
    if (groups > 0 && kinds[groups - 1] == kind) lengths[groups - 1] *= shape[axis];
    else lengths[groups] = shape[axis], kinds[groups++] = kind;
  }
  layout = ReduceLayout();
  int next = 0;
  if (groups == 3 && kinds[0]) {
    if (lengths[0] == 0) lengths[0] = 1, lengths[2] = 0;  // no pieces is one without elements
    layout.pieces = lengths[0], layout.outer = lengths[1], layout.length = lengths[2];
    layout.piece_stride = lengths[1] * lengths[2], layout.outer_stride = lengths[2];
    return true;
  }
  if (next < groups && !kinds[next]) layout.outer = lengths[next++];
  if (next < groups && kinds[next]) layout.length = lengths[next++];
  if (next < groups && !kinds[next]) layout.inner = lengths[next++];
  layout.length_stride = layout.inner;
  layout.outer_stride = layout.length * layout.inner;
  return next == groups;
}

// The shape of what is left, and its number of axes.
inline int reduced_shape(int ndim, const npy_intp* shape, uint64_t reduced, bool keepdims, npy_intp* left) {
  int count = 0;
  for (int axis = 0; axis < ndim; ++axis) {
    const bool kind = reduced >> axis & 1;
    if (!kind || keepdims) left[count++] = kind ? 1 : shape[axis];
  }
  return count;
}

}  // namespace extensor
