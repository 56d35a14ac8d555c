// The objects that one small operation touches: the tensor's fields, the recorder's node, and the call of an op.
//
// A Python subclass gives each its behaviour (extensor.tensor.ExTensor, extensor.graph.Node, extensor.graph.Op); what lives
// here is what a call costs. What a call does is decided by the readable body of its op, once for each kind of call, and
// repeated from here (op.cpp, plan.hpp, key.hpp). src/extensor/_pure.py has the same classes in Python, without plans.
#include "bindings/exceptions.hpp"
#include "bindings/recorder/objects.hpp"

namespace extensor {
namespace recorder {
namespace {

template <class T>
PyObject** place_of(T** object) {
  return reinterpret_cast<PyObject**>(object);
}

// register(name=object, ...): what the recorder works with.
PyObject* register_objects(PyObject*, PyObject*, PyObject* given) {
  const struct {
    const char* name;
    PyObject** place;
    PyTypeObject* base;  // that it is a class of, or nullptr
  } all[] = {{"tensor", place_of(&tensor_type), tensor_base}, {"node", place_of(&node_type), node_base}, {"device_array", place_of(&device_array_type), &PyArray_Type},
             {"package_path", &package_path, nullptr}, {"make_plan", &helpers.make_plan, nullptr}, {"named_memory_error", &helpers.named_memory_error, nullptr},
             {"add", &helpers.add, nullptr}, {"astype", &helpers.astype, nullptr}, {"wide", &helpers.wide, nullptr}, {"gradients", &helpers.gradients, nullptr},
             {"check", &helpers.check, nullptr}, {"check_gradients", &helpers.check_gradients, nullptr}};
  for (const auto& [name, place, base] : all) {
    PyObject* found = given == nullptr ? nullptr : PyDict_GetItemString(given, name);
    if (found == nullptr) continue;
    if (base != nullptr && !(PyType_Check(found) && PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(found), base)))
      return PyErr_Format(PyExc_TypeError, "[register] %s must be a class that derives from %s", name, base->tp_name);
    Py_XSETREF(*place, Py_NewRef(found));
  }
  if (tensor_type != nullptr && node_type != nullptr) adopt_classes();
  Py_RETURN_NONE;
}

PyObject* next_sequence(PyObject*, PyObject*) { return PyLong_FromLongLong(++last_sequence); }

PyMethodDef functions[] = {
    {"register", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(register_objects)), METH_VARARGS | METH_KEYWORDS,
     "Tell the recorder the classes and functions of Python that it works with."},
    {"next_sequence", next_sequence, METH_NOARGS, "The next number in the order of recording."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace
}  // namespace recorder

// Adds the classes and functions of the recorder to the module.
void bind_recorder(PyObject* module) {
  using namespace recorder;
  for (const auto bind : {bind_state, bind_objects, bind_ops, bind_walk}) bind(module);
  if (!bind_program(module) || !bind_update(module) || PyModule_AddFunctions(module, functions) < 0) throw PythonError();
}

}  // namespace extensor
