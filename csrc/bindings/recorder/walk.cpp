// The backward pass, for the usual case: nobody watches it and nothing of it is recorded. extensor.autograd.engine.Walk is its
// definition, step by step; what is rare there (several outputs, a user's pair) is asked of Python from here.
#include <algorithm>
#include <map>
#include <unordered_map>
#include <vector>

#include "bindings/exceptions.hpp"
#include "bindings/recorder/objects.hpp"

namespace extensor::recorder {
namespace {

PyObject *name_replaced, *name_needs;

using Object = Ref<PyObject>;

PyObject* dtype_of_tensor(PyObject* tensor) { return reinterpret_cast<PyObject*>(PyArray_DESCR(reinterpret_cast<PyArrayObject*>(reinterpret_cast<Tensor*>(tensor)->array))); }

bool is_half(PyObject* grad) { return PyDataType_ELSIZE(reinterpret_cast<PyArray_Descr*>(dtype_of_tensor(grad))) == 2; }  // gradients are floating

// The gradients that have arrived at an edge: half precision is kept in float32 meanwhile, `half` is its dtype.
struct Sum {
  Object grad, half;

  void add(PyObject* more) {
    if (grad == nullptr) {
      grad = shared(more);
      return;
    }
    if (is_half(more)) half = shared(dtype_of_tensor(more));
    const Object wide = widened(more);
    grad = call(helpers.add, widened(grad).object(), wide.get());
  }

  // The complete sum, in the dtype of what was added; None if nothing was.
  Object complete() const { return grad == nullptr ? shared(Py_None) : half == nullptr ? shared(grad.get()) : call(helpers.astype, grad.get(), half.get()); }

 private:
  static Object widened(PyObject* grad) { return is_half(grad) ? call(helpers.astype, grad, helpers.wide) : shared(grad); }
};

class Walk {
 public:
  Walk(PyObject* targets, bool retains) : to_leaves_(targets == Py_None), retains_(retains) {
    const Py_ssize_t count = to_leaves_ ? 0 : PyList_GET_SIZE(targets);
    if (count > 0) oldest_ = PY_LLONG_MAX;
    for (Py_ssize_t i = 0; i < count; ++i) {
      PyObject* target = PyList_GET_ITEM(targets, i);
      ends_[target];
      oldest_ = std::min(oldest_, is_tensor(target) ? -1 : node_of(target)->sequence);
    }
  }

  // A gradient has arrived at a node or a leaf.
  void add(PyObject* edge, PyObject* grad) {
    if (const auto end = ends_.find(edge); end != ends_.end()) return end->second.add(grad);
    if (!is_tensor(edge)) return wait(edge, grad);
    if (!to_leaves_) return;
    ends_[edge].add(grad);
    held_.push_back(shared(edge));
  }

  void run() {
    while (!waiting_.empty()) visit(shared(std::prev(waiting_.end())->second.node.get()));
  }

  // Into the .grad of the leaves.
  void store() {
    for (auto& [leaf, sum] : ends_) {
      auto* tensor = reinterpret_cast<Tensor*>(leaf);
      Sum total;
      if (!is_none(tensor->grad)) total.add(tensor->grad);
      total.add(sum.grad);
      Py_XSETREF(tensor->grad, total.grad.release());
    }
  }

  PyObject* results(PyObject* targets) {
    Object list = owned(PyList_New(PyList_GET_SIZE(targets)));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(targets); ++i) PyList_SET_ITEM(list.get(), i, ends_[PyList_GET_ITEM(targets, i)].complete().release());
    return list.release();
  }

 private:
  struct Arrived {
    Ref<Node> node;
    Sum sum;
  };

  // Of an edge that is no leaf: a node, or a Branch (node, output) of several.
  static Node* node_of(PyObject* edge) { return reinterpret_cast<Node*>(PyTuple_Check(edge) ? PyTuple_GET_ITEM(edge, 0) : edge); }

  // A gradient of an output, whose node is visited after all that used it.
  void wait(PyObject* edge, PyObject* grad) {
    Node* node = node_of(edge);
    if (node->sequence < oldest_) return;
    Arrived& there = waiting_[{node->sequence, PyTuple_Check(edge) ? PyLong_AsSsize_t(PyTuple_GET_ITEM(edge, 1)) : 0}];
    if (there.node == nullptr) there.node = shared(node);
    there.sum.add(grad);
  }

  bool leads_somewhere(PyObject* edge) const {
    if (edge == Py_None || to_leaves_) return edge != Py_None;
    return ends_.count(edge) > 0 || (!is_tensor(edge) && node_of(edge)->sequence >= oldest_);
  }

  // What has arrived at the node that waits last; several outputs: a list.
  Object take(const Node* node) {
    if (is_none(node->outputs)) return waiting_.extract(std::prev(waiting_.end())).mapped().sum.complete();
    Object grads = owned(PyList_New(PyList_GET_SIZE(node->outputs)));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(grads.get()); ++i) PyList_SET_ITEM(grads.get(), i, Py_NewRef(Py_None));
    for (auto at = waiting_.lower_bound({node->sequence, PY_SSIZE_T_MIN}); at != waiting_.end(); at = waiting_.erase(at))
      if (PyList_SetItem(grads, at->first.second, at->second.sum.complete().release()) < 0) throw PythonError();
    return grads;
  }

  void visit(const Ref<Node> node) {
    const Object grad = take(node);
    if (!is_usable(node)) call(helpers.check, node.object());  // raises
    const Py_ssize_t count = PyTuple_GET_SIZE(node->edges);
    Object needs = owned(PyTuple_New(count));
    Py_ssize_t wanted = 0;
    for (Py_ssize_t i = 0; i < count; ++i) {
      const bool want = leads_somewhere(PyTuple_GET_ITEM(node->edges, i));
      PyTuple_SET_ITEM(needs.get(), i, PyBool_FromLong(want));
      wanted += want;
    }
    if (wanted > 0) hand_on(node, gradients(node, grad, wanted == count ? Py_None : needs.get()), needs);
    if (!retains_) Py_SETREF(node->saved, Py_NewRef(Py_None));
  }

  // What the node saved is still there, and parameters are still those that it used.
  static bool is_usable(const Node* node) {
    if (is_none(node->saved)) return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(node->edges); ++i) {
      PyObject* edge = PyTuple_GET_ITEM(node->edges, i);
      if (Py_TYPE(edge) == tensor_type || Py_TYPE(edge) == node_type || !is_tensor(edge)) continue;
      const Object replaced = maybe(PyObject_GetAttr(edge, name_replaced));
      if (replaced == nullptr) PyErr_Clear();
      else if (PyLong_AsLongLong(replaced) > node->sequence) return false;
    }
    return true;
  }

  // What the public backward returns: a gradient, or a tuple or a list of them.
  static Object gradients(Node* node, PyObject* grad, PyObject* needs) {
    constexpr Py_ssize_t most = 24;
    const auto* op = reinterpret_cast<Op*>(node->op);
    const bool ours = is_none(node->outputs) && PyObject_TypeCheck(node->op, op_base) && !is_none(op->backward) && PyTuple_CheckExact(node->saved) &&
                      PyTuple_GET_SIZE(node->saved) + 2 <= most && (node->options == Py_None || PyDict_CheckExact(node->options));
    if (!ours) return call(helpers.gradients, reinterpret_cast<PyObject*>(node), grad, needs);
    const Object saved = shared(node->saved);
    const Py_ssize_t count = PyTuple_GET_SIZE(saved.get());
    PyObject* arguments[most] = {grad};
    for (Py_ssize_t i = 0; i < count; ++i) arguments[1 + i] = PyTuple_GET_ITEM(saved.get(), i);
    Object keywords = shared(node->options);
    if (needs != Py_None && op->takes_needs) {
      keywords = owned(keywords == Py_None ? PyDict_New() : PyDict_Copy(keywords));
      if (PyDict_SetItem(keywords, name_needs, needs) < 0) throw PythonError();
    }
    return owned(PyObject_VectorcallDict(op->backward, arguments, size_t(1 + count), keywords == Py_None ? nullptr : keywords.get()));
  }

  void hand_on(Node* node, const Object& grads, PyObject* needs) {
    const bool several = PyTuple_Check(grads.get()) || PyList_Check(grads.get());
    const Py_ssize_t count = PyTuple_GET_SIZE(node->edges);
    if ((several ? PySequence_Fast_GET_SIZE(grads.get()) : 1) != count) {
      call(helpers.check_gradients, reinterpret_cast<PyObject*>(node), node->edges, several ? grads.get() : owned(PyTuple_Pack(1, grads.get())).object());
      throw PythonError();
    }
    for (Py_ssize_t i = 0; i < count; ++i) {
      PyObject* grad = several ? PySequence_Fast_GET_ITEM(grads.get(), i) : grads.get();
      if (PyTuple_GET_ITEM(needs, i) != Py_True || grad == Py_None) continue;
      if (!is_tensor(grad)) {
        PyErr_Format(PyExc_TypeError, "[backward] gradient %zd of %R must be a tensor, got %s", i, node->op, Py_TYPE(grad)->tp_name);
        throw PythonError();
      }
      PyObject* dtype = is_none(node->casts) ? Py_None : PyTuple_GET_ITEM(node->casts, i);
      const int same = dtype == Py_None ? 1 : PyObject_RichCompareBool(dtype_of_tensor(grad), dtype, Py_EQ);
      if (same < 0) throw PythonError();
      add(PyTuple_GET_ITEM(node->edges, i), same ? grad : call(helpers.astype, grad, dtype).object());
    }
  }

  bool to_leaves_, retains_;
  long long oldest_ = -1;  // nothing recorded before the first target can lead to one
  std::unordered_map<PyObject*, Sum> ends_;  // the targets, or the leaves that gradients have arrived at
  std::vector<Object> held_;
  std::map<std::pair<long long, Py_ssize_t>, Arrived> waiting_;  // by the sequence of the node, and which output of it
};

// walk_back(outputs, grads, targets or None, retain) -> list of the gradients of the targets
PyObject* walk_back(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *outputs, *grads, *targets;
    int retains;
    if (!PyArg_ParseTuple(args, "O!O!Op", &PyList_Type, &outputs, &PyList_Type, &grads, &targets, &retains)) return nullptr;
    if (PyList_GET_SIZE(outputs) != PyList_GET_SIZE(grads) || !(targets == Py_None || PyList_Check(targets)))
      return PyErr_Format(PyExc_TypeError, "[walk_back] takes two lists of one length, a list or None, and a flag");
    Walk walk(targets, retains != 0);
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(outputs); ++i) {
      PyObject* output = PyList_GET_ITEM(outputs, i);
      const auto* tensor = reinterpret_cast<Tensor*>(output);
      if (is_tensor(output) && tensor->requires_grad) walk.add(is_none(tensor->node) ? output : tensor->node, PyList_GET_ITEM(grads, i));
    }
    walk.run();
    if (targets != Py_None) return walk.results(targets);
    walk.store();
    return PyList_New(0);
  });
}

PyMethodDef functions[] = {
    {"walk_back", walk_back, METH_VARARGS, "walk_back($module, outputs, grads, targets, retain, /)\n--\n\nCarry gradients back; see autograd.engine."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

void bind_walk(PyObject* module) {
  name_replaced = PyUnicode_InternFromString("_replaced");
  name_needs = PyUnicode_InternFromString("needs");
  if (PyModule_AddFunctions(module, functions) < 0) throw PythonError();
}

}  // namespace extensor::recorder
