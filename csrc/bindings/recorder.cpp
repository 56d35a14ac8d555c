// The objects that one small operation touches: the tensor's fields, the recorder's node, and the call of an op.
//
// A Python subclass gives each its behaviour (extensor.tensor.ExTensor, extensor.graph.Node, extensor.graph.Op); what
// lives here is what a call costs. An op whose function is "check, then one elementwise kernel" is run here from
// end to end when its arguments are plain: float32 or float64 tensors, contiguous, of one shape. An op that hands its
// tensors to one other kernel is run here too when it is called with tensors alone: that kernel answers NotImplemented to
// whatever it does not know to be right. Everything else goes to the Python method `call`, which is the definition. src/extensor/_pure.py has the same classes in Python.
#include <algorithm>
#include <cstddef>
#include <cstring>

#include "bindings/arrays.hpp"
#include "bindings/elementwise.hpp"
#include "kernels/elementwise/elementwise.hpp"

#include <structmember.h>

namespace extensor {
namespace {

struct Tensor {
  PyObject_HEAD
  PyObject* array;
  PyObject* grad;
  PyObject* node;
  char requires_grad;
  PyObject* weakrefs;
};

struct Node {
  PyObject_HEAD
  PyObject* op;
  PyObject* edges;
  PyObject* saved;
  PyObject* options;
  PyObject* casts;
  PyObject* outputs;
  PyObject* shapes;
  PyObject* shape;  // of the output
  PyObject* code;  // of the caller outside this package
  int instruction;
  long long sequence;
  PyObject* weakrefs;
};

// Where an argument of the backward function comes from.
struct Kept {
  enum Kind : char { argument, shape, output } kind;
  int index;
};

constexpr int max_kept = 4;

struct Op {
  PyObject_HEAD
  vectorcallfunc vectorcall;
  PyObject* dict;
  PyObject* weakrefs;
  const ElementwiseKernel* kernel;  // nullptr: always the Python method
  double scalars[max_elementwise_scalars];
  bool records;  // false for a fused backward: where it must be recorded, Python does it
  int kept_count;
  Kept kept[max_kept];
  int target_count;
  int targets[max_elementwise_inputs];
  PyObject* results;  // the NamedTuple of several outputs, or nullptr
  PyObject* direct;   // a kernel to call with the tensors themselves, or nullptr
  PyObject* plain;    // what stands for the arguments of `direct` that are not given; last_axis and all_axes are made
  PyObject* names;    // how they are called
  int tensor_count;   // how many of them may be tensors
};

constexpr int max_direct_arguments = 10;
constexpr long max_exact_integer = 1 << 24;  // in float32

PyTypeObject* tensor_type = nullptr;   // ExTensor, once registered
PyTypeObject* tensor_base = nullptr;
PyTypeObject* node_type = nullptr;     // extensor.graph.Node, once registered
PyTypeObject* node_base = nullptr;
PyObject* name_call = nullptr;
PyObject* package_path = nullptr;
PyObject* last_axis = nullptr;  // stands for the number of the last axis in `plain`
PyObject* all_axes = nullptr;   // stands for the tuple of all axes
PyObject* any_number = nullptr;  // stands for None, or for the number that is given
PyObject* flat_axis = nullptr;  // stands for None, all elements in a row; or for the number of the axis that is given
long long last_sequence = 0;

thread_local bool recording = true;
thread_local PyObject* observer = nullptr;

// --- Tensor ---

PyObject* tensor_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"array", "requires_grad", "node", nullptr};
  PyObject *array, *node = Py_None;
  int requires_grad = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!|pO", const_cast<char**>(names), &PyArray_Type, &array,
                                   &requires_grad, &node))
    return nullptr;
  auto* self = reinterpret_cast<Tensor*>(type->tp_alloc(type, 0));
  if (self == nullptr) return nullptr;
  self->array = Py_NewRef(array);
  self->grad = Py_NewRef(Py_None);
  self->node = Py_NewRef(node);
  self->requires_grad = static_cast<char>(requires_grad);
  return reinterpret_cast<PyObject*>(self);
}

int tensor_traverse(PyObject* object, visitproc visit, void* arg) {
  auto* self = reinterpret_cast<Tensor*>(object);
  Py_VISIT(Py_TYPE(object));
  Py_VISIT(self->array);
  Py_VISIT(self->grad);
  Py_VISIT(self->node);
  return 0;
}

int tensor_clear(PyObject* object) {
  auto* self = reinterpret_cast<Tensor*>(object);
  Py_CLEAR(self->array);
  Py_CLEAR(self->grad);
  Py_CLEAR(self->node);
  return 0;
}

void tensor_dealloc(PyObject* object) {
  PyObject_GC_UnTrack(object);
  Py_TRASHCAN_BEGIN(object, tensor_dealloc)  // a chain of 100,000 operations is freed without recursion
  PyTypeObject* type = Py_TYPE(object);
  if (reinterpret_cast<Tensor*>(object)->weakrefs != nullptr) PyObject_ClearWeakRefs(object);
  tensor_clear(object);
  type->tp_free(object);
  Py_DECREF(type);
  Py_TRASHCAN_END
}

PyMemberDef tensor_members[] = {
    {"_array", T_OBJECT_EX, offsetof(Tensor, array), 0, nullptr},
    {"_grad", T_OBJECT, offsetof(Tensor, grad), 0, nullptr},
    {"_node", T_OBJECT, offsetof(Tensor, node), 0, nullptr},
    {"_requires_grad", T_BOOL, offsetof(Tensor, requires_grad), 0, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Tensor, weakrefs), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};

PyType_Slot tensor_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(tensor_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(tensor_dealloc)},
    {Py_tp_traverse, reinterpret_cast<void*>(tensor_traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(tensor_clear)},
    {Py_tp_members, tensor_members},
    {Py_tp_doc, const_cast<char*>("The fields of a tensor.")},
    {0, nullptr}};

PyType_Spec tensor_spec = {"extensor._native.TensorBase", sizeof(Tensor), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, tensor_slots};

PyObject* make_tensor(PyObject* array, bool requires_grad, PyObject* node) {  // steals array and node
  auto* self = reinterpret_cast<Tensor*>(tensor_type->tp_alloc(tensor_type, 0));
  if (self == nullptr) {
    Py_DECREF(array);
    Py_XDECREF(node);
    return nullptr;
  }
  self->array = array;
  self->grad = Py_NewRef(Py_None);
  self->node = node != nullptr ? node : Py_NewRef(Py_None);
  self->requires_grad = requires_grad;
  return reinterpret_cast<PyObject*>(self);
}

// --- Node ---

bool is_our_code(PyCodeObject* code) {
  return package_path != nullptr && PyUnicode_Tailmatch(code->co_filename, package_path, 0, PY_SSIZE_T_MAX, -1) == 1;
}

// Where the user's code is: the innermost frame outside this package. Which line that is, is asked later or never.
void remember_caller(Node* node) {
  PyFrameObject* frame = PyThreadState_GetFrame(PyThreadState_Get());
  while (frame != nullptr) {
    PyCodeObject* code = PyFrame_GetCode(frame);
    if (!is_our_code(code)) {
      node->code = reinterpret_cast<PyObject*>(code);
      node->instruction = PyFrame_GetLasti(frame);
      Py_DECREF(frame);
      return;
    }
    Py_DECREF(code);
    PyFrameObject* back = PyFrame_GetBack(frame);
    Py_DECREF(frame);
    frame = back;
  }
}

Node* make_node(PyTypeObject* type, PyObject* op, PyObject* edges, PyObject* saved, PyObject* options) {  // borrows all
  auto* self = reinterpret_cast<Node*>(type->tp_alloc(type, 0));
  if (self == nullptr) return nullptr;
  self->op = Py_NewRef(op);
  self->edges = Py_NewRef(edges);
  self->saved = Py_NewRef(saved);
  self->options = Py_NewRef(options);
  self->sequence = ++last_sequence;
  remember_caller(self);
  return self;
}

PyObject* node_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"op", "edges", "saved", "options", nullptr};
  PyObject *op, *edges, *saved, *options = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOO|O", const_cast<char**>(names), &op, &edges, &saved, &options))
    return nullptr;
  return reinterpret_cast<PyObject*>(make_node(type, op, edges, saved, options));
}

int node_traverse(PyObject* object, visitproc visit, void* arg) {
  auto* self = reinterpret_cast<Node*>(object);
  Py_VISIT(Py_TYPE(object));
  Py_VISIT(self->op);
  Py_VISIT(self->edges);
  Py_VISIT(self->saved);
  Py_VISIT(self->options);
  Py_VISIT(self->casts);
  Py_VISIT(self->outputs);
  Py_VISIT(self->shapes);
  Py_VISIT(self->shape);
  Py_VISIT(self->code);
  return 0;
}

int node_clear(PyObject* object) {
  auto* self = reinterpret_cast<Node*>(object);
  Py_CLEAR(self->op);
  Py_CLEAR(self->edges);
  Py_CLEAR(self->saved);
  Py_CLEAR(self->options);
  Py_CLEAR(self->casts);
  Py_CLEAR(self->outputs);
  Py_CLEAR(self->shapes);
  Py_CLEAR(self->shape);
  Py_CLEAR(self->code);
  return 0;
}

void node_dealloc(PyObject* object) {
  PyObject_GC_UnTrack(object);
  Py_TRASHCAN_BEGIN(object, node_dealloc)
  PyTypeObject* type = Py_TYPE(object);
  if (reinterpret_cast<Node*>(object)->weakrefs != nullptr) PyObject_ClearWeakRefs(object);
  node_clear(object);
  type->tp_free(object);
  Py_DECREF(type);
  Py_TRASHCAN_END
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

PyType_Slot node_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(node_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(node_dealloc)},
    {Py_tp_traverse, reinterpret_cast<void*>(node_traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(node_clear)},
    {Py_tp_members, node_members},
    {Py_tp_doc, const_cast<char*>("The fields of a recorded call.")},
    {0, nullptr}};

PyType_Spec node_spec = {"extensor._native.NodeBase", sizeof(Node), 0,
                         Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, node_slots};

// --- Op ---

PyObject* call_in_python(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  const Py_ssize_t count = PyVectorcall_NARGS(nargsf) + (kwnames != nullptr ? PyTuple_GET_SIZE(kwnames) : 0);
  PyObject* small[16];
  PyObject** all = count + 1 <= 16 ? small : static_cast<PyObject**>(PyMem_Malloc((count + 1) * sizeof(PyObject*)));
  if (all == nullptr) return PyErr_NoMemory();
  all[0] = self;
  if (count > 0) std::memcpy(all + 1, args, count * sizeof(PyObject*));
  PyObject* result = PyObject_VectorcallMethod(name_call, all, PyVectorcall_NARGS(nargsf) + 1, kwnames);
  if (all != small) PyMem_Free(all);
  return result;
}

// The operands of a call that can be run here.
struct Operands {
  Tensor* tensors[max_elementwise_inputs];  // nullptr for a Python number
  PyObject* values[max_elementwise_inputs];  // the arrays of the tensors, and the numbers
  const void* data[max_elementwise_inputs];
  bool is_scalar[max_elementwise_inputs];
  double numbers[max_elementwise_inputs];
  float small_numbers[max_elementwise_inputs];
  PyArrayObject* first = nullptr;
  DType dtype = DType::other;
  bool requires_grad = false;
  bool flat = true;
};

bool same_shape(PyArrayObject* a, PyArrayObject* b) {
  const int ndim = PyArray_NDIM(a);
  if (PyArray_NDIM(b) != ndim) return false;
  for (int i = 0; i < ndim; ++i)
    if (PyArray_DIM(a, i) != PyArray_DIM(b, i)) return false;
  return true;
}

// A Python number that is exact in float32, or any float.
bool read_number(PyObject* arg, double& number) {
  if (PyFloat_CheckExact(arg)) {
    number = PyFloat_AS_DOUBLE(arg);
    return true;
  }
  if (!PyLong_CheckExact(arg)) return false;
  int overflow;
  const long whole = PyLong_AsLongAndOverflow(arg, &overflow);
  number = static_cast<double>(whole);
  return overflow == 0 && whole >= -max_exact_integer && whole <= max_exact_integer;
}

// Tensors of one dtype, float32 or float64, and for an op of two operands also a number. `flat` says that they are dense
// and of one shape.
bool take_operands(PyObject* const* args, int count, Operands& ops) {
  for (int i = 0; i < count; ++i) {
    PyObject* arg = args[i];
    ops.tensors[i] = nullptr;
    ops.is_scalar[i] = false;
    ops.values[i] = arg;
    if (Py_TYPE(arg) == tensor_type || PyType_IsSubtype(Py_TYPE(arg), tensor_base)) {
      auto* tensor = reinterpret_cast<Tensor*>(arg);
      auto* array = reinterpret_cast<PyArrayObject*>(tensor->array);
      ops.flat = ops.flat && PyArray_IS_C_CONTIGUOUS(array) && is_readable(array);
      const DType dtype = dtype_of(array);
      if (ops.first == nullptr) {
        if (dtype != DType::float32 && dtype != DType::float64) return false;
        ops.first = array;
        ops.dtype = dtype;
      } else if (dtype != ops.dtype) {
        return false;
      } else {
        ops.flat = ops.flat && same_shape(ops.first, array);
      }
      ops.tensors[i] = tensor;
      ops.values[i] = tensor->array;
      ops.data[i] = PyArray_DATA(array);
      ops.requires_grad |= tensor->requires_grad != 0;
    } else {
      if (count != 2 || !read_number(arg, ops.numbers[i])) return false;
      ops.is_scalar[i] = true;
    }
  }
  if (ops.first == nullptr) return false;
  for (int i = 0; i < count; ++i) {
    if (!ops.is_scalar[i]) continue;
    ops.small_numbers[i] = static_cast<float>(ops.numbers[i]);
    ops.data[i] = ops.dtype == DType::float32 ? static_cast<const void*>(&ops.small_numbers[i]) : &ops.numbers[i];
  }
  return true;
}

PyObject* shape_tuple(PyArrayObject* array) {
  const int ndim = array == nullptr ? 0 : PyArray_NDIM(array);
  PyObject* tuple = PyTuple_New(ndim);
  for (int i = 0; tuple != nullptr && i < ndim; ++i) PyTuple_SET_ITEM(tuple, i, PyLong_FromSsize_t(PyArray_DIM(array, i)));
  return tuple;
}

// The node of this call; a new reference.
PyObject* record(Op* op, PyObject* const* args, const Operands& ops, PyObject* output, PyObject* options) {
  PyObject* saved = PyTuple_New(op->kept_count);
  PyObject* edges = PyTuple_New(op->target_count);
  if (saved == nullptr || edges == nullptr) {
    Py_XDECREF(saved);
    Py_XDECREF(edges);
    return nullptr;
  }
  bool failed = false;
  for (int i = 0; i < op->kept_count; ++i) {
    const Kept kept = op->kept[i];
    PyObject* value = nullptr;
    if (kept.kind == Kept::argument) {
      value = Py_NewRef(args[kept.index] != nullptr ? args[kept.index] : Py_None);
    } else if (kept.kind == Kept::output) {
      value = make_tensor(Py_NewRef(output), false, nullptr);
    } else {
      Tensor* tensor = ops.tensors[kept.index];
      value = shape_tuple(tensor == nullptr ? nullptr : reinterpret_cast<PyArrayObject*>(tensor->array));
    }
    failed |= value == nullptr;
    PyTuple_SET_ITEM(saved, i, value);
  }
  for (int i = 0; i < op->target_count; ++i) {
    Tensor* tensor = ops.tensors[op->targets[i]];
    PyObject* edge = Py_None;
    if (tensor != nullptr && tensor->requires_grad)
      edge = tensor->node == Py_None ? reinterpret_cast<PyObject*>(tensor) : tensor->node;
    PyTuple_SET_ITEM(edges, i, Py_NewRef(edge));
  }
  Node* node = nullptr;
  if (!failed) node = make_node(node_type, reinterpret_cast<PyObject*>(op), edges, saved, options);
  Py_DECREF(saved);
  Py_DECREF(edges);
  if (node != nullptr) node->shape = shape_tuple(reinterpret_cast<PyArrayObject*>(output));
  return reinterpret_cast<PyObject*>(node);
}

// The positions of the arguments by name. False: one that is not known, or is there twice.
bool place_keywords(Op* op, PyObject* const* values, PyObject* kwnames, PyObject** given) {
  const Py_ssize_t total = PyTuple_GET_SIZE(op->names);
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(kwnames); ++k) {
    Py_ssize_t at = 0;  // names of parameters and of keywords are interned
    while (at < total && PyTuple_GET_ITEM(op->names, at) != PyTuple_GET_ITEM(kwnames, k)) ++at;
    if (at == total || given[at] != nullptr) return false;
    given[at] = values[k];
  }
  return true;
}

// An axis of a tensor with `ndim` of them, counted from the front; -1 if it is none.
long axis_from_front(PyObject* value, int ndim) {
  if (!PyLong_CheckExact(value)) return -1;
  int overflow;
  const long axis = PyLong_AsLongAndOverflow(value, &overflow);
  if (overflow != 0 || axis < -ndim || axis >= ndim) return -1;
  return axis < 0 ? axis + ndim : axis;
}

// What a kernel gets for the axes of its caller: None, an axis, or a tuple of them. nullptr without an error set: in doubt.
PyObject* made_axes(PyObject* value, int ndim) {
  const bool all = value == Py_None, single = PyLong_CheckExact(value);
  if (!all && !single && !PyTuple_CheckExact(value)) return nullptr;
  const Py_ssize_t count = all ? ndim : single ? 1 : PyTuple_GET_SIZE(value);
  uint64_t seen = 0;
  long axes[NPY_MAXDIMS];
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (i == NPY_MAXDIMS) return nullptr;
    axes[i] = all ? long(i) : axis_from_front(single ? value : PyTuple_GET_ITEM(value, i), ndim);
    if (axes[i] < 0 || seen >> axes[i] & 1) return nullptr;
    seen |= uint64_t(1) << axes[i];
  }
  PyObject* made = PyTuple_New(count);
  for (Py_ssize_t i = 0; made != nullptr && i < count; ++i) PyTuple_SET_ITEM(made, i, PyLong_FromLong(axes[i]));
  return made;
}

// The attribute that a kernel gets where the caller gave `value` (or nullptr) and `plain` stands for none: a new
// reference. nullptr without an error set: in doubt.
PyObject* made_attribute(PyObject* value, PyObject* plain, int ndim) {
  if (plain == last_axis || plain == all_axes || plain == flat_axis) {
    if (ndim == 0) return nullptr;
    if (plain == flat_axis && (value == nullptr || value == Py_None)) return Py_NewRef(Py_None);
    if (plain == all_axes) return made_axes(value != nullptr ? value : Py_None, ndim);
    const long axis = value != nullptr ? axis_from_front(value, ndim) : ndim - 1;
    return axis < 0 ? nullptr : PyLong_FromLong(axis);
  }
  if (plain == any_number) {
    if (value == nullptr || value == Py_None) return Py_NewRef(Py_None);
    return PyFloat_CheckExact(value) || PyLong_CheckExact(value) ? Py_NewRef(value) : nullptr;
  }
  if (value == nullptr || value == plain) return Py_NewRef(plain);
  // keepdims, the needs of a backward, the reduction of a loss
  const bool alike = (PyBool_Check(plain) && PyBool_Check(value)) || (PyTuple_CheckExact(plain) && PyTuple_CheckExact(value)) ||
                     (PyUnicode_CheckExact(plain) && PyUnicode_CheckExact(value));
  return alike ? Py_NewRef(value) : nullptr;
}

// What a kernel gets for a tensor of which it needs the shape alone: of the dtype of the gradient, and not recorded. A new
// reference; nullptr without an error set: in doubt.
PyObject* made_shape(PyObject* value, const Tensor* grad) {
  if (value == nullptr || grad == nullptr) return nullptr;
  if (PyTuple_CheckExact(value)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value); ++i)
      if (!PyLong_CheckExact(PyTuple_GET_ITEM(value, i))) return nullptr;
    return Py_NewRef(value);
  }
  if (!PyObject_TypeCheck(value, tensor_base)) return nullptr;
  auto* tensor = reinterpret_cast<Tensor*>(value);
  auto* array = reinterpret_cast<PyArrayObject*>(tensor->array);
  const bool alike = dtype_of(array) == dtype_of(reinterpret_cast<PyArrayObject*>(grad->array));
  return alike && !(recording && tensor->requires_grad) ? shape_tuple(array) : nullptr;
}

// The options that the backward of a recorded call gets: those that were given. A new reference.
PyObject* options_given(Op* op, PyObject* const* given) {
  PyObject* options = nullptr;
  for (Py_ssize_t i = op->tensor_count; i < PyTuple_GET_SIZE(op->plain); ++i) {
    if (given[i] == nullptr) continue;
    if (options == nullptr && (options = PyDict_New()) == nullptr) return nullptr;
    if (PyDict_SetItem(options, PyTuple_GET_ITEM(op->names, i), given[i]) < 0) {
      Py_DECREF(options);
      return nullptr;
    }
  }
  return options != nullptr ? options : Py_NewRef(Py_None);
}

// A call for the kernel `direct`: tensors, then axes and flags. nullptr without an error set: not a plain call.
PyObject* call_directly(Op* op, PyObject* const* args, Py_ssize_t count, PyObject* kwnames) {
  const Py_ssize_t total = PyTuple_GET_SIZE(op->plain);
  if (count < 1 || count > total || observer != nullptr) return nullptr;
  PyObject* given[max_direct_arguments] = {};
  for (Py_ssize_t i = 0; i < count; ++i) given[i] = args[i];
  if (kwnames != nullptr && !place_keywords(op, args + count, kwnames, given)) return nullptr;

  Operands operands;
  for (auto& tensor : operands.tensors) tensor = nullptr;
  PyObject* values[max_direct_arguments];
  int ndim = 0;  // a loss's grad_output has fewer axes than its logits
  for (Py_ssize_t i = 0; i < op->tensor_count; ++i) {
    if (given[i] == nullptr || given[i] == Py_None) {
      if (PyTuple_GET_ITEM(op->plain, i) != Py_None) return nullptr;  // a tensor that must be given
      values[i] = Py_None;
      continue;
    }
    if (!PyObject_TypeCheck(given[i], tensor_base)) return nullptr;
    auto* tensor = reinterpret_cast<Tensor*>(given[i]);
    operands.tensors[i] = tensor;
    values[i] = tensor->array;
    ndim = std::max(ndim, PyArray_NDIM(reinterpret_cast<PyArrayObject*>(tensor->array)));
    if (tensor->requires_grad) {
      bool is_target = false;
      for (int t = 0; t < op->target_count; ++t) is_target |= op->targets[t] == i;
      if (recording && (!op->records || !is_target)) return nullptr;
      operands.requires_grad = true;
    }
  }
  Py_ssize_t made = op->tensor_count;
  for (; made < total; ++made) {
    PyObject* plain = PyTuple_GET_ITEM(op->plain, made);
    const bool is_shape = plain == reinterpret_cast<PyObject*>(&PyTuple_Type);
    values[made] = is_shape ? made_shape(given[made], operands.tensors[0]) : made_attribute(given[made], plain, ndim);
    if (values[made] == nullptr) break;
    if (is_shape) ndim = static_cast<int>(PyTuple_GET_SIZE(values[made]));
  }
  PyObject* output = made == total ? PyObject_Vectorcall(op->direct, values, static_cast<size_t>(total), nullptr) : nullptr;
  while (made-- > op->tensor_count) Py_DECREF(values[made]);
  if (output == nullptr) return nullptr;
  if (output == Py_NotImplemented) {
    Py_DECREF(output);
    return nullptr;
  }
  const bool recorded = recording && operands.requires_grad;
  if (PyArray_CheckExact(output)) {
    const DType dtype = dtype_of(reinterpret_cast<PyArrayObject*>(output));
    for (int t = 0; t < op->target_count; ++t) {
      Tensor* tensor = operands.tensors[op->targets[t]];
      if (tensor != nullptr && dtype_of(reinterpret_cast<PyArrayObject*>(tensor->array)) != dtype) {
        Py_DECREF(output);
        return nullptr;
      }
    }
    PyObject* node = nullptr;
    if (recorded) {
      PyObject* options = options_given(op, given);
      if (options != nullptr) node = record(op, given, operands, output, options);
      Py_XDECREF(options);
      if (node == nullptr) {
        Py_DECREF(output);
        return nullptr;
      }
    }
    return make_tensor(output, recorded, node);
  }
  PyObject* result = nullptr;
  if (PyTuple_CheckExact(output) && op->results != nullptr && PyTuple_GET_SIZE(output) <= max_direct_arguments) {
    PyObject* tensors[max_direct_arguments];
    const Py_ssize_t parts = PyTuple_GET_SIZE(output);
    bool failed = false;
    for (Py_ssize_t i = 0; i < parts; ++i) {
      PyObject* part = PyTuple_GET_ITEM(output, i);
      tensors[i] = PyArray_CheckExact(part) ? make_tensor(Py_NewRef(part), false, nullptr) : Py_NewRef(part);
      failed |= tensors[i] == nullptr;
    }
    if (!failed) result = PyObject_Vectorcall(op->results, tensors, static_cast<size_t>(parts), nullptr);
    for (Py_ssize_t i = 0; i < parts; ++i) Py_XDECREF(tensors[i]);
  }
  Py_DECREF(output);
  return result;
}

// The tensor of an elementwise result, which it takes over, with its node if the call is recorded.
PyObject* made_result(Op* op, PyObject* const* args, const Operands& operands, PyObject* output, bool recorded) {
  PyObject* node = recorded ? record(op, args, operands, output, Py_None) : nullptr;
  if (recorded && node == nullptr) {
    Py_DECREF(output);
    return nullptr;
  }
  return make_tensor(output, recorded, node);
}

PyObject* op_vectorcall(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  auto* op = reinterpret_cast<Op*>(self);
  const Py_ssize_t count = PyVectorcall_NARGS(nargsf);
  if (op->direct != nullptr) {
    PyObject* result = call_directly(op, args, count, kwnames);
    if (result != nullptr || PyErr_Occurred()) return result;
    return call_in_python(self, args, nargsf, kwnames);
  }
  Operands operands;
  if (op->kernel == nullptr || kwnames != nullptr || observer != nullptr || count != op->kernel->inputs ||
      !take_operands(args, static_cast<int>(count), operands))
    return call_in_python(self, args, nargsf, kwnames);
  const bool recorded = recording && operands.requires_grad;
  if (recorded && !op->records) return call_in_python(self, args, nargsf, kwnames);

  const ElementwiseKernel& kernel = *op->kernel;
  if (!operands.flat) {
    PyObject* output = kernel.outputs == 1 ? run_elementwise(kernel, operands.values, op->scalars) : not_covered();
    if (output == nullptr) return nullptr;
    if (output != Py_NotImplemented) return made_result(op, args, operands, output, recorded);
    Py_DECREF(output);
    return call_in_python(self, args, nargsf, kwnames);
  }
  PyArrayObject* first = operands.first;
  PyObject* outputs[max_elementwise_outputs] = {};
  void* data[max_elementwise_outputs];
  for (int i = 0; i < kernel.outputs; ++i) {
    PyArrayObject* out = new_array(kernel.mask_output ? DType::boolean : operands.dtype, PyArray_NDIM(first), PyArray_DIMS(first));
    if (out == nullptr) {
      for (int j = 0; j < i; ++j) Py_DECREF(outputs[j]);
      return nullptr;
    }
    outputs[i] = reinterpret_cast<PyObject*>(out);
    data[i] = PyArray_DATA(out);
  }
  {
    const int64_t n = PyArray_SIZE(first);
    MaybeReleaseGil released(static_cast<double>(n) * kernel.cost_ns);
    run_elementwise_contiguous(kernel, operands.dtype, n, operands.data, operands.is_scalar, data, op->scalars);
  }
  if (kernel.outputs == 1) return made_result(op, args, operands, outputs[0], recorded);
  PyObject* tensors[max_elementwise_outputs] = {};
  bool failed = false;
  for (int i = 0; i < kernel.outputs; ++i) {
    tensors[i] = make_tensor(outputs[i], false, nullptr);
    failed |= tensors[i] == nullptr;
  }
  PyObject* result = failed ? nullptr : PyObject_Vectorcall(op->results, tensors, kernel.outputs, nullptr);
  for (int i = 0; i < kernel.outputs; ++i) Py_XDECREF(tensors[i]);
  return result;
}

PyObject* op_new(PyTypeObject* type, PyObject*, PyObject*) {
  auto* self = reinterpret_cast<Op*>(type->tp_alloc(type, 0));
  if (self == nullptr) return nullptr;
  self->vectorcall = op_vectorcall;
  return reinterpret_cast<PyObject*>(self);
}

int op_traverse(PyObject* object, visitproc visit, void* arg) {
  auto* self = reinterpret_cast<Op*>(object);
  Py_VISIT(Py_TYPE(object));
  Py_VISIT(self->dict);
  Py_VISIT(self->results);
  Py_VISIT(self->direct);
  Py_VISIT(self->plain);
  Py_VISIT(self->names);
  return 0;
}

int op_clear(PyObject* object) {
  auto* self = reinterpret_cast<Op*>(object);
  Py_CLEAR(self->dict);
  Py_CLEAR(self->results);
  Py_CLEAR(self->direct);
  Py_CLEAR(self->plain);
  Py_CLEAR(self->names);
  return 0;
}

void op_dealloc(PyObject* object) {
  PyObject_GC_UnTrack(object);
  PyTypeObject* type = Py_TYPE(object);
  if (reinterpret_cast<Op*>(object)->weakrefs != nullptr) PyObject_ClearWeakRefs(object);
  op_clear(object);
  type->tp_free(object);
  Py_DECREF(type);
}

PyObject* op_get(PyObject* self, PyObject* instance, PyObject*) {
  if (instance == nullptr || instance == Py_None) return Py_NewRef(self);
  return PyMethod_New(self, instance);
}

// Which arguments the recorder keeps for the backward, and which have gradients. False with a Python error set, or not,
// if the plan does not fit.
bool read_plan(Op* self, PyObject* kept, PyObject* targets, int inputs) {
  if (PyTuple_GET_SIZE(kept) > max_kept || PyTuple_GET_SIZE(targets) > max_elementwise_inputs) return false;
  self->kept_count = static_cast<int>(PyTuple_GET_SIZE(kept));
  for (int i = 0; i < self->kept_count; ++i) {
    const char* kind;
    if (!PyArg_ParseTuple(PyTuple_GET_ITEM(kept, i), "si", &kind, &self->kept[i].index)) return false;
    self->kept[i].kind = kind[0] == 'a' ? Kept::argument : kind[0] == 's' ? Kept::shape : Kept::output;
    if (self->kept[i].kind != Kept::output && (self->kept[i].index < 0 || self->kept[i].index >= inputs)) return false;
  }
  self->target_count = static_cast<int>(PyTuple_GET_SIZE(targets));
  for (int i = 0; i < self->target_count; ++i) {
    const long index = PyLong_AsLong(PyTuple_GET_ITEM(targets, i));
    if (index < 0 || index >= inputs) return false;
    self->targets[i] = static_cast<int>(index);
  }
  return true;
}

// run_natively(kernel, records, kept, targets, scalars, results) -> bool
// kept: ("argument" | "shape" | "output", index) per positional parameter of the backward, after grad_output.
PyObject* op_run_natively(PyObject* object, PyObject* args) {
  auto* self = reinterpret_cast<Op*>(object);
  const char* name;
  int records;
  PyObject *kept, *targets, *scalars, *results;
  if (!PyArg_ParseTuple(args, "spO!O!O!O", &name, &records, &PyTuple_Type, &kept, &PyTuple_Type, &targets,
                        &PyTuple_Type, &scalars, &results))
    return nullptr;
  const ElementwiseKernel* kernel = find_elementwise(name);
  if (kernel == nullptr || kernel->mask_inputs != 0 || (kernel->mask_output && records) ||
      PyTuple_GET_SIZE(scalars) != kernel->scalars || (kernel->outputs > 1 && (records || results == Py_None)))
    Py_RETURN_FALSE;
  if (!read_plan(self, kept, targets, kernel->inputs)) {
    if (PyErr_Occurred()) return nullptr;
    Py_RETURN_FALSE;
  }
  for (int i = 0; i < kernel->scalars; ++i) {
    self->scalars[i] = PyFloat_AsDouble(PyTuple_GET_ITEM(scalars, i));
    if (self->scalars[i] == -1.0 && PyErr_Occurred()) return nullptr;
  }
  self->records = records != 0;
  Py_XSETREF(self->results, results == Py_None ? nullptr : Py_NewRef(results));
  self->kernel = kernel;
  Py_RETURN_TRUE;
}

// run_directly(kernel, records, kept, targets, plain, names, tensors, results) -> bool
// plain: an entry per argument of the kernel: ... for a tensor that must be given, else what stands for it.
// names: how each of them is called, or None for one that the backward could not be told.
PyObject* op_run_directly(PyObject* object, PyObject* args) {
  auto* self = reinterpret_cast<Op*>(object);
  int records, tensors;
  PyObject *kernel, *kept, *targets, *plain, *names, *results;
  if (!PyArg_ParseTuple(args, "OpO!O!O!O!iO", &kernel, &records, &PyTuple_Type, &kept, &PyTuple_Type, &targets,
                        &PyTuple_Type, &plain, &PyTuple_Type, &names, &tensors, &results))
    return nullptr;
  if (PyTuple_GET_SIZE(plain) > max_direct_arguments || PyTuple_GET_SIZE(names) != PyTuple_GET_SIZE(plain) || tensors < 1 || tensors > max_elementwise_inputs ||
      tensors > PyTuple_GET_SIZE(plain) || !read_plan(self, kept, targets, tensors)) {
    if (PyErr_Occurred()) return nullptr;
    Py_RETURN_FALSE;
  }
  self->records = records != 0;
  self->tensor_count = tensors;
  Py_XSETREF(self->results, results == Py_None ? nullptr : Py_NewRef(results));
  Py_XSETREF(self->plain, Py_NewRef(plain));
  Py_XSETREF(self->names, Py_NewRef(names));
  Py_XSETREF(self->direct, Py_NewRef(kernel));
  Py_RETURN_TRUE;
}

PyMethodDef op_methods[] = {
    {"run_natively", op_run_natively, METH_VARARGS, "Run plain calls of this op with an elementwise kernel."},
    {"run_directly", op_run_directly, METH_VARARGS, "Run plain calls of this op by handing its tensors to a kernel."},
    {nullptr, nullptr, 0, nullptr}};

PyMemberDef op_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Op, vectorcall), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(Op, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Op, weakrefs), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};

PyType_Slot op_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(op_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(op_dealloc)},
    {Py_tp_traverse, reinterpret_cast<void*>(op_traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(op_clear)},
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_descr_get, reinterpret_cast<void*>(op_get)},
    {Py_tp_methods, op_methods},
    {Py_tp_members, op_members},
    {Py_tp_doc, const_cast<char*>("The call of an op.")},
    {0, nullptr}};

PyType_Spec op_spec = {"extensor._native.OpBase", sizeof(Op), 0,
                       Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                           Py_TPFLAGS_METHOD_DESCRIPTOR,
                       op_slots};

// --- Module functions ---

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
  // A class made in Python does not inherit the fast calling convention (before Python 3.12).
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(ops); ++i) {
    auto* type = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(ops, i));
    type->tp_vectorcall_offset = offsetof(Op, vectorcall);
    type->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR;
    PyType_Modified(type);
  }
  Py_RETURN_NONE;
}

PyObject* is_recording(PyObject*, PyObject*) { return PyBool_FromLong(recording); }

PyObject* exchange_recording(PyObject*, PyObject* on) {
  const int wanted = PyObject_IsTrue(on);
  if (wanted < 0) return nullptr;
  const bool before = recording;
  recording = wanted != 0;
  return PyBool_FromLong(before);
}

PyObject* get_observer(PyObject*, PyObject*) { return Py_NewRef(observer == nullptr ? Py_None : observer); }

PyObject* exchange_observer(PyObject*, PyObject* wanted) {
  PyObject* before = observer == nullptr ? Py_NewRef(Py_None) : observer;
  observer = wanted == Py_None ? nullptr : Py_NewRef(wanted);
  return before;
}

PyObject* next_sequence(PyObject*, PyObject*) { return PyLong_FromLongLong(++last_sequence); }

PyMethodDef functions[] = {
    {"register_classes", register_classes, METH_VARARGS, "Tell the recorder the Python classes to make."},
    {"is_recording", is_recording, METH_NOARGS, "Whether this thread records."},
    {"exchange_recording", exchange_recording, METH_O, "Set whether this thread records; returns what it was."},
    {"get_observer", get_observer, METH_NOARGS, "What sees every op call of this thread, or None."},
    {"exchange_observer", exchange_observer, METH_O, "Set the observer of this thread; returns what it was."},
    {"next_sequence", next_sequence, METH_NOARGS, "The next number in the order of recording."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

// Adds the classes and functions of the recorder to the module. False with a Python error set on failure.
bool bind_recorder(PyObject* module) {
  name_call = PyUnicode_InternFromString("call");
  last_axis = PyUnicode_InternFromString("last axis");
  flat_axis = PyUnicode_InternFromString("flat axis");
  any_number = PyUnicode_InternFromString("any number");
  all_axes = PyUnicode_InternFromString("all axes");
  tensor_base = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&tensor_spec));
  node_base = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&node_spec));
  PyObject* op_base = PyType_FromSpec(&op_spec);
  if (name_call == nullptr || last_axis == nullptr || all_axes == nullptr || flat_axis == nullptr || any_number == nullptr || tensor_base == nullptr || node_base == nullptr || op_base == nullptr) return false;
  return PyModule_AddObjectRef(module, "LAST_AXIS", last_axis) == 0 &&
         PyModule_AddObjectRef(module, "FLAT_AXIS", flat_axis) == 0 &&
         PyModule_AddObjectRef(module, "ANY_NUMBER", any_number) == 0 &&
         PyModule_AddObjectRef(module, "ALL_AXES", all_axes) == 0 &&
         PyModule_AddObjectRef(module, "TensorBase", reinterpret_cast<PyObject*>(tensor_base)) == 0 &&
         PyModule_AddObjectRef(module, "NodeBase", reinterpret_cast<PyObject*>(node_base)) == 0 &&
         PyModule_AddObjectRef(module, "OpBase", op_base) == 0 && PyModule_AddFunctions(module, functions) == 0;
}

}  // namespace extensor
