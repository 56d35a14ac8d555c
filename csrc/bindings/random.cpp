// Random numbers as Python functions.
#include "bindings/arguments.hpp"
#include "kernels/random/pcg64.hpp"

namespace extensor {
namespace {

// pcg64_at_least(stream, shape, p)
PyObject* call_pcg64_at_least(PyObject*, PyObject* const* args, Py_ssize_t count) {
  PyArrayObject* words = count == 3 ? as_array(args[0]) : nullptr;
  int ndim;
  npy_intp shape[NPY_MAXDIMS];
  double p;
  if (words == nullptr || PyArray_TYPE(words) != NPY_UINT64 || PyArray_SIZE(words) != 4 || !PyArray_ISCARRAY_RO(words) ||
      !read_shape(args[1], ndim, shape) || !read_number(args[2], p) || !(p >= 0 && p <= 1))
    return not_covered();
  const uint64_t* word = static_cast<const uint64_t*>(PyArray_DATA(words));
  const Pcg64 stream{{word[0], word[1]}, {word[2], word[3]}};
  Array out = make_array(DType::boolean, ndim, shape);
  {
    MaybeReleaseGil unlocked(double(PyArray_SIZE(out)) * 1.2);
    doubles_at_least(stream, p, static_cast<unsigned char*>(PyArray_DATA(out)), PyArray_SIZE(out));
  }
  return reinterpret_cast<PyObject*>(out.release());
}

}  // namespace

void bind_random(PyObject* kernels) { add_kernel(kernels, "pcg64_at_least", call_pcg64_at_least); }

}  // namespace extensor
