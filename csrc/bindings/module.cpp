// The module extensor._native. `kernels` maps the name of a kernel to a function that takes
// NumPy arrays and static attributes in the order of the reference kernel of that name, and returns
// new arrays, or NotImplemented for a dtype or layout it does not cover.
#include <nanobind/nanobind.h>

#include "bindings/arrays.hpp"
#include "core/isa.hpp"
#include "core/memory.hpp"
#include "core/threads.hpp"

namespace nb = nanobind;

namespace extensor {

void bind_casting(PyObject* kernels);
void bind_conv(PyObject* kernels);
void bind_attention(PyObject* kernels);
void bind_elementwise(PyObject* kernels);
void bind_gather(PyObject* kernels);
void bind_guards(PyObject* kernels);
void bind_loss(PyObject* kernels);
void bind_matmul(PyObject* kernels);
void bind_optim(PyObject* kernels);
void bind_moving(PyObject* kernels);
void bind_pooling(PyObject* kernels);
void bind_norm(PyObject* kernels);
void bind_recurrent(PyObject* kernels);
void bind_reduce(PyObject* kernels);
void bind_reduce_backward(PyObject* kernels);
void bind_softmax(PyObject* kernels);
void bind_views(PyObject* kernels);
bool bind_recorder(PyObject* module);

}  // namespace extensor

NB_MODULE(_native, m) {
  using namespace extensor;
  if (!import_numpy()) throw nb::python_error();

  m.def("isa", [] { return isa_name(active_isa()); }, "The instruction set the kernels use.");
  m.def("get_num_threads", &get_num_threads, "Threads a kernel may use, the caller included.");
  m.def("set_num_threads", &set_num_threads, nb::arg("count"));
  m.def("get_buffer_limit", &get_buffer_limit, "Bytes of freed buffers kept for reuse at most.");
  m.def("set_buffer_limit", &set_buffer_limit, nb::arg("bytes"));
  m.def("get_buffer_bytes", &get_buffer_bytes, "Bytes of freed buffers kept now.");
  m.def("release_buffers", &release_buffers, "Give all freed buffers back to the system.");

  if (!bind_recorder(m.ptr())) throw nb::python_error();

  nb::dict kernels;
  bind_casting(kernels.ptr());
  bind_conv(kernels.ptr());
  bind_attention(kernels.ptr());
  bind_elementwise(kernels.ptr());
  bind_gather(kernels.ptr());
  bind_guards(kernels.ptr());
  bind_loss(kernels.ptr());
  bind_matmul(kernels.ptr());
  bind_optim(kernels.ptr());
  bind_moving(kernels.ptr());
  bind_pooling(kernels.ptr());
  bind_norm(kernels.ptr());
  bind_recurrent(kernels.ptr());
  bind_reduce(kernels.ptr());
  bind_reduce_backward(kernels.ptr());
  bind_softmax(kernels.ptr());
  bind_views(kernels.ptr());
  m.attr("kernels") = kernels;
}
