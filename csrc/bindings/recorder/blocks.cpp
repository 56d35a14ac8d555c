// Blocks in which a thread records or does not. Native, because a signal handler of Python may raise between any two calls of a
// Python method, and then recording would stay off for good.
#include <utility>
#include <vector>

#include "bindings/exceptions.hpp"
#include "bindings/recorder/objects.hpp"

namespace extensor::recorder {
namespace {

struct Block {
  PyObject_HEAD
  bool on;
};

struct Entered {
  PyObject* block;
  bool before;  // whether the thread recorded before it
};

// The blocks this thread is in; the innermost comes last. They own their objects, and a thread that ends inside one leaves it.
std::vector<Entered>& entered() {
  thread_local std::vector<Entered> blocks;
  return blocks;
}

int block_init(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"on", nullptr};
  int on = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "p", const_cast<char**>(names), &on)) return -1;
  reinterpret_cast<Block*>(self)->on = on != 0;
  return 0;
}

PyObject* block_enter(PyObject* self, PyObject*) {
  return guarded([&] {
    entered().push_back({self, state.records()});
    Py_INCREF(self);
    state.pauses_recording = !reinterpret_cast<Block*>(self)->on;
    return Py_NewRef(Py_None);
  });
}

// Blocks may be left in any order: one that is left before a block inside it hands on what was before it.
PyObject* block_exit(PyObject* self, PyObject*) {
  std::vector<Entered>& blocks = entered();
  size_t place = blocks.size();
  while (place > 0 && blocks[place - 1].block != self) --place;
  if (place == 0) {
    PyErr_SetString(PyExc_RuntimeError, "[set_recording] the block is left but was not entered in this thread");
    return nullptr;
  }
  const bool before = blocks[place - 1].before;
  if (place == blocks.size()) state.pauses_recording = !before;
  else blocks[place].before = before;
  blocks.erase(blocks.begin() + std::ptrdiff_t(place - 1));
  Py_DECREF(self);
  Py_RETURN_NONE;
}

void block_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyMethodDef methods[] = {{"__enter__", block_enter, METH_NOARGS, "Recording as the block says."},
                         {"__exit__", block_exit, METH_VARARGS, "Recording as it was."},
                         {nullptr, nullptr, 0, nullptr}};

PyType_Slot slots[] = {{Py_tp_init, reinterpret_cast<void*>(block_init)},
                       {Py_tp_dealloc, reinterpret_cast<void*>(block_dealloc)},
                       {Py_tp_methods, methods},
                       {Py_tp_doc, const_cast<char*>("A block in which this thread records, or does not.")},
                       {0, nullptr}};

PyType_Spec spec = {"extensor._native.RecordingBlock", sizeof(Block), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};

}  // namespace

bool bind_blocks(PyObject* module) {
  PyObject* type = PyType_FromSpec(&spec);
  const bool added = type != nullptr && PyModule_AddObjectRef(module, "RecordingBlock", type) == 0;
  Py_XDECREF(type);
  return added;
}

}  // namespace extensor::recorder
