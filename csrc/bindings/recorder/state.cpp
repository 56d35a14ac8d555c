// The state of a thread as an object with attributes, and blocks in which one of them has another value. Blocks are native,
// because a signal handler of Python may raise between any two calls of a Python method, and then recording would stay off.
#include <cstddef>
#include <cstring>
#include <vector>

#include "bindings/exceptions.hpp"
#include "bindings/recorder/objects.hpp"

#include <structmember.h>

namespace extensor::recorder {

__thread ThreadState state __attribute__((tls_model("initial-exec"))) = {true, false, nullptr, nullptr, nullptr, nullptr, 0};

namespace {

PyMemberDef fields[] = {
    {"recording", T_BOOL, offsetof(ThreadState, recording), 0, "Whether this thread records."},
    {"values_read", T_BOOL, offsetof(ThreadState, values_read), 0, "Whether elements of a tensor were looked at."},
    {"observer", T_OBJECT, offsetof(ThreadState, observer), 0, "What sees every call of an op, or None."},
    {"trace", T_OBJECT, offsetof(ThreadState, trace), 0, "The list that kernel calls are noted in, or None."},
    {"reader", T_OBJECT, offsetof(ThreadState, reader), 0, "What is called with a tensor whose elements are looked at."},
    {"walk", T_OBJECT, offsetof(ThreadState, walk), 0, "What walks back in place of the engine's own class, or None."},
    {"mode", T_LONGLONG, offsetof(ThreadState, mode), 0, "What else decisions depend on: the dtype of autocast."}};
constexpr size_t field_count = sizeof fields / sizeof *fields;

PyObject* get_field(PyObject*, void* field) { return PyMember_GetOne(reinterpret_cast<char*>(&state), static_cast<PyMemberDef*>(field)); }
int set_field(PyObject*, PyObject* value, void* field) {
  const ThreadState before = state;
  const int done = PyMember_SetOne(reinterpret_cast<char*>(&state), static_cast<PyMemberDef*>(field), value == Py_None ? nullptr : value);
  if (done < 0) state = before;  // a number is written before it is refused
  return done;
}

PyGetSetDef properties[field_count + 1];  // one for each field, and zeros

struct Block : Freed {
  PyObject_HEAD
  PyMemberDef* field;
  PyObject* value;
  PyObject* weakrefs;
};

struct Entered {
  Block* block;
  PyObject* before;  // the value of its field
};

// The blocks this thread is in; the innermost comes last. They own their objects, and a thread that ends inside one leaves it.
std::vector<Entered>& entered() {
  thread_local std::vector<Entered> blocks __attribute__((tls_model("initial-exec")));
  return blocks;
}

int block_init(PyObject* self, PyObject* args, PyObject*) {
  auto* block = reinterpret_cast<Block*>(self);
  const char* name;
  PyObject* value;
  if (!PyArg_ParseTuple(args, "sO", &name, &value)) return -1;
  for (PyMemberDef& field : fields) {
    if (std::strcmp(field.name, name) != 0) continue;
    block->field = &field;
    Py_XSETREF(block->value, Py_NewRef(value));
    return 0;
  }
  PyErr_Format(PyExc_AttributeError, "[StateBlock] a thread has no %s", name);
  return -1;
}

PyObject* block_enter(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    auto* block = reinterpret_cast<Block*>(self);
    if (block->field == nullptr) return PyErr_Format(PyExc_RuntimeError, "[StateBlock] says nothing");
    entered().reserve(entered().size() + 1);
    Ref<> before = owned(get_field(nullptr, block->field));
    if (set_field(nullptr, block->value, block->field) < 0) return nullptr;
    entered().push_back({reinterpret_cast<Block*>(Py_NewRef(self)), before.release()});
    return Py_NewRef(Py_None);
  });
}

// Blocks may be left in any order: one that is left before a block inside it hands on what was before it.
PyObject* block_exit(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    std::vector<Entered>& blocks = entered();
    size_t place = blocks.size();
    while (place > 0 && reinterpret_cast<PyObject*>(blocks[place - 1].block) != self) --place;
    if (place == 0) {
      const auto* field = reinterpret_cast<Block*>(self)->field;
      return PyErr_Format(PyExc_RuntimeError, "[%s] the block is left but was not entered in this thread", field == nullptr ? "StateBlock" : field->name);
    }
    const Ref<> held = owned(self), before = owned(blocks[place - 1].before);
    auto* field = blocks[place - 1].block->field;
    blocks.erase(blocks.begin() + std::ptrdiff_t(place - 1));
    for (--place; place < blocks.size() && blocks[place].block->field != field;) ++place;
    if (place == blocks.size()) set_field(nullptr, before, field);
    else Py_SETREF(blocks[place].before, Py_NewRef(before.get()));
    return Py_NewRef(Py_None);
  });
}

PyMethodDef methods[] = {{"__enter__", block_enter, METH_NOARGS, "The attribute as the block says."},
                         {"__exit__", block_exit, METH_VARARGS, "The attribute as it was."},
                         {nullptr, nullptr, 0, nullptr}};

}  // namespace

void bind_state(PyObject* module) {
  for (size_t i = 0; i < field_count; ++i) properties[i] = {fields[i].name, get_field, set_field, fields[i].doc, &fields[i]};
  Collected<Block, &Block::value>::add_class(module, "extensor._native.StateBlock",
                                             {slot(Py_tp_init, block_init), slot(Py_tp_methods, methods),
                                              doc("A block in which an attribute of this thread's state has another value.")});
  PyTypeObject* type = add_class(module, "extensor._native.ThreadState", sizeof(PyObject), 0,
                                 {slot(Py_tp_getset, properties), doc("The state of the thread that asks.")});
  const Ref<> this_thread = owned(PyObject_CallNoArgs(reinterpret_cast<PyObject*>(type)));
  if (PyModule_AddObjectRef(module, "this_thread", this_thread) < 0) throw PythonError();
}

}  // namespace extensor::recorder
