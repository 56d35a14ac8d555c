#include "bindings/shard_sums.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "bindings/arguments.hpp"
#include "bindings/exceptions.hpp"
#include "core/threads.hpp"
#include "kernels/elementwise/elementwise.hpp"

namespace extensor {
namespace {

constexpr int64_t piece = 4096;  // elements that are added along the whole chain while they are in the nearest cache
constexpr double addition_ns = 0.15;

bool is_covered(PyObject* object, DType dtype) {
  PyArrayObject* array = as_array(object);
  return array != nullptr && dtype_of(array) == dtype && is_readable(array) && PyArray_ISCARRAY_RO(array);
}

// A run of elements that is contiguous in `out` and in every term.
struct Run {
  int64_t start, length;
  std::vector<const char*> terms;
};

// One run for each array of a list; false if the terms do not fit.
bool find_runs(PyObject* terms, PyArrayObject* out, std::vector<Run>& runs) {
  const DType dtype = dtype_of(out);
  const int64_t size = PyArray_SIZE(out), itemsize = PyArray_ITEMSIZE(out);
  std::vector<int64_t> lengths;
  for (Py_ssize_t k = 0; k < PyList_GET_SIZE(terms) && lengths.empty(); ++k) {
    PyObject* term = PyList_GET_ITEM(terms, k);
    for (Py_ssize_t i = 0; PyList_CheckExact(term) && i < PyList_GET_SIZE(term); ++i) {
      if (!is_covered(PyList_GET_ITEM(term, i), dtype)) return false;
      lengths.push_back(PyArray_SIZE(reinterpret_cast<PyArrayObject*>(PyList_GET_ITEM(term, i))));
    }
  }
  if (lengths.empty()) lengths.push_back(size);
  int64_t start = 0;
  for (const int64_t length : lengths) {
    runs.push_back({start, length, {}});
    start += length;
  }
  if (start != size) return false;
  for (Py_ssize_t k = 0; k < PyList_GET_SIZE(terms); ++k) {
    PyObject* term = PyList_GET_ITEM(terms, k);
    const bool is_list = PyList_CheckExact(term);
    if (is_list ? PyList_GET_SIZE(term) != Py_ssize_t(runs.size())
                : !is_covered(term, dtype) || PyArray_SIZE(reinterpret_cast<PyArrayObject*>(term)) != size)
      return false;
    for (size_t i = 0; i < runs.size(); ++i) {
      PyObject* entry = is_list ? PyList_GET_ITEM(term, Py_ssize_t(i)) : term;
      if (is_list && (!is_covered(entry, dtype) || PyArray_SIZE(reinterpret_cast<PyArrayObject*>(entry)) != runs[i].length)) return false;
      const char* data = PyArray_BYTES(reinterpret_cast<PyArrayObject*>(entry));
      runs[i].terms.push_back(is_list ? data : data + runs[i].start * itemsize);
    }
  }
  return true;
}

void add_run(const Run& run, BlockFunction add, int64_t itemsize, char* out) {
  constexpr int64_t steps[] = {1, 1};
  const int64_t pieces = (run.length + piece - 1) / piece;
  const double cost = double(piece * std::max<int64_t>(int64_t(run.terms.size()) - 1, 1)) * addition_ns;
  parallel_for(pieces, cost, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin * piece; at < std::min(end * piece, run.length); at += piece) {
      const int64_t count = std::min(piece, run.length - at);
      char* to = out + (run.start + at) * itemsize;
      const char* sum = run.terms[0] + at * itemsize;
      for (size_t k = 1; k < run.terms.size(); ++k) {
        const void* in[] = {run.terms[k] + at * itemsize, sum};
        void* target[] = {to};
        add(count, in, steps, target, nullptr, 1, nullptr);
        sum = to;
      }
      if (sum != to) std::memcpy(to, sum, size_t(count * itemsize));
    }
  });
}

}  // namespace

PyObject* add_gradients(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    PyArrayObject* out = count == 2 ? as_array(args[0]) : nullptr;
    if (out == nullptr || !PyList_CheckExact(args[1]) || PyList_GET_SIZE(args[1]) == 0) {
      PyErr_SetString(PyExc_TypeError, "[add_gradients] takes a vector and a list of terms");
      throw PythonError();
    }
    std::vector<Run> runs;
    if (!is_float(dtype_of(out)) || !PyArray_ISCARRAY(out) || !find_runs(args[1], out, runs)) return Py_NewRef(Py_False);
    static const ElementwiseKernel& add = *find_elementwise("add");
    const BlockFunction function = dtype_of(out) == DType::float32 ? add.float32 : add.float64;
    const int64_t itemsize = PyArray_ITEMSIZE(out);
    char* data = PyArray_BYTES(out);
    {
      MaybeReleaseGil unlocked(double(PyArray_SIZE(out)) * addition_ns);
      for (const Run& run : runs) add_run(run, function, itemsize, data);
    }
    return Py_NewRef(Py_True);
  });
}

}  // namespace extensor
