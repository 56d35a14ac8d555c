// The module extensor._native. `kernels` maps the name of a kernel to a function that takes NumPy arrays and static attributes
// in the order of the reference kernel of that name, and returns new arrays, or NotImplemented for a dtype or layout it does
// not cover.
//
// Everything here is the plain C API. What a binding library does best, converting arguments and making classes, happens
// nowhere: kernels look at arrays as they lie and must answer NotImplemented instead of an error, and the objects of the
// recorder are laid out by hand because their cost is the cost of a small operation. The few functions below are shorter than
// a dependency.
#include <climits>

#include "bindings/arrays.hpp"
#include "bindings/exceptions.hpp"
#include "bindings/held_weights.hpp"
#include "bindings/shard_sums.hpp"
#include "core/allocation_failure.hpp"
#include "core/bf16_unit.hpp"
#include "core/isa.hpp"
#include "core/memory.hpp"
#include "core/threads.hpp"
#include "source_digest.hpp"

namespace extensor {

void bind_casting(PyObject* kernels);
void bind_conv(PyObject* kernels);
void bind_ctc(PyObject* kernels);
void bind_fused(PyObject* module_dict);
void bind_fused_linear(PyObject* module_dict);
void bind_attention(PyObject* kernels);
void bind_elementwise(PyObject* kernels);
void bind_gather(PyObject* kernels);
void bind_guards(PyObject* kernels);
void bind_linalg(PyObject* kernels);
void bind_loss(PyObject* kernels);
void bind_loss_metric(PyObject* kernels);
void bind_matmul(PyObject* kernels);
void bind_optim(PyObject* kernels);
void bind_optim_adaptive(PyObject* kernels);
void bind_optim_matrices(PyObject* kernels);
void bind_moving(PyObject* kernels);
void bind_pooling(PyObject* kernels);
void bind_regions(PyObject* kernels);
void bind_sort(PyObject* kernels);
void bind_resample(PyObject* kernels);
void bind_sample(PyObject* kernels);
void bind_norm(PyObject* kernels);
void bind_random(PyObject* kernels);
void bind_recurrent(PyObject* kernels);
void bind_reduce(PyObject* kernels);
void bind_reduce_backward(PyObject* kernels);
void bind_softmax(PyObject* kernels);
void bind_clipping(PyObject* kernels);
void bind_unscale(PyObject* kernels);
void bind_views(PyObject* kernels);
void bind_recorder(PyObject* module);

namespace {

// A whole number of a C type.
long long read_whole(PyObject* object) {
  const long long number = PyLong_AsLongLong(object);
  if (number == -1 && PyErr_Occurred()) throw PythonError();
  return number;
}

PyObject* py_source_digest(PyObject*, PyObject*) { return PyUnicode_FromString(EXTENSOR_SOURCE_DIGEST); }
PyObject* py_isa(PyObject*, PyObject*) { return PyUnicode_FromString(isa_name(active_isa())); }

PyObject* py_has_bf16_unit(PyObject*, PyObject*) { return PyBool_FromLong(has_bf16_unit()); }

PyObject* py_get_num_threads(PyObject*, PyObject*) { return PyLong_FromLong(get_num_threads()); }

PyObject* py_set_num_threads(PyObject*, PyObject* count) {
  return guarded([&] {
    const long long wanted = read_whole(count);
    if (wanted < INT_MIN || wanted > INT_MAX) {
      PyErr_Format(PyExc_OverflowError, "[set_num_threads] count %lld does not fit an int", wanted);
      throw PythonError();
    }
    set_num_threads(int(wanted));
    return Py_NewRef(Py_None);
  });
}

PyObject* py_get_buffer_limit(PyObject*, PyObject*) { return PyLong_FromSize_t(get_buffer_limit()); }

PyObject* py_set_buffer_limit(PyObject*, PyObject* bytes) {
  return guarded([&] {
    const size_t limit = PyLong_AsSize_t(bytes);
    if (limit == size_t(-1) && PyErr_Occurred()) throw PythonError();
    set_buffer_limit(limit);
    return Py_NewRef(Py_None);
  });
}

PyObject* py_get_buffer_bytes(PyObject*, PyObject*) { return PyLong_FromSize_t(buffer_figures().cached); }

PyObject* py_buffer_figures(PyObject*, PyObject*) {
  const BufferFigures f = buffer_figures();
  return Py_BuildValue("(nnnnn)", Py_ssize_t(f.used), Py_ssize_t(f.peak), Py_ssize_t(f.cached), Py_ssize_t(f.limit), Py_ssize_t(f.mapped));
}

PyObject* py_set_buffer_wait(PyObject*, PyObject* milliseconds) {
  return guarded([&] {
    set_buffer_wait(read_whole(milliseconds));
    return Py_NewRef(Py_None);
  });
}

PyObject* py_release_buffers(PyObject*, PyObject*) { return PyLong_FromSize_t(release_buffers()); }

PyObject* py_fail_allocation_after(PyObject*, PyObject* count) {
  return guarded([&] { return PyLong_FromLongLong(allocations_before_failure.exchange(read_whole(count))); });
}

PyMethodDef functions[] = {
    {"source_digest", py_source_digest, METH_NOARGS,
     "source_digest($module)\n--\n\nA digest of the sources of the kernels: the same in builds that compute alike."},
    {"isa", py_isa, METH_NOARGS, "isa($module)\n--\n\nThe instruction set the kernels use."},
    {"has_bf16_unit", py_has_bf16_unit, METH_NOARGS,
     "has_bf16_unit($module)\n--\n\nWhether products of bfloat16 use the processor's dot product of pairs."},
    {"get_num_threads", py_get_num_threads, METH_NOARGS,
     "get_num_threads($module)\n--\n\nThreads a kernel may use, the caller included."},
    {"set_num_threads", py_set_num_threads, METH_O, "set_num_threads($module, count, /)\n--\n\nThreads a kernel may use from now on."},
    {"get_buffer_limit", py_get_buffer_limit, METH_NOARGS,
     "get_buffer_limit($module)\n--\n\nBytes of freed buffers kept for reuse at most."},
    {"set_buffer_limit", py_set_buffer_limit, METH_O,
     "set_buffer_limit($module, bytes, /)\n--\n\nKeep at most so many bytes of freed buffers."},
    {"get_buffer_bytes", py_get_buffer_bytes, METH_NOARGS, "get_buffer_bytes($module)\n--\n\nBytes of freed buffers kept now."},
    {"buffer_figures", py_buffer_figures, METH_NOARGS,
     "buffer_figures($module)\n--\n\nBytes of buffers: used, at most used, kept, kept at most, and the addresses held for them."},
    {"set_buffer_wait", py_set_buffer_wait, METH_O,
     "set_buffer_wait($module, milliseconds, /)\n--\n\nHow long a freed buffer is kept; 10,000."},
    {"release_buffers", py_release_buffers, METH_NOARGS,
     "release_buffers($module)\n--\n\nGive all freed buffers back to the system; returns their bytes."},
    {"hold_weights", hold_weights, METH_O,
     "hold_weights($module, arrays, /)\n--\n\nKeep what convolutions of this thread make of these arrays, and of no others."},
    {"add_gradients", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(add_gradients)), METH_FASTCALL,
     "add_gradients($module, out, terms, /)\n--\n\nThe sum of vectors, or lists of arrays that fill one; False where it is not covered."},
    {"fail_allocation_after", py_fail_allocation_after, METH_O,
     "fail_allocation_after($module, count, /)\n--\n\n"
     "For tests: after so many more, one allocation of a kernel fails; negative: none does. Returns what was left of the last count."},
    {nullptr, nullptr, 0, nullptr}};

void fill(PyObject* module) {
  if (const char* complaint = isa_complaint()) {
    PyErr_SetString(PyExc_RuntimeError, complaint);  // not an ImportError: the package would go on without a word, and slowly
    throw PythonError();
  }
  import_numpy();
  if (PyModule_AddFunctions(module, functions) < 0) throw PythonError();
  bind_recorder(module);
  bind_fused(PyModule_GetDict(module));
  bind_fused_linear(PyModule_GetDict(module));
  const Ref<> kernels = owned(PyDict_New());
  for (const auto bind : {bind_casting, bind_conv, bind_ctc, bind_attention, bind_elementwise, bind_gather, bind_guards, bind_loss, bind_loss_metric, bind_matmul,
                          bind_optim, bind_optim_adaptive, bind_optim_matrices, bind_moving, bind_pooling, bind_regions, bind_resample, bind_sample, bind_sort, bind_norm, bind_random, bind_recurrent, bind_reduce, bind_reduce_backward, bind_softmax, bind_clipping, bind_unscale,
                          bind_linalg,
                          bind_views})
    bind(kernels);
  if (PyModule_AddObjectRef(module, "kernels", kernels) < 0) throw PythonError();
}

int execute(PyObject* module) {
  try {
    fill(module);
    return 0;
  } catch (...) {
    set_python_error();
    return -1;
  }
}

PyModuleDef_Slot slots[] = {{Py_mod_exec, reinterpret_cast<void*>(execute)},
#ifdef Py_mod_multiple_interpreters
                            {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
#endif
                            {0, nullptr}};

PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_native", "The native core of ExTensor.", 0, nullptr, slots, nullptr, nullptr, nullptr};

}  // namespace
}  // namespace extensor

PyMODINIT_FUNC PyInit__native() {
  try {
    throw 0;  // the first exception of a thread takes memory, and where there is none left it would end the process
  } catch (int) {
  }
  return PyModuleDef_Init(&extensor::definition);
}
