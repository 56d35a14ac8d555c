// The call of an op.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <new>

#include "bindings/arguments.hpp"
#include "bindings/elementwise.hpp"
#include "bindings/recorder/attributes.hpp"
#include "bindings/recorder/objects.hpp"

#include <structmember.h>

namespace extensor::recorder {
namespace {

constexpr int max_direct_arguments = 10;
constexpr long max_exact_integer = 1 << 24;  // in float32

PyObject* name_call = nullptr;

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
  Tensor* tensors[max_elementwise_inputs] = {};  // nullptr for a Python number
  // Owned: while a kernel runs without the interpreter lock, another thread may give a parameter a new array.
  PyObject* arrays[max_elementwise_inputs] = {};
  PyObject* values[max_elementwise_inputs];  // the arrays of the tensors, and the numbers
  const void* data[max_elementwise_inputs];
  bool is_scalar[max_elementwise_inputs];
  double numbers[max_elementwise_inputs];
  float small_numbers[max_elementwise_inputs];
  PyArrayObject* first = nullptr;
  DType dtype = DType::other;
  unsigned wide = 0;  // bit i: operand i is a number in the computing type
  bool requires_grad = false;
  bool flat = true, alike = true;

  Operands() = default;
  Operands(const Operands&) = delete;
  Operands& operator=(const Operands&) = delete;
  ~Operands() {
    for (PyObject* array : arrays) Py_XDECREF(array);
  }
  PyObject* own(int i, Tensor* tensor) {
    tensors[i] = tensor;
    return arrays[i] = Py_NewRef(tensor->array);
  }
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

// Tensors of one dtype that `kernel` computes, and for an op of two operands also a number. `flat` says that they are
// dense, `alike` that they are of one shape.
bool take_operands(const ElementwiseKernel& kernel, PyObject* const* args, Operands& ops) {
  const int count = kernel.inputs;
  for (int i = 0; i < count; ++i) {
    PyObject* arg = args[i];
    ops.is_scalar[i] = false;
    ops.values[i] = arg;
    if (Py_TYPE(arg) == tensor_type || PyType_IsSubtype(Py_TYPE(arg), tensor_base)) {
      auto* tensor = reinterpret_cast<Tensor*>(arg);
      ops.values[i] = ops.own(i, tensor);
      auto* array = reinterpret_cast<PyArrayObject*>(ops.values[i]);
      ops.flat = ops.flat && PyArray_IS_C_CONTIGUOUS(array) && is_readable(array);
      const DType dtype = dtype_of(array);
      if (ops.first == nullptr) {
        if (!elementwise_covers(dtype)) return false;
        ops.first = array;
        ops.dtype = dtype;
      } else if (dtype != ops.dtype) {
        return false;
      } else {
        ops.alike = ops.alike && same_shape(ops.first, array);
      }
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
    ops.wide |= 1u << i;
    ops.small_numbers[i] = static_cast<float>(ops.numbers[i]);
    ops.data[i] = ops.dtype == DType::float64 ? static_cast<const void*>(&ops.numbers[i]) : &ops.small_numbers[i];
  }
  // In half precision the guards are wider than the kernel's numbers say, and numbers are rounded before a comparison.
  const bool half = item_size(ops.dtype) == 2;
  return !half || (kernel.scalars == 0 && !(kernel.mask_output && ops.wide != 0));
}

PyObject* shape_tuple(PyArrayObject* array) {
  const int ndim = array == nullptr ? 0 : PyArray_NDIM(array);
  PyObject* tuple = PyTuple_New(ndim);
  for (int i = 0; tuple != nullptr && i < ndim; ++i) PyTuple_SET_ITEM(tuple, i, PyLong_FromSsize_t(PyArray_DIM(array, i)));
  return tuple;
}

bool is_floating(DType dtype) { return dtype >= DType::float16 && dtype <= DType::float64; }

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
    } else if (kept.kind == Kept::dtype) {
      auto* array = reinterpret_cast<PyArrayObject*>(ops.arrays[kept.index]);
      value = Py_NewRef(reinterpret_cast<PyObject*>(PyArray_DESCR(array)));
    } else {
      value = shape_tuple(reinterpret_cast<PyArrayObject*>(ops.arrays[kept.index]));
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

// What a kernel gets for a shape, and in a backward for a tensor of which it needs the shape alone: of the dtype of the
// gradient, and not recorded. In a forward a tensor would stand for its elements. A new reference; nullptr without an
// error set: in doubt.
PyObject* made_shape(const Op* op, PyObject* value, const Tensor* grad) {
  if (value == nullptr || grad == nullptr) return nullptr;
  if (PyTuple_CheckExact(value)) return is_ints(value) ? Py_NewRef(value) : nullptr;
  if (op->records || !PyObject_TypeCheck(value, tensor_base)) return nullptr;
  auto* tensor = reinterpret_cast<Tensor*>(value);
  auto* array = reinterpret_cast<PyArrayObject*>(tensor->array);
  const bool alike = dtype_of(array) == dtype_of(reinterpret_cast<PyArrayObject*>(grad->array));
  return alike && !(recording && tensor->requires_grad) ? shape_tuple(array) : nullptr;
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

// The options that the backward of a recorded call gets: those that were given. One without a name, such as the shape of
// reshape, means nothing to it. A new reference.
PyObject* options_given(Op* op, PyObject* const* given) {
  PyObject* options = nullptr;
  for (Py_ssize_t i = op->tensor_count; i < PyTuple_GET_SIZE(op->plain); ++i) {
    if (given[i] == nullptr || PyTuple_GET_ITEM(op->names, i) == Py_None) continue;
    if (options == nullptr && (options = PyDict_New()) == nullptr) return nullptr;
    if (PyDict_SetItem(options, PyTuple_GET_ITEM(op->names, i), given[i]) < 0) {
      Py_DECREF(options);
      return nullptr;
    }
  }
  return options != nullptr ? options : Py_NewRef(Py_None);
}

// What goes away with the call.
struct Owned {
  PyObject* value = nullptr;
  ~Owned() { Py_XDECREF(value); }
};

// The node of a call with a list of tensors, after which it keeps a list of their shapes, or nothing. A new reference.
PyObject* record_list(Op* op, PyObject* list, PyObject* output, PyObject* options) {
  const Py_ssize_t count = PySequence_Fast_GET_SIZE(list);
  Owned saved{PyTuple_New(op->kept_count)}, edges{PyTuple_New(count)};
  if (saved.value == nullptr || edges.value == nullptr) return nullptr;
  if (op->kept_count == 1) {
    PyObject* shapes = PyList_New(count);
    PyTuple_SET_ITEM(saved.value, 0, shapes);
    for (Py_ssize_t i = 0; shapes != nullptr && i < count; ++i) {
      auto* tensor = reinterpret_cast<Tensor*>(PySequence_Fast_GET_ITEM(list, i));
      PyList_SET_ITEM(shapes, i, shape_tuple(reinterpret_cast<PyArrayObject*>(tensor->array)));
    }
    if (shapes == nullptr) return nullptr;
  }
  for (Py_ssize_t i = 0; i < count; ++i) {
    auto* tensor = reinterpret_cast<Tensor*>(PySequence_Fast_GET_ITEM(list, i));
    PyObject* edge = Py_None;
    if (tensor->requires_grad) edge = tensor->node == Py_None ? reinterpret_cast<PyObject*>(tensor) : tensor->node;
    PyTuple_SET_ITEM(edges.value, i, Py_NewRef(edge));
  }
  Node* node = make_node(node_type, reinterpret_cast<PyObject*>(op), edges.value, saved.value, options);
  if (node != nullptr) node->shape = shape_tuple(reinterpret_cast<PyArrayObject*>(output));
  return reinterpret_cast<PyObject*>(node);
}

// A call with a list of tensors of one dtype, then attributes. nullptr without an error set: not a plain call.
PyObject* call_with_list(Op* op, PyObject* const* given) {
  const Py_ssize_t total = PyTuple_GET_SIZE(op->plain);
  PyObject* list = given[0];
  if (list == nullptr || !(PyList_CheckExact(list) || PyTuple_CheckExact(list)) || PySequence_Fast_GET_SIZE(list) == 0) return nullptr;
  const Py_ssize_t count = PySequence_Fast_GET_SIZE(list);
  bool requires_grad = false;
  Owned arrays{PyList_New(count)};
  for (Py_ssize_t i = 0; arrays.value != nullptr && i < count; ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(list, i);
    if (!PyObject_TypeCheck(item, tensor_base)) return nullptr;
    requires_grad |= reinterpret_cast<Tensor*>(item)->requires_grad != 0;
    PyList_SET_ITEM(arrays.value, i, Py_NewRef(reinterpret_cast<Tensor*>(item)->array));
  }
  if (arrays.value == nullptr) return nullptr;
  PyObject* values[max_direct_arguments] = {arrays.value};
  Py_ssize_t made = 1;
  for (; made < total; ++made) {
    values[made] = made_attribute(given[made], PyTuple_GET_ITEM(op->plain, made), 0);
    if (values[made] == nullptr) break;
  }
  PyObject* output = made == total ? PyObject_Vectorcall(op->direct, values, static_cast<size_t>(total), nullptr) : nullptr;
  while (made-- > 1) Py_DECREF(values[made]);
  if (output == nullptr) return nullptr;
  if (output == Py_NotImplemented) {
    Py_DECREF(output);
    return nullptr;
  }
  PyObject* node = nullptr;
  if (recording && requires_grad) {
    Owned options{options_given(op, given)};
    if (options.value != nullptr) node = record_list(op, list, output, options.value);
    if (node == nullptr) {
      Py_DECREF(output);
      return nullptr;
    }
  }
  return make_tensor(output, node != nullptr, node);
}

// A call for the kernel `direct`: tensors, then axes and flags. nullptr without an error set: not a plain call.
PyObject* call_directly(Op* op, PyObject* const* args, Py_ssize_t count, PyObject* kwnames) {
  const Py_ssize_t total = PyTuple_GET_SIZE(op->plain);
  if (count < 1 || count > total || observer != nullptr) return nullptr;
  PyObject* given[max_direct_arguments] = {};
  for (Py_ssize_t i = 0; i < count; ++i) given[i] = args[i];
  if (kwnames != nullptr && !place_keywords(op, args + count, kwnames, given)) return nullptr;

  if (PyTuple_GET_ITEM(op->plain, 0) == tensors) return call_with_list(op, given);

  Operands operands;
  PyObject* values[max_direct_arguments];
  Owned made_key_of;
  int ndim = 0;  // a loss's grad_output has fewer axes than its logits
  for (Py_ssize_t i = 0; i < op->tensor_count; ++i) {
    if (PyTuple_GET_ITEM(op->plain, i) == reinterpret_cast<PyObject*>(&PyTuple_Type)) {  // a shape between tensors
      if (given[i] == nullptr || !is_ints(given[i], 2)) return nullptr;
      values[i] = given[i];
      continue;
    }
    const bool may_be_number = PyTuple_GET_ITEM(op->plain, i) == reinterpret_cast<PyObject*>(&PyFloat_Type);
    if (may_be_number && given[i] != nullptr && (PyFloat_CheckExact(given[i]) || PyLong_CheckExact(given[i]))) {
      values[i] = given[i];
      continue;
    }
    if (PyTuple_GET_ITEM(op->plain, i) == key) {
      if (given[i] == nullptr || made_key_of.value != nullptr || (made_key_of.value = made_key(given[i])) == nullptr) return nullptr;
      values[i] = made_key_of.value;
      continue;
    }
    if (given[i] == nullptr || given[i] == Py_None) {
      if (PyTuple_GET_ITEM(op->plain, i) != Py_None) return nullptr;  // a tensor that must be given
      values[i] = Py_None;
      continue;
    }
    if (!PyObject_TypeCheck(given[i], tensor_base)) return nullptr;
    auto* tensor = reinterpret_cast<Tensor*>(given[i]);
    values[i] = operands.own(static_cast<int>(i), tensor);
    ndim = std::max(ndim, PyArray_NDIM(reinterpret_cast<PyArrayObject*>(values[i])));
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
    values[made] = is_shape ? made_shape(op, given[made], operands.tensors[0]) : made_attribute(given[made], plain, ndim);
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
      PyObject* array = operands.arrays[op->targets[t]];
      if (array != nullptr && dtype_of(reinterpret_cast<PyArrayObject*>(array)) != dtype &&
          !(op->changes_dtype && (!recorded || is_floating(dtype)))) {
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

PyObject* call_op(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  auto* op = reinterpret_cast<Op*>(self);
  const Py_ssize_t count = PyVectorcall_NARGS(nargsf);
  if (op->direct != nullptr) {
    PyObject* result = call_directly(op, args, count, kwnames);
    if (result != nullptr || PyErr_Occurred()) return result;
    return call_in_python(self, args, nargsf, kwnames);
  }
  Operands operands;
  if (op->kernel == nullptr || kwnames != nullptr || observer != nullptr || count != op->kernel->inputs ||
      !take_operands(*op->kernel, args, operands))
    return call_in_python(self, args, nargsf, kwnames);
  const bool recorded = recording && operands.requires_grad;
  if (recorded && !op->records) return call_in_python(self, args, nargsf, kwnames);

  const bool ends_in_number = count == 2 && operands.is_scalar[1];
  const ElementwiseKernel& kernel = ends_in_number ? with_last_number(*op->kernel, operands.numbers[1]) : *op->kernel;
  if (!operands.alike && !op->broadcasts) return call_in_python(self, args, nargsf, kwnames);
  if (!operands.flat || !operands.alike) {
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
    run_elementwise_contiguous(kernel, operands.dtype, n, operands.data, operands.is_scalar, data, op->scalars, operands.wide);
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

PyObject* op_vectorcall(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  try {
    return call_op(self, args, nargsf, kwnames);
  } catch (const std::bad_alloc&) {
    return PyErr_NoMemory();
  }
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
    self->kept[i].kind = kind[0] == 'a' ? Kept::argument : kind[0] == 's' ? Kept::shape : kind[0] == 'd' ? Kept::dtype : Kept::output;
    self->changes_dtype |= self->kept[i].kind == Kept::dtype;
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

// run_natively(kernel, records, broadcasts, kept, targets, scalars, results) -> bool
// kept: ("argument" | "shape" | "dtype" | "output", index) per positional parameter of the backward, after grad_output.
PyObject* op_run_natively(PyObject* object, PyObject* args) {
  auto* self = reinterpret_cast<Op*>(object);
  const char* name;
  int records, broadcasts;
  PyObject *kept, *targets, *scalars, *results;
  if (!PyArg_ParseTuple(args, "sppO!O!O!O", &name, &records, &broadcasts, &PyTuple_Type, &kept, &PyTuple_Type, &targets,
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
  self->broadcasts = broadcasts != 0;
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

}  // namespace

PyType_Spec op_spec = {"extensor._native.OpBase", sizeof(Op), 0,
                       Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                           Py_TPFLAGS_METHOD_DESCRIPTOR,
                       op_slots};

bool prepare_calls() {
  name_call = PyUnicode_InternFromString("call");
  return name_call != nullptr;
}

}  // namespace extensor::recorder
