// The backward pass, for the usual case: nobody watches it and nothing of it is recorded. extensor.autograd.engine.Walk is its
// definition, step by step; what is rare there (several outputs, a user's pair) is asked of Python from here.
#include <queue>
#include <unordered_map>
#include <vector>

#include "bindings/exceptions.hpp"
#include "bindings/recorder/objects.hpp"

namespace extensor::recorder {
namespace {

PyObject *name_node, *name_index, *name_sequence, *name_replaced, *name_needs;

using Object = Ref<PyObject>;

template <class... Arguments>
Object call(PyObject* function, Arguments... arguments) {
  PyObject* all[] = {arguments...};
  return owned(PyObject_Vectorcall(function, all, sizeof...(arguments), nullptr));
}

PyArray_Descr* dtype_of_tensor(PyObject* tensor) { return PyArray_DESCR(reinterpret_cast<PyArrayObject*>(reinterpret_cast<Tensor*>(tensor)->array)); }

bool is_half(PyObject* grad) { return PyDataType_ELSIZE(dtype_of_tensor(grad)) == 2; }  // gradients are floating

Object cast(PyObject* grad, PyObject* dtype) { return call(helpers.astype, grad, dtype); }

// A sum in the making: half precision is kept in float32 meanwhile, `half` is its dtype.
struct Sum {
  Object grad, half;

  void add(PyObject* more) {
    Object wide = shared(more);
    if (is_half(more)) {
      half = shared(reinterpret_cast<PyObject*>(dtype_of_tensor(more)));
      wide = cast(more, helpers.wide);
      if (is_half(grad)) grad = cast(grad, helpers.wide);
    }
    grad = call(helpers.add, grad.get(), wide.get());
  }

  // The complete sum, in the dtype of what was added.
  Object take() { return half.get() == nullptr ? std::move(grad) : cast(grad, half); }
};

class Walk {
 public:
  Walk(PyObject* targets, bool retains) : has_targets_(targets != Py_None), retains_(retains) {
    if (!has_targets_) return;
    oldest_ = PyList_GET_SIZE(targets) > 0 ? PY_LLONG_MAX : -1;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(targets); ++i) {
      PyObject* target = PyList_GET_ITEM(targets, i);
      targets_[target];
      const long long sequence = is_tensor(target) ? -1 : sequence_of(target);
      if (sequence < oldest_) oldest_ = sequence;
    }
  }

  void add(PyObject* edge, PyObject* grad) {
    if (is_tensor(edge)) {
      if (!has_targets_) {
        join(leaves_[edge], grad);
        held_.push_back(shared(edge));
      } else if (const auto found = targets_.find(edge); found != targets_.end()) {
        join(found->second, grad);
      }
      return;
    }
    if (const auto known = pending_.find(edge); known != pending_.end()) {
      known->second.add(grad);
    } else if (const long long sequence = sequence_of(edge); sequence >= oldest_) {
      push(edge, sequence, shared(grad));
    }
  }

  void run() {
    while (!queue_.empty()) {
      const Object edge = queue_.pop_last();
      const auto at = pending_.find(edge);
      Sum sum = std::move(at->second);
      pending_.erase(at);
      Object grad = sum.take();
      if (const auto target = targets_.find(edge); target != targets_.end()) target->second.grad = std::move(grad);
      else if (Py_TYPE(edge.get()) == node_type) visit(reinterpret_cast<Node*>(edge.get()), grad);
      else collect(edge, grad);
    }
  }

  // Into the .grad of the leaves.
  void store() {
    for (auto& [leaf, sum] : leaves_) {
      auto* tensor = reinterpret_cast<Tensor*>(leaf);
      Sum total;
      if (tensor->grad == Py_None) {
        total.grad = std::move(sum.grad);
      } else {
        total.grad = shared(tensor->grad);
        total.add(sum.grad);
      }
      Py_SETREF(tensor->grad, total.grad.release());
    }
  }

  PyObject* results(PyObject* targets) {
    Object list = owned(PyList_New(PyList_GET_SIZE(targets)));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(targets); ++i) {
      Sum& sum = targets_[PyList_GET_ITEM(targets, i)];
      if (sum.half.get() != nullptr) sum = Sum{sum.take(), Object()};
      PyList_SET_ITEM(list.get(), i, Py_NewRef(sum.grad.get() != nullptr ? sum.grad.get() : Py_None));
    }
    return list.release();
  }

 private:
  struct Waiting {
    long long sequence;
    PyObject* edge;
    bool operator<(const Waiting& other) const { return sequence < other.sequence; }
  };

  // Edges in the order of their recording, each owned until it is taken out.
  struct Queue : std::priority_queue<Waiting> {
    ~Queue() {
      for (Waiting& waiting : c) Py_DECREF(waiting.edge);
    }
    Object pop_last() {
      Object edge = owned(top().edge);
      pop();
      return edge;
    }
  };

  static long long sequence_of(PyObject* edge) {
    if (Py_TYPE(edge) == node_type) return reinterpret_cast<Node*>(edge)->sequence;
    return PyLong_AsLongLong(owned(PyObject_GetAttr(edge, name_sequence)).object());
  }

  void push(PyObject* edge, long long sequence, Object grad) {
    queue_.push({sequence, edge});
    Py_INCREF(edge);
    pending_[edge].grad = std::move(grad);
  }

  static void join(Sum& sum, PyObject* grad) {
    if (sum.grad.get() != nullptr) sum.add(grad);
    else sum.grad = shared(grad);
  }

  // Puts the gradient of one of several outputs beside its siblings'.
  void collect(PyObject* branch, const Object& grad) {
    const Object node = owned(PyObject_GetAttr(branch, name_node)), index = owned(PyObject_GetAttr(branch, name_index));
    if (pending_.find(node) == pending_.end()) {
      const Py_ssize_t count = PyList_GET_SIZE(reinterpret_cast<Node*>(node.get())->outputs);
      Object grads = owned(PyList_New(count));
      for (Py_ssize_t i = 0; i < count; ++i) PyList_SET_ITEM(grads.get(), i, Py_NewRef(Py_None));
      push(node, sequence_of(node), std::move(grads));
    }
    if (PyList_SetItem(pending_[node].grad, PyLong_AsSsize_t(index), Py_NewRef(grad.get())) < 0) throw PythonError();
  }

  bool leads_somewhere(PyObject* edge) const {
    if (edge == Py_None || !has_targets_) return edge != Py_None;
    return is_tensor(edge) ? targets_.count(edge) > 0 : sequence_of(edge) >= oldest_;
  }

  void visit(Node* node, Object& grad) {
    auto* object = reinterpret_cast<PyObject*>(node);
    if (node->outputs != nullptr && node->outputs != Py_None) grad = call(helpers.complete, grad.get(), object);
    if (!is_usable(node)) call(helpers.check, object);  // raises
    const Py_ssize_t count = PyTuple_GET_SIZE(node->edges);
    std::vector<char> wanted(static_cast<size_t>(count));
    bool any = false, all = true;
    for (Py_ssize_t i = 0; i < count; ++i) {
      const bool want = leads_somewhere(PyTuple_GET_ITEM(node->edges, i));
      wanted[size_t(i)] = want, any |= want, all &= want;
    }
    if (any) {
      Object needs = all ? shared(Py_None) : owned(PyTuple_New(count));
      for (Py_ssize_t i = 0; !all && i < count; ++i) PyTuple_SET_ITEM(needs.get(), i, PyBool_FromLong(wanted[size_t(i)]));
      const Object grads = gradients(node, grad, needs);
      hand_on(node, grads, wanted);
    }
    if (!retains_) Py_SETREF(node->saved, Py_NewRef(Py_None));
  }

  // What the node saved is still there, and parameters are still those that it used.
  static bool is_usable(const Node* node) {
    if (node->saved == nullptr || node->saved == Py_None) return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(node->edges); ++i) {
      PyObject* edge = PyTuple_GET_ITEM(node->edges, i);
      if (Py_TYPE(edge) == tensor_type || Py_TYPE(edge) == node_type || !is_tensor(edge)) continue;
      PyObject* replaced = PyObject_GetAttr(edge, name_replaced);
      if (replaced == nullptr) {
        PyErr_Clear();
        continue;
      }
      const Object number = owned(replaced);
      if (PyLong_AsLongLong(number) > node->sequence) return false;
    }
    return true;
  }

  // What the public backward returns: a gradient, or a tuple or a list of them.
  static Object gradients(Node* node, PyObject* grad, PyObject* needs) {
    constexpr Py_ssize_t most = 24;
    const auto* op = reinterpret_cast<Op*>(node->op);
    const bool ours = PyObject_TypeCheck(node->op, op_base) && op->backward != nullptr && op->backward != Py_None && PyTuple_CheckExact(node->saved) &&
                      PyTuple_GET_SIZE(node->saved) + 2 <= most && (node->options == Py_None || PyDict_CheckExact(node->options));
    if (!ours) return call(helpers.gradients, reinterpret_cast<PyObject*>(node), grad, needs);
    const Object held = shared(node->saved);
    const Py_ssize_t saved = PyTuple_GET_SIZE(held.get());
    PyObject* arguments[most] = {grad};
    for (Py_ssize_t i = 0; i < saved; ++i) arguments[1 + i] = PyTuple_GET_ITEM(held.get(), i);
    const bool says_needs = needs != Py_None && op->takes_needs;
    const bool has_options = node->options != Py_None && PyDict_GET_SIZE(node->options) > 0;
    if (!says_needs && !has_options) return owned(PyObject_Vectorcall(op->backward, arguments, size_t(1 + saved), nullptr));
    const Object keywords = owned(has_options ? PyDict_Copy(node->options) : PyDict_New());
    if (says_needs && PyDict_SetItem(keywords, name_needs, needs) < 0) throw PythonError();
    return owned(PyObject_VectorcallDict(op->backward, arguments, size_t(1 + saved), keywords));
  }

  void hand_on(Node* node, PyObject* grads, const std::vector<char>& wanted) {
    const bool several = PyTuple_Check(grads) || PyList_Check(grads);
    const Py_ssize_t count = PyTuple_GET_SIZE(node->edges);
    if ((several ? PySequence_Fast_GET_SIZE(grads) : 1) != count) {
      call(helpers.check_gradients, reinterpret_cast<PyObject*>(node), node->edges, several ? grads : owned(PyTuple_Pack(1, grads)).object());
      throw PythonError();
    }
    for (Py_ssize_t i = 0; i < count; ++i) {
      PyObject* grad = several ? PySequence_Fast_GET_ITEM(grads, i) : grads;
      if (!wanted[size_t(i)] || grad == Py_None) continue;
      if (!is_tensor(grad)) {
        PyErr_Format(PyExc_TypeError, "[backward] gradient %zd of %R must be a tensor, got %s", i, node->op, Py_TYPE(grad)->tp_name);
        throw PythonError();
      }
      Object given = shared(grad);
      if (node->casts != nullptr && node->casts != Py_None) {
        PyObject* dtype = PyTuple_GET_ITEM(node->casts, i);
        const int same = PyObject_RichCompareBool(reinterpret_cast<PyObject*>(dtype_of_tensor(grad)), dtype, Py_EQ);
        if (same < 0) throw PythonError();
        if (!same) given = cast(grad, dtype);
      }
      add(PyTuple_GET_ITEM(node->edges, i), given);
    }
  }

  bool has_targets_, retains_;
  long long oldest_ = -1;
  std::unordered_map<PyObject*, Sum> pending_, leaves_, targets_;
  std::vector<Object> held_;
  Queue queue_;
};

// walk_back(outputs, grads, targets or None, retain) -> list of the gradients of the targets
PyObject* walk_back(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    if (count != 4 || !PyList_Check(args[0]) || !PyList_Check(args[1]) || PyList_GET_SIZE(args[0]) != PyList_GET_SIZE(args[1]) ||
        !(args[2] == Py_None || PyList_Check(args[2]))) {
      PyErr_SetString(PyExc_TypeError, "[walk_back] takes two lists of one length, a list or None, and a flag");
      return nullptr;
    }
    Walk walk(args[2], args[3] == Py_True);
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(args[0]); ++i) {
      PyObject* output = PyList_GET_ITEM(args[0], i);
      const auto* tensor = reinterpret_cast<Tensor*>(output);
      if (is_tensor(output) && tensor->requires_grad) walk.add(tensor->node == Py_None ? output : tensor->node, PyList_GET_ITEM(args[1], i));
    }
    walk.run();
    if (args[2] != Py_None) return walk.results(args[2]);
    walk.store();
    return PyList_New(0);
  });
}

PyMethodDef functions[] = {
    {"walk_back", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(walk_back)), METH_FASTCALL,
     "walk_back($module, outputs, grads, targets, retain, /)\n--\n\nCarry gradients back; see autograd.engine."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool bind_walk(PyObject* module) {
  name_node = PyUnicode_InternFromString("node");
  name_index = PyUnicode_InternFromString("index");
  name_sequence = PyUnicode_InternFromString("sequence");
  name_replaced = PyUnicode_InternFromString("_replaced");
  name_needs = PyUnicode_InternFromString("needs");
  return PyModule_AddFunctions(module, functions) == 0;
}

}  // namespace extensor::recorder
