// Changing the dtype, as a Python function.
#include "bindings/arguments.hpp"
#include "core/threads.hpp"
#include "kernels/convert/convert.hpp"

namespace extensor {
namespace {

// astype(x, dtype): laid out as x is where that is dense in C or Fortran order, else in C order.
PyObject* call_astype(PyObject*, PyObject* const* args, Py_ssize_t count) {
  PyArrayObject* given = count == 2 ? as_array(args[0]) : nullptr;
  if (given == nullptr || !PyArray_DescrCheck(args[1])) return not_covered();
  PyArray_Descr* wanted = reinterpret_cast<PyArray_Descr*>(args[1]);
  const DType from = dtype_of(given), to = dtype_of(wanted);
  if (from == to || to == DType::other || !is_readable(given)) return not_covered();
  const ConvertFunction convert = EXTENSOR_SELECT(find_conversion)(from, to);
  if (convert == nullptr) return not_covered();
  const int ndim = PyArray_NDIM(given);
  npy_intp strides[NPY_MAXDIMS];
  const bool reversed = PyArray_IS_F_CONTIGUOUS(given) && !PyArray_IS_C_CONTIGUOUS(given);
  npy_intp step = npy_intp(item_size(to));
  for (int axis = 0; reversed && axis < ndim; ++axis) {
    strides[axis] = step;
    step *= PyArray_DIM(given, axis);
  }
  const Array x = reversed ? shared(given) : dense(given);
  Array out = make_array(to, ndim, PyArray_DIMS(x), reversed ? strides : nullptr);
  if (PyArray_SIZE(out) > 0) {
    constexpr int64_t block = 1024;
    constexpr double element_ns = 0.1;
    const int64_t n = PyArray_SIZE(x);
    MaybeReleaseGil unlocked(double(n) * element_ns);
    parallel_for((n + block - 1) / block, double(block) * element_ns, [&](int64_t begin, int64_t end) {
      const int64_t first = begin * block, last = end * block < n ? end * block : n;
      convert(PyArray_BYTES(x) + first * int64_t(item_size(from)), PyArray_BYTES(out) + first * int64_t(item_size(to)), last - first);
    });
  }
  return out.release();
}

}  // namespace

void bind_casting(PyObject* kernels) { add_kernel(kernels, "astype", call_astype); }

}  // namespace extensor
