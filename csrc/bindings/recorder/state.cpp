// The state of a thread as an object with attributes, and blocks in which a thread records or does not. Blocks are native,
// because a signal handler of Python may raise between any two calls of a Python method, and then recording would stay off.
#include <utility>
#include <vector>

#include "bindings/exceptions.hpp"
#include "bindings/recorder/objects.hpp"

namespace extensor::recorder {

__thread ThreadState state __attribute__((tls_model("initial-exec")));

namespace {

// --- this_thread ---

template <PyObject* ThreadState::*field>
PyObject* get_object(PyObject*, void*) {
  return Py_NewRef(state.*field != nullptr ? state.*field : Py_None);
}

template <PyObject* ThreadState::*field>
int set_object(PyObject*, PyObject* value, void*) {
  Py_XSETREF(state.*field, value == nullptr || value == Py_None ? nullptr : Py_NewRef(value));
  return 0;
}

PyObject* get_recording(PyObject*, void*) { return PyBool_FromLong(state.records()); }
PyObject* get_values_read(PyObject*, void*) { return PyBool_FromLong(state.values_read); }
PyObject* get_mode(PyObject*, void*) { return PyLong_FromLongLong(state.mode); }

int set_recording(PyObject*, PyObject* value, void*) {
  const int wanted = value == nullptr ? 1 : PyObject_IsTrue(value);
  if (wanted >= 0) state.pauses_recording = wanted == 0;
  return wanted < 0 ? -1 : 0;
}

int set_values_read(PyObject*, PyObject* value, void*) {
  state.values_read = value == Py_True;
  return 0;
}

int set_mode(PyObject*, PyObject* value, void*) {
  const long long wanted = value == nullptr ? 0 : PyLong_AsLongLong(value);
  if (wanted == -1 && PyErr_Occurred()) return -1;
  state.mode = wanted;
  return 0;
}

PyGetSetDef properties[] = {
    {"recording", get_recording, set_recording, "Whether this thread records.", nullptr},
    {"observer", get_object<&ThreadState::observer>, set_object<&ThreadState::observer>, "What sees every call of an op, or None.", nullptr},
    {"trace", get_object<&ThreadState::trace>, set_object<&ThreadState::trace>, "The list that kernel calls are noted in, or None.", nullptr},
    {"reader", get_object<&ThreadState::reader>, set_object<&ThreadState::reader>, "What is called with a tensor whose elements are looked at.", nullptr},
    {"values_read", get_values_read, set_values_read, "Whether elements of a tensor were looked at.", nullptr},
    {"mode", get_mode, set_mode, "What else decisions depend on: the dtype of autocast.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyType_Slot state_slots[] = {{Py_tp_getset, properties}, {Py_tp_doc, const_cast<char*>("The state of the thread that asks.")}, {0, nullptr}};

PyType_Spec state_spec = {"extensor._native.ThreadState", sizeof(PyObject), 0, Py_TPFLAGS_DEFAULT, state_slots};

// --- Blocks ---

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
  thread_local std::vector<Entered> blocks __attribute__((tls_model("initial-exec")));
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

bool bind_state(PyObject* module) {
  return guarded([&]() -> PyObject* {
           const Ref<> block = owned(PyType_FromSpec(&spec)), type = owned(PyType_FromSpec(&state_spec));
           const Ref<> this_thread = owned(PyObject_CallNoArgs(type));
           const bool added = PyModule_AddObjectRef(module, "RecordingBlock", block) == 0 && PyModule_AddObjectRef(module, "ThreadState", type) == 0 &&
                              PyModule_AddObjectRef(module, "this_thread", this_thread) == 0;
           return added ? module : nullptr;
         }) != nullptr;
}

}  // namespace extensor::recorder
