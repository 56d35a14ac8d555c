// Pooling over regions as Python functions.
#include "kernels/pooling/regions.hpp"

#include <vector>

#include "bindings/arguments.hpp"
#include "bindings/half.hpp"

namespace extensor {
namespace {

// The regions as kernels take them, and the lists that they point into.
struct ReadRegions {
  Regions regions;
  std::vector<int64_t> lists[3][2];
  std::vector<double> sizes[3];

  // Beside the shape (N, C, ...) of what they lie in. False if they do not fit.
  bool read(PyObject* tuple, int ndim, const npy_intp* x) {
    const int count = ndim - 2;
    if (!PyTuple_Check(tuple) || count < 1 || count > 3 || PyTuple_GET_SIZE(tuple) != count) return false;
    regions.planes = x[0] * x[1];
    for (int d = 0; d < 3; ++d) {
      const int axis = d - (3 - count);
      regions.x[d] = axis < 0 ? 1 : x[2 + axis];
      regions.step[d] = 1;
      if (axis < 0) lists[d][0] = {0}, lists[d][1] = {1};
      else if (!read_axis_of(PyTuple_GET_ITEM(tuple, axis), d)) return false;
      regions.y[d] = int64_t(lists[d][0].size());
      regions.begin[d] = lists[d][0].data();
      regions.end[d] = lists[d][1].data();
    }
    return true;
  }

  // As many numbers as there are regions, for each direction.
  bool read_sizes(PyObject* tuple, int ndim) {
    const int count = ndim - 2;
    if (!PyTuple_Check(tuple) || PyTuple_GET_SIZE(tuple) != count) return false;
    for (int d = 0; d < 3; ++d) {
      const int axis = d - (3 - count);
      sizes[d].assign(size_t(regions.y[d]), 1.0);
      if (axis >= 0) {
        PyObject* along = PyTuple_GET_ITEM(tuple, axis);
        if (!PyTuple_Check(along) || PyTuple_GET_SIZE(along) != regions.y[d]) return false;
        for (size_t i = 0; i < sizes[d].size(); ++i)
          if (!read_number(PyTuple_GET_ITEM(along, Py_ssize_t(i)), sizes[d][i]) || !(sizes[d][i] > 0)) return false;
      }
      regions.size[d] = sizes[d].data();
    }
    return true;
  }

 private:
  // (begins, ends, step)
  bool read_axis_of(PyObject* entry, int d) {
    if (!PyTuple_Check(entry) || PyTuple_GET_SIZE(entry) != 3) return false;
    PyObject *begins = PyTuple_GET_ITEM(entry, 0), *ends = PyTuple_GET_ITEM(entry, 1);
    if (!PyTuple_Check(begins) || !PyTuple_Check(ends)) return false;
    const Py_ssize_t count = PyTuple_GET_SIZE(begins);
    lists[d][0].resize(size_t(count));
    lists[d][1].resize(size_t(count));
    regions.step[d] = read_below(PyTuple_GET_ITEM(entry, 2), INT32_MAX);
    if (count < 1 || regions.step[d] < 1 || !read_wholes(begins, lists[d][0].data(), count) || !read_wholes(ends, lists[d][1].data(), count)) return false;
    for (size_t i = 0; i < size_t(count); ++i)
      if (lists[d][0][i] >= lists[d][1][i] || lists[d][1][i] > regions.x[d]) return false;
    return true;
  }
};

// An array (N, C, ...) in a dtype that is covered.
PyArrayObject* as_field(PyObject* object) {
  PyArrayObject* array = as_array(object);
  return array != nullptr && PyArray_NDIM(array) >= 3 && is_readable(array) && is_float(dtype_of(array)) ? array : nullptr;
}

// (N, C, regions in each direction)
void pooled_shape(const Regions& s, int ndim, const npy_intp* x, npy_intp* shape) {
  shape[0] = x[0], shape[1] = x[1];
  for (int axis = 2; axis < ndim; ++axis) shape[axis] = npy_intp(s.y[3 - ndim + axis]);
}

bool fits(PyArrayObject* g, const Regions& s, int ndim, const npy_intp* x) {
  npy_intp shape[5];
  pooled_shape(s, ndim, x, shape);
  return has_shape(g, ndim, shape);
}

const RegionTable& table() { return EXTENSOR_SELECT(region_table)(); }

// x, regions, and for means their sizes; run(regions, x, out).
template <class Run>
PyObject* pooled(PyObject* const* args, bool is_mean, DType result, const Run& run) {
  PyArrayObject* x = as_array(args[0]);
  ReadRegions found;
  const int ndim = PyArray_NDIM(x);
  if (!found.read(args[1], ndim, PyArray_DIMS(x)) || (is_mean && !found.read_sizes(args[2], ndim))) return not_covered();
  npy_intp shape[5];
  pooled_shape(found.regions, ndim, PyArray_DIMS(x), shape);
  const Array given = dense(x);
  Array out = make_array(result, ndim, shape);
  if (PyArray_SIZE(out) > 0) {
    MaybeReleaseGil unlocked(double(found.regions.planes) * region_ns(found.regions));
    run(found.regions, given, out);
  }
  return reinterpret_cast<PyObject*>(out.release());
}

// region_max(x, regions)
PyObject* call_max(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  if (count != 2) return not_covered();
  if (as_field(args[0]) == nullptr) return call_widened(call_max, self, args, count);
  const DType dtype = dtype_of(as_array(args[0]));
  return pooled(args, false, dtype, [&](const Regions& s, PyArrayObject* x, PyArrayObject* out) {
    if (dtype == DType::float32) table().max32(s, data_of<float>(x), data_of<float>(out));
    else table().max64(s, data_of<double>(x), data_of<double>(out));
  });
}

// region_max_indices(x, regions)
PyObject* call_max_indices(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count != 2 || as_field(args[0]) == nullptr) return not_covered();
  const DType dtype = dtype_of(as_array(args[0]));
  return pooled(args, false, DType::int64, [&](const Regions& s, PyArrayObject* x, PyArrayObject* out) {
    if (dtype == DType::float32) table().places32(s, data_of<float>(x), data_of<int64_t>(out));
    else table().places64(s, data_of<double>(x), data_of<int64_t>(out));
  });
}

// region_mean(x, regions, sizes)
PyObject* call_mean(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  if (count != 3) return not_covered();
  if (as_field(args[0]) == nullptr) return call_widened(call_mean, self, args, count);
  const DType dtype = dtype_of(as_array(args[0]));
  return pooled(args, true, dtype, [&](const Regions& s, PyArrayObject* x, PyArrayObject* out) {
    if (dtype == DType::float32) table().mean32(s, data_of<float>(x), data_of<float>(out));
    else table().mean64(s, data_of<double>(x), data_of<double>(out));
  });
}

// region_max_backward(g, x, regions)
PyObject* call_max_backward(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  if (count != 3) return not_covered();
  PyArrayObject *upstream = as_field(args[0]), *given = as_field(args[1]);
  if (upstream == nullptr || given == nullptr) return call_widened(call_max_backward, self, args, count);
  ReadRegions found;
  const int ndim = PyArray_NDIM(given);
  const DType dtype = dtype_of(given);
  if (dtype_of(upstream) != dtype || !found.read(args[2], ndim, PyArray_DIMS(given)) || !fits(upstream, found.regions, ndim, PyArray_DIMS(given)))
    return not_covered();
  const Array g = dense(upstream), x = dense(given);
  Array out = make_array(dtype, ndim, PyArray_DIMS(given));
  if (PyArray_SIZE(out) > 0) {
    MaybeReleaseGil unlocked(double(found.regions.planes) * region_ns(found.regions));
    if (dtype == DType::float32) table().max_backward32(found.regions, data_of<float>(g), data_of<float>(x), data_of<float>(out));
    else table().max_backward64(found.regions, data_of<double>(g), data_of<double>(x), data_of<double>(out));
  }
  return reinterpret_cast<PyObject*>(out.release());
}

// region_mean_backward(g, shape, regions, sizes)
PyObject* call_mean_backward(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  if (count != 4) return not_covered();
  PyArrayObject* upstream = as_field(args[0]);
  if (upstream == nullptr) return call_widened(call_mean_backward, self, args, count);
  ReadRegions found;
  int ndim;
  npy_intp shape[NPY_MAXDIMS];
  if (!read_shape(args[1], ndim, shape) || !found.read(args[2], ndim, shape) || !found.read_sizes(args[3], ndim) ||
      !fits(upstream, found.regions, ndim, shape))
    return not_covered();
  const DType dtype = dtype_of(upstream);
  const Array g = dense(upstream);
  Array out = make_array(dtype, ndim, shape);
  if (PyArray_SIZE(out) > 0) {
    MaybeReleaseGil unlocked(double(found.regions.planes) * region_ns(found.regions));
    if (dtype == DType::float32) table().mean_backward32(found.regions, data_of<float>(g), data_of<float>(out));
    else table().mean_backward64(found.regions, data_of<double>(g), data_of<double>(out));
  }
  return reinterpret_cast<PyObject*>(out.release());
}

}  // namespace

void bind_regions(PyObject* kernels) {
  add_kernel(kernels, "region_max", call_max);
  add_kernel(kernels, "region_max_backward", call_max_backward);
  add_kernel(kernels, "region_max_indices", call_max_indices);
  add_kernel(kernels, "region_mean", call_mean);
  add_kernel(kernels, "region_mean_backward", call_mean_backward);
}

}  // namespace extensor
