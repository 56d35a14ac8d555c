// The objects that one small operation touches: the tensor's fields, the recorder's node, and the call of an op.
//
// A Python subclass gives each its behaviour (extensor.tensor.ExTensor, extensor.graph.Node, extensor.graph.Op); what lives
// here is what a call costs. What a call does is decided by the readable body of its op, once for each kind of call, and
// repeated from here (op.cpp, plan.hpp, key.hpp). src/extensor/_pure.py has the same classes in Python, without plans.
#include <cstddef>

#include "bindings/recorder/objects.hpp"

namespace extensor {
namespace recorder {
namespace {

PyObject* register_classes(PyObject*, PyObject* args) {
  PyObject *tensor, *node, *ops, *path;
  if (!PyArg_ParseTuple(args, "O!O!O!U", &PyType_Type, &tensor, &PyType_Type, &node, &PyTuple_Type, &ops, &path))
    return nullptr;
  if (!PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(tensor), tensor_base) ||
      !PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(node), node_base)) {
    PyErr_SetString(PyExc_TypeError, "[register_classes] the classes must derive from TensorBase and NodeBase");
    return nullptr;
  }
  Py_XSETREF(tensor_type, reinterpret_cast<PyTypeObject*>(Py_NewRef(tensor)));
  Py_XSETREF(node_type, reinterpret_cast<PyTypeObject*>(Py_NewRef(node)));
  Py_XSETREF(package_path, Py_NewRef(path));
  // Classes made in Python without fields of their own need none of Python's general clearing.
  tensor_type->tp_dealloc = tensor_dealloc;
  node_type->tp_dealloc = NodeFields::dealloc;
  // Nor does such a class inherit the fast calling convention (before Python 3.12).
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(ops); ++i) {
    auto* type = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(ops, i));
    type->tp_vectorcall_offset = offsetof(Op, vectorcall);
    type->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR;
    PyType_Modified(type);
  }
  Py_RETURN_NONE;
}

PyObject* register_device_array(PyObject*, PyObject* type) {
  if (!PyType_Check(type) || !PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(type), &PyArray_Type)) {
    PyErr_SetString(PyExc_TypeError, "[register_device_array] the class must derive from numpy.ndarray");
    return nullptr;
  }
  Py_XSETREF(device_array_type, reinterpret_cast<PyTypeObject*>(Py_NewRef(type)));
  Py_RETURN_NONE;
}

// set_helpers(name=function, ...)
PyObject* set_helpers(PyObject*, PyObject*, PyObject* given) {
  const struct {
    const char* name;
    PyObject** place;
  } places[] = {{"make_plan", &helpers.make_plan}, {"add", &helpers.add}, {"astype", &helpers.astype}, {"wide", &helpers.wide},
                {"complete", &helpers.complete}, {"gradients", &helpers.gradients}, {"check", &helpers.check}, {"check_gradients", &helpers.check_gradients}};
  for (const auto& [name, place] : places)
    if (PyObject* found = given == nullptr ? nullptr : PyDict_GetItemString(given, name)) Py_XSETREF(*place, Py_NewRef(found));
  Py_RETURN_NONE;
}

PyObject* next_sequence(PyObject*, PyObject*) { return PyLong_FromLongLong(++last_sequence); }

PyMethodDef functions[] = {
    {"register_classes", register_classes, METH_VARARGS, "Tell the recorder the Python classes to make."},
    {"register_device_array", register_device_array, METH_O, "Tell the recorder the class of arrays that stand for those on other devices."},
    {"set_helpers", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(set_helpers)), METH_VARARGS | METH_KEYWORDS,
     "Tell the recorder functions of Python that it calls."},
    {"next_sequence", next_sequence, METH_NOARGS, "The next number in the order of recording."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace
}  // namespace recorder

// Adds the classes and functions of the recorder to the module. False with a Python error set on failure.
bool bind_recorder(PyObject* module) {
  using namespace recorder;
  if (!bind_state(module) || !bind_plans(module) || !bind_walk(module) || !bind_program(module) || !bind_update(module)) return false;
  tensor_base = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&tensor_spec));
  node_base = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&node_spec));
  op_base = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&op_spec));
  if (tensor_base == nullptr || node_base == nullptr || op_base == nullptr) return false;
  return PyModule_AddObjectRef(module, "TensorBase", reinterpret_cast<PyObject*>(tensor_base)) == 0 &&
         PyModule_AddObjectRef(module, "NodeBase", reinterpret_cast<PyObject*>(node_base)) == 0 &&
         PyModule_AddObjectRef(module, "OpBase", reinterpret_cast<PyObject*>(op_base)) == 0 && PyModule_AddFunctions(module, functions) == 0;
}

}  // namespace extensor
