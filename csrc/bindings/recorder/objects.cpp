// Tensors and nodes: their fields, how they are made, and how they go.
#include "bindings/recorder/objects.hpp"

#include <cstddef>

#include <structmember.h>

#include "bindings/exceptions.hpp"

namespace extensor::recorder {

PyTypeObject *tensor_type, *tensor_base, *node_type, *node_base, *op_base, *device_array_type;
PyObject* package_path;
long long last_sequence = 0;
Helpers helpers;

namespace {

// --- Tensor ---

Tensor* as_tensor(PyObject* object) { return reinterpret_cast<Tensor*>(object); }
PyArrayObject* array_of(PyObject* object) { return reinterpret_cast<PyArrayObject*>(as_tensor(object)->array); }

// Takes over the array and the node.
PyObject* fill(Tensor* self, PyObject* array, bool requires_grad, PyObject* node) {
  self->array = array;
  self->grad = nullptr;
  self->node = node;
  self->requires_grad = requires_grad;
  return reinterpret_cast<PyObject*>(self);
}

PyObject* tensor_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"array", "requires_grad", "node", nullptr};
  PyObject *array, *node = Py_None;
  int requires_grad = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!|pO", const_cast<char**>(names), &PyArray_Type, &array, &requires_grad, &node)) return nullptr;
  Tensor* self = as_tensor(type->tp_alloc(type, 0));
  return self == nullptr ? nullptr : fill(self, Py_NewRef(array), requires_grad != 0, Py_NewRef(node));
}

// Tensors that are gone, for the next ones: most live for one expression.
constexpr int max_spare = 64;
PyObject* spare[max_spare];
int spare_count = 0;

using TensorFields = Collected<Tensor, &Tensor::grad, &Tensor::node>;

// Whoever asks for the array may look at its elements: a decision made then is not that of a kind of call.
PyObject* get_array(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    state.values_read = true;
    if (state.reader != nullptr) call(state.reader, self);
    PyObject* array = as_tensor(self)->array;
    return is_on_device(array) ? PyObject_CallMethod(array, "fetch", nullptr) : Py_NewRef(array);
  });
}

int set_array(PyObject* self, PyObject* value, void*) {
  if (value == nullptr || !PyArray_Check(value)) {
    PyErr_Format(PyExc_TypeError, "[tensor] _array must be a NumPy array, got %s", value == nullptr ? "nothing" : Py_TYPE(value)->tp_name);
    return -1;
  }
  Py_SETREF(as_tensor(self)->array, Py_NewRef(value));
  return 0;
}

PyObject* get_data(PyObject* self, void*) { return Py_NewRef(as_tensor(self)->array); }
PyObject* get_shape(PyObject* self, void*) { return PyArray_IntTupleFromIntp(PyArray_NDIM(array_of(self)), PyArray_DIMS(array_of(self))); }
PyObject* get_dtype(PyObject* self, void*) { return Py_NewRef(reinterpret_cast<PyObject*>(PyArray_DESCR(array_of(self)))); }
PyObject* get_ndim(PyObject* self, void*) { return PyLong_FromLong(PyArray_NDIM(array_of(self))); }
PyObject* get_size(PyObject* self, void*) { return PyLong_FromSsize_t(PyArray_SIZE(array_of(self))); }

PyGetSetDef tensor_properties[] = {
    {"_array", get_array, set_array, nullptr, nullptr},
    {"_data", get_data, nullptr, "The array, for kernels and plans: bodies must not look at it.", nullptr},
    {"shape", get_shape, nullptr, "The lengths of the axes.", nullptr},
    {"dtype", get_dtype, nullptr, "The NumPy dtype of the elements.", nullptr},
    {"ndim", get_ndim, nullptr, "The number of axes.", nullptr},
    {"size", get_size, nullptr, "The number of elements.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyMemberDef tensor_members[] = {
    {"_grad", T_OBJECT, offsetof(Tensor, grad), 0, nullptr},
    {"_node", T_OBJECT, offsetof(Tensor, node), 0, nullptr},
    {"_requires_grad", T_BOOL, offsetof(Tensor, requires_grad), 0, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Tensor, weakrefs), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};

// --- Node ---

bool is_ours(PyObject* name, PyObject* prefix) { return prefix != nullptr && PyUnicode_Check(name) && PyUnicode_Tailmatch(name, prefix, 0, PY_SSIZE_T_MAX, -1) == 1; }

// Where the user's code is: the innermost frame outside this package. Which line that is, is asked later or never.
void remember_caller(Node* node) {
  for (auto frame = maybe(PyThreadState_GetFrame(PyThreadState_Get())); frame != nullptr; frame = maybe(PyFrame_GetBack(frame))) {
    auto code = owned(PyFrame_GetCode(frame));
    if (is_ours(code->co_filename, package_path)) continue;
    node->code = code.release();
    node->instruction = PyFrame_GetLasti(frame);
    return;
  }
}

PyObject* node_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"op", "edges", "saved", "options", nullptr};
  PyObject *op, *edges, *saved, *options = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOO|O", const_cast<char**>(names), &op, &edges, &saved, &options)) return nullptr;
  return guarded([&] { return make_node(type, op, edges, saved, options).release(); });
}

PyMemberDef node_members[] = {
    {"op", T_OBJECT, offsetof(Node, op), 0, nullptr},
    {"edges", T_OBJECT, offsetof(Node, edges), 0, nullptr},
    {"saved", T_OBJECT, offsetof(Node, saved), 0, nullptr},
    {"options", T_OBJECT, offsetof(Node, options), 0, nullptr},
    {"casts", T_OBJECT, offsetof(Node, casts), 0, nullptr},
    {"outputs", T_OBJECT, offsetof(Node, outputs), 0, nullptr},
    {"shapes", T_OBJECT, offsetof(Node, shapes), 0, nullptr},
    {"shape", T_OBJECT, offsetof(Node, shape), 0, nullptr},
    {"code", T_OBJECT, offsetof(Node, code), READONLY, nullptr},
    {"instruction", T_INT, offsetof(Node, instruction), READONLY, nullptr},
    {"sequence", T_LONGLONG, offsetof(Node, sequence), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Node, weakrefs), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};

using NodeFields = Collected<Node, &Node::op, &Node::edges, &Node::saved, &Node::options, &Node::casts, &Node::outputs, &Node::shapes, &Node::shape, &Node::code>;

}  // namespace

void Tensor::free(PyTypeObject* type, PyObject* tensor) {
  Py_CLEAR(as_tensor(tensor)->array);
  if (type == tensor_type && spare_count < max_spare) spare[spare_count++] = tensor;
  else type->tp_free(tensor);
}

bool is_our_subclass(PyTypeObject* type) {
  constexpr int most = 8;
  static PyTypeObject* known[most];
  static int count = 0;
  for (int i = 0; i < count; ++i)
    if (known[i] == type) return true;
  const Ref<> module = owned(PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), "__module__")), prefix = owned(PyUnicode_FromString("extensor."));
  const bool ours = is_ours(module, prefix);
  if (ours && count < most) known[count++] = reinterpret_cast<PyTypeObject*>(shared(type).release());
  return ours;
}

PyObject* make_tensor(PyObject* array, bool requires_grad, PyObject* node) {
  const bool reused = spare_count > 0;
  Tensor* self = as_tensor(reused ? PyObject_Init(spare[--spare_count], tensor_type) : tensor_type->tp_alloc(tensor_type, 0));
  if (self == nullptr) {
    Py_DECREF(array);
    Py_XDECREF(node);
    return nullptr;
  }
  if (reused) {
    self->weakrefs = nullptr;
    PyObject_GC_Track(self);
  }
  return fill(self, array, requires_grad, node);
}

Ref<Node> make_node(PyTypeObject* type, PyObject* op, PyObject* edges, PyObject* saved, PyObject* options) {
  auto self = owned(reinterpret_cast<Node*>(type->tp_alloc(type, 0)));
  self->op = Py_NewRef(op);
  self->edges = Py_NewRef(edges);
  self->saved = Py_NewRef(saved);
  self->options = Py_NewRef(options);
  self->sequence = ++last_sequence;
  remember_caller(self);
  return self;
}

void adopt_classes() {
  // Classes made in Python without fields of their own need none of Python's general clearing.
  tensor_type->tp_dealloc = TensorFields::dealloc;
  node_type->tp_dealloc = NodeFields::dealloc;
}

void bind_objects(PyObject* module) {
  tensor_base = TensorFields::add_class(module, "extensor._native.TensorBase",
                                        {slot(Py_tp_new, tensor_new), slot(Py_tp_members, tensor_members), slot(Py_tp_getset, tensor_properties),
                                         doc("The fields of a tensor.")});
  node_base = NodeFields::add_class(module, "extensor._native.NodeBase",
                                    {slot(Py_tp_new, node_new), slot(Py_tp_members, node_members), doc("The fields of a recorded call.")});
}

}  // namespace extensor::recorder
