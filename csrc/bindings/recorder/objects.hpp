// What the parts of the recorder share: its objects, and the state of the thread.
#pragma once

#include <vector>

#include "bindings/arrays.hpp"

namespace extensor::recorder {

inline bool is_none(PyObject* field) { return field == nullptr || field == Py_None; }

// How the objects below go, where they do not say so themselves.
struct Freed {
  bool is_chained() const { return true; }  // to others of its kind, which may go with it
  PyObject* held() const { return nullptr; }      // seen by the collector, but never cleared by it
  static void free(PyTypeObject* type, PyObject* object) { type->tp_free(object); }
};

struct Tensor : Freed {
  PyObject_HEAD
  PyObject* array;  // stays until the end; the others may be nullptr, which is None
  PyObject* grad;
  PyObject* node;
  char requires_grad;
  PyObject* weakrefs;
  bool is_chained() const { return !is_none(node) || !is_none(grad); }
  PyObject* held() const { return array; }
  static void free(PyTypeObject* type, PyObject* tensor);  // keeps some for the next ones
};

struct Node : Freed {
  PyObject_HEAD
  PyObject* op;
  PyObject* edges;
  PyObject* saved;
  PyObject* options;
  PyObject* casts;
  PyObject* outputs;
  PyObject* shapes;
  PyObject* shape;  // of the output
  PyObject* code;   // of the caller outside this package
  int instruction;
  long long sequence;
  PyObject* weakrefs;
};

struct Op : Freed {
  PyObject_HEAD
  vectorcallfunc vectorcall;
  PyObject* dict;
  PyObject* weakrefs;
  unsigned long long id;     // never given twice, unlike an address
  PyObject* fn;              // the readable body
  PyObject *own_fn, *own_code, *own_defaults;  // as it was defined; while it is edited, it runs each time
  PyObject* own_keyword_defaults;              // its items: the dict may change
  PyObject* backward;        // called with what a node saved, it returns a gradient for each edge; nullptr: Python asks the rule
  char takes_needs;          // whether it is told which gradients are wanted
  char planned;              // whether its decisions may be repeated
  char is_backward;          // where it is recorded, Python evaluates its formula
  unsigned long long numbers;  // bit i: a float at position i is an operand, handed to a kernel unread
  bool is_number(Py_ssize_t i, PyObject* value) const { return i < 64 && numbers >> i & 1 && PyFloat_CheckExact(value); }
};

extern PyTypeObject* tensor_type;  // ExTensor, once registered
extern PyTypeObject* tensor_base;
extern PyTypeObject* node_type;  // extensor.graph.Node, once registered
extern PyTypeObject* node_base;
extern PyTypeObject* op_base;
extern PyTypeObject* device_array_type;  // extensor.kernels.devices.DeviceArray, once registered
extern PyObject* package_path;  // frames below it are not the user's
extern long long last_sequence;

// Functions of Python that the recorder calls, and float32; registered for as long as the process lives.
struct Helpers {
  PyObject *make_plan, *named_memory_error, *add, *astype, *wide, *gradients, *check, *check_gradients;
};
extern Helpers helpers;

// The state of a thread; Python sees it as `this_thread`. Objects are owned; nullptr is None there.
struct ThreadState {
  bool recording;
  bool values_read;    // whether the body that is running looked at the elements of a tensor
  PyObject* observer;  // sees every call of an op
  PyObject* trace;     // the list of kernel calls of the body that is running
  PyObject* reader;    // called with a tensor whose elements are looked at outside of ops
  PyObject* walk;      // what walks back in place of the engine's own class
  long long mode;      // whatever else the bodies of ops look at, such as autocast
};
// Not thread_local, whose every use from another file is a call. Its memory comes with the thread: what is taken at the first use
// ends the process where there is none left.
extern __thread ThreadState state __attribute__((tls_model("initial-exec")));

inline bool is_tensor(PyObject* object) {
  return Py_TYPE(object) == tensor_type || PyType_IsSubtype(Py_TYPE(object), tensor_base);
}

// Whether an array stands for one on another device: its memory here holds nothing.
inline bool is_on_device(PyObject* array) { return Py_TYPE(array) == device_array_type; }

// A function or a table of a class.
template <class Pointer>
PyType_Slot slot(int number, Pointer pointer) {
  return {number, reinterpret_cast<void*>(pointer)};
}

inline PyType_Slot doc(const char* text) { return {Py_tp_doc, const_cast<char*>(text)}; }

// A new class of the module, which lives as long as the process.
inline PyTypeObject* add_class(PyObject* module, const char* name, size_t size, unsigned flags, std::vector<PyType_Slot> slots) {
  slots.push_back({0, nullptr});
  PyType_Spec spec = {name, int(size), 0, Py_TPFLAGS_DEFAULT | flags, slots.data()};
  auto* type = reinterpret_cast<PyTypeObject*>(owned(PyType_FromSpec(&spec)).release());
  if (PyModule_AddType(module, type) < 0) throw PythonError();
  return type;
}

// The collector's view of a class that holds objects in these fields, and how its objects go.
template <class T, PyObject* T::*... fields>
struct Collected {
  static int traverse(PyObject* object, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(reinterpret_cast<T*>(object)->held());
    for (PyObject* field : {reinterpret_cast<T*>(object)->*fields...}) Py_VISIT(field);
    return 0;
  }

  static int clear(PyObject* object) {
    (maybe(std::exchange(reinterpret_cast<T*>(object)->*fields, nullptr)), ...);
    return 0;
  }

  // The same, for a class that Python derives from: `slots` are what it has beside these.
  static PyTypeObject* add_class(PyObject* module, const char* name, std::vector<PyType_Slot> slots, unsigned flags = 0) {
    slots.insert(slots.end(), {slot(Py_tp_dealloc, dealloc), slot(Py_tp_traverse, traverse), slot(Py_tp_clear, clear)});
    return recorder::add_class(module, name, sizeof(T), Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC | flags, std::move(slots));
  }

  static void dealloc(PyObject* object) {
    PyObject_GC_UnTrack(object);
    if (!reinterpret_cast<T*>(object)->is_chained()) return destroy(object);
    Py_TRASHCAN_BEGIN(object, dealloc)  // a chain of 100,000 operations is freed without recursion
    destroy(object);
    Py_TRASHCAN_END
  }

 private:
  static void destroy(PyObject* object) {
    PyTypeObject* type = Py_TYPE(object);
    if (reinterpret_cast<T*>(object)->weakrefs != nullptr) PyObject_ClearWeakRefs(object);
    clear(object);
    T::free(type, object);
    Py_DECREF(type);
  }
};

// Whether a tensor is of a class of this package: what a user's subclass overrides, no key can tell.
bool is_our_subclass(PyTypeObject* type);
inline bool has_our_class(PyObject* tensor) { return Py_TYPE(tensor) == tensor_type || is_our_subclass(Py_TYPE(tensor)); }

// A tensor of an array and a node (or nullptr), which it takes over.
PyObject* make_tensor(PyObject* array, bool requires_grad, PyObject* node);

// A node of the given class; borrows all.
Ref<Node> make_node(PyTypeObject* type, PyObject* op, PyObject* edges, PyObject* saved, PyObject* options);

// For the classes that Python registered.
void adopt_classes();

// Calls a function of Python.
template <class... Arguments>
Ref<> call(PyObject* function, Arguments... arguments) {
  PyObject* all[] = {arguments...};
  return owned(PyObject_Vectorcall(function, all, sizeof...(arguments), nullptr));
}

// Add types and functions to the module; those that return a bool answer false with a Python error set on failure.
void bind_state(PyObject* module);
void bind_objects(PyObject* module);
void bind_ops(PyObject* module);
void bind_walk(PyObject* module);
bool bind_program(PyObject* module);
bool bind_update(PyObject* module);

// Whether a dict (or none) still has these items (or none), the very same objects.
bool has_items(PyObject* dict, PyObject* items);

// Whether the body of an op is the one it had when it was recorded, or defined.
inline bool has_body(const Op* op, PyObject* fn, PyObject* code, PyObject* defaults) {
  if (fn == nullptr || op->fn != fn || !PyFunction_Check(fn)) return false;
  const auto* body = reinterpret_cast<PyFunctionObject*>(fn);
  if (body->func_code != code || body->func_defaults != defaults) return false;
  return fn != op->own_fn || body->func_kwdefaults == op->own_keyword_defaults || has_items(body->func_kwdefaults, op->own_keyword_defaults);
}

}  // namespace extensor::recorder
