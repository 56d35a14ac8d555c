// The walk back, for the usual case: nobody watches it and nothing of it is recorded. extensor.autograd.engine.Walk is its
// definition, step by step; what is rare there (several outputs, a user's pair) is asked of Python from here.
#include <queue>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bindings/recorder/objects.hpp"

namespace extensor::recorder {
namespace {

// What Python has told: functions of graph and autograd.engine.
struct Helpers {
  PyObject *add, *astype, *wide, *complete, *gradients, *check;
} helpers;
PyObject *name_node, *name_index, *name_sequence, *name_replaced, *name_needs;

// Owns a reference.
class Ref {
 public:
  Ref(PyObject* owned = nullptr) : object_(owned) {}
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() { Py_XDECREF(object_); }
  PyObject* get() const { return object_; }
  PyObject* release() { return std::exchange(object_, nullptr); }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  PyObject* object_;
};

PyArray_Descr* dtype_of_tensor(PyObject* tensor) { return PyArray_DESCR(reinterpret_cast<PyArrayObject*>(reinterpret_cast<Tensor*>(tensor)->array)); }

bool is_half(PyArray_Descr* dtype) { return PyDataType_ELSIZE(dtype) == 2; }  // a gradient is floating

Ref call(PyObject* function, PyObject* a, PyObject* b) {
  PyObject* arguments[] = {a, b};
  return PyObject_Vectorcall(function, arguments, 2, nullptr);
}

Ref cast(PyObject* grad, PyObject* dtype) { return call(helpers.astype, grad, dtype); }

// A sum in the making: half precision is kept in float32 meanwhile, `half` is its dtype.
struct Sum {
  Ref grad;
  PyObject* half = nullptr;

  bool add(PyObject* more) {
    Ref wide{Py_NewRef(more)};
    if (is_half(dtype_of_tensor(more))) {
      half = reinterpret_cast<PyObject*>(dtype_of_tensor(more));
      wide = cast(more, helpers.wide);
      if (wide && is_half(dtype_of_tensor(grad.get()))) grad = cast(grad.get(), helpers.wide);
    }
    if (!wide || !grad) return false;
    grad = call(helpers.add, grad.get(), wide.get());
    return bool(grad);
  }

  // The complete sum, in the dtype of what was added.
  Ref take() { return half == nullptr ? std::move(grad) : cast(grad.get(), half); }
};

class Walk {
 public:
  Walk(PyObject* targets, bool retains) : has_targets_(targets != Py_None), retains_(retains) {
    if (!has_targets_) return;
    oldest_ = PY_LLONG_MAX;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(targets); ++i) {
      PyObject* target = PySequence_Fast_GET_ITEM(targets, i);
      targets_[target];
      const long long sequence = is_tensor(target) ? -1 : sequence_of(target);
      if (sequence < oldest_) oldest_ = sequence;
    }
  }

  bool add(PyObject* edge, PyObject* grad) {
    if (is_tensor(edge)) {
      if (!has_targets_) return join(leaves_[edge], edge, grad, true);
      const auto found = targets_.find(edge);
      return found == targets_.end() || join(found->second, edge, grad, false);
    }
    const auto known = pending_.find(edge);
    if (known != pending_.end()) return known->second.add(grad);
    const long long sequence = sequence_of(edge);
    if (sequence < oldest_) return true;
    push(edge, sequence, Ref(Py_NewRef(grad)));
    return true;
  }

  bool run() {
    while (!queue_.empty()) {
      Ref edge{queue_.top().edge};
      queue_.pop();
      const auto at = pending_.find(edge.get());
      Sum sum = std::move(at->second);
      pending_.erase(at);
      Ref grad = sum.take();
      if (!grad) return false;
      const auto target = has_targets_ ? targets_.find(edge.get()) : targets_.end();
      if (has_targets_ && target != targets_.end()) {
        target->second.grad = std::move(grad);
      } else if (Py_TYPE(edge.get()) == node_type ? !visit(reinterpret_cast<Node*>(edge.get()), grad) : !collect(edge.get(), grad)) {
        return false;
      }
    }
    return true;
  }

  // Into the .grad of the leaves.
  bool store() {
    for (auto& [leaf, sum] : leaves_) {
      auto* tensor = reinterpret_cast<Tensor*>(leaf);
      if (tensor->grad == Py_None) {
        Py_SETREF(tensor->grad, sum.grad.release());
        continue;
      }
      Sum total;
      total.grad = Ref(Py_NewRef(tensor->grad));
      if (!total.add(sum.grad.get())) return false;
      Py_SETREF(tensor->grad, total.grad.release());
    }
    return true;
  }

  PyObject* results(PyObject* targets) {
    Ref list{PyList_New(PySequence_Fast_GET_SIZE(targets))};
    for (Py_ssize_t i = 0; list && i < PySequence_Fast_GET_SIZE(targets); ++i) {
      Sum& sum = targets_[PySequence_Fast_GET_ITEM(targets, i)];
      if (sum.half != nullptr) sum.grad = sum.take(), sum.half = nullptr;
      if (PyErr_Occurred()) return nullptr;
      PyList_SET_ITEM(list.get(), i, Py_NewRef(sum.grad ? sum.grad.get() : Py_None));
    }
    return list.release();
  }

 private:
  struct Waiting {
    long long sequence;
    PyObject* edge;  // owned by whoever takes it out
    bool operator<(const Waiting& other) const { return sequence < other.sequence; }
  };
  struct Queue : std::priority_queue<Waiting> {
    ~Queue() {
      for (Waiting& waiting : c) Py_DECREF(waiting.edge);
    }
  };

  static long long sequence_of(PyObject* edge) {
    if (Py_TYPE(edge) == node_type) return reinterpret_cast<Node*>(edge)->sequence;
    Ref number{PyObject_GetAttr(edge, name_sequence)};
    return number ? PyLong_AsLongLong(number.get()) : -1;
  }

  void push(PyObject* edge, long long sequence, Ref grad) {
    pending_[edge].grad = std::move(grad);
    queue_.push({sequence, Py_NewRef(edge)});
  }

  // The leaf of a sum is kept alive by the graph, or by the caller.
  bool join(Sum& sum, PyObject* edge, PyObject* grad, bool owns) {
    if (sum.grad) return sum.add(grad);
    if (owns) held_.push_back(Ref(Py_NewRef(edge)));
    sum.grad = Ref(Py_NewRef(grad));
    return true;
  }

  // Puts the gradient of one of several outputs beside its siblings'.
  bool collect(PyObject* branch, const Ref& grad) {
    Ref node{PyObject_GetAttr(branch, name_node)}, index{PyObject_GetAttr(branch, name_index)};
    if (!node || !index) return false;
    auto known = pending_.find(node.get());
    if (known == pending_.end()) {
      PyObject* outputs = reinterpret_cast<Node*>(node.get())->outputs;
      Ref grads{PyList_New(PyList_GET_SIZE(outputs))};
      if (!grads) return false;
      for (Py_ssize_t i = 0; i < PyList_GET_SIZE(outputs); ++i) PyList_SET_ITEM(grads.get(), i, Py_NewRef(Py_None));
      push(node.get(), sequence_of(node.get()), std::move(grads));
      known = pending_.find(node.get());
    }
    return PyList_SetItem(known->second.grad.get(), PyLong_AsSsize_t(index.get()), Py_NewRef(grad.get())) == 0;
  }

  bool leads_somewhere(PyObject* edge) const {
    if (edge == Py_None) return false;
    if (!has_targets_) return true;
    return is_tensor(edge) ? targets_.count(edge) > 0 : sequence_of(edge) >= oldest_;
  }

  bool visit(Node* node, Ref& grad) {
    if (node->outputs != nullptr && node->outputs != Py_None) {
      grad = call(helpers.complete, grad.get(), reinterpret_cast<PyObject*>(node));
      if (!grad) return false;
    }
    if (!may_go_on(node)) return false;
    const Py_ssize_t count = PyTuple_GET_SIZE(node->edges);
    std::vector<char> wanted(static_cast<size_t>(count));
    bool any = false, all = true;
    for (Py_ssize_t i = 0; i < count; ++i) {
      wanted[size_t(i)] = leads_somewhere(PyTuple_GET_ITEM(node->edges, i));
      any |= wanted[size_t(i)] != 0, all &= wanted[size_t(i)] != 0;
    }
    if (any) {
      Ref needs{all ? Py_NewRef(Py_None) : PyTuple_New(count)};
      if (!needs) return false;
      for (Py_ssize_t i = 0; !all && i < count; ++i) PyTuple_SET_ITEM(needs.get(), i, PyBool_FromLong(wanted[size_t(i)]));
      Ref grads = gradients(node, grad.get(), needs.get());
      if (!grads || !hand_on(node, grads.get(), wanted)) return false;
    }
    if (!retains_) Py_SETREF(node->saved, Py_NewRef(Py_None));
    return true;
  }

  // What the node saved must still be there, and parameters must still be those that it used.
  static bool may_go_on(Node* node) {
    bool wrong = node->saved == nullptr || node->saved == Py_None;
    for (Py_ssize_t i = 0; !wrong && i < PyTuple_GET_SIZE(node->edges); ++i) {
      PyObject* edge = PyTuple_GET_ITEM(node->edges, i);
      if (Py_TYPE(edge) == tensor_type || Py_TYPE(edge) == node_type || !is_tensor(edge)) continue;
      Ref replaced{PyObject_GetAttr(edge, name_replaced)};
      if (!replaced) PyErr_Clear();
      wrong = replaced && PyLong_AsLongLong(replaced.get()) > node->sequence;
    }
    return !wrong || Ref(PyObject_CallOneArg(helpers.check, reinterpret_cast<PyObject*>(node)));
  }

  // What the public backward returns: a gradient, or a tuple or a list of them.
  static Ref gradients(Node* node, PyObject* grad, PyObject* needs) {
    const auto* op = reinterpret_cast<Op*>(node->op);
    const bool ours = PyObject_TypeCheck(node->op, op_base) && op->backward != nullptr && PyTuple_CheckExact(node->saved);
    const Py_ssize_t saved = ours ? PyTuple_GET_SIZE(node->saved) : 0;
    constexpr Py_ssize_t most = 24;
    if (!ours || saved + 2 > most || (node->options != Py_None && !PyDict_CheckExact(node->options))) {
      PyObject* arguments[] = {reinterpret_cast<PyObject*>(node), grad, needs};
      return PyObject_Vectorcall(helpers.gradients, arguments, 3, nullptr);
    }
    PyObject* arguments[most] = {grad};
    for (Py_ssize_t i = 0; i < saved; ++i) arguments[1 + i] = PyTuple_GET_ITEM(node->saved, i);
    const bool says_needs = needs != Py_None && op->takes_needs;
    const bool has_options = node->options != Py_None && PyDict_GET_SIZE(node->options) > 0;
    if (!says_needs && !has_options) return PyObject_Vectorcall(op->backward, arguments, size_t(1 + saved), nullptr);
    Ref keywords{has_options ? PyDict_Copy(node->options) : PyDict_New()};
    if (!keywords || (says_needs && PyDict_SetItem(keywords.get(), name_needs, needs) < 0)) return nullptr;
    return PyObject_VectorcallDict(op->backward, arguments, size_t(1 + saved), keywords.get());
  }

  bool hand_on(Node* node, PyObject* grads, const std::vector<char>& wanted) {
    const bool several = PyTuple_Check(grads) || PyList_Check(grads);
    const Py_ssize_t count = PyTuple_GET_SIZE(node->edges);
    if ((several ? PySequence_Fast_GET_SIZE(grads) : 1) != count) {
      PyErr_Format(PyExc_ValueError, "[backward] %R returned another number of gradients than %zd", node->op, count);
      return false;
    }
    for (Py_ssize_t i = 0; i < count; ++i) {
      PyObject* grad = several ? PySequence_Fast_GET_ITEM(grads, i) : grads;
      if (!wanted[size_t(i)] || grad == Py_None) continue;
      Ref given{Py_NewRef(grad)};
      if (node->casts != nullptr && node->casts != Py_None) {
        PyObject* dtype = PyTuple_GET_ITEM(node->casts, i);
        const int same = PyObject_RichCompareBool(reinterpret_cast<PyObject*>(dtype_of_tensor(grad)), dtype, Py_EQ);
        if (same < 0) return false;
        if (!same) given = cast(grad, dtype);
      }
      if (!given || !add(PyTuple_GET_ITEM(node->edges, i), given.get())) return false;
    }
    return true;
  }

  bool has_targets_, retains_;
  long long oldest_ = -1;
  std::unordered_map<PyObject*, Sum> pending_, leaves_, targets_;
  std::vector<Ref> held_;
  Queue queue_;
};

// walk_back(outputs, grads, targets or None, retain) -> list of the gradients of the targets
PyObject* walk_back(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count != 4 || !PyList_Check(args[0]) || !PyList_Check(args[1]) || !(args[2] == Py_None || PyList_Check(args[2]))) {
    PyErr_SetString(PyExc_TypeError, "[walk_back] takes two lists, a list or None, and a flag");
    return nullptr;
  }
  try {
    Walk walk(args[2], args[3] == Py_True);
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(args[0]); ++i) {
      PyObject* output = PyList_GET_ITEM(args[0], i);
      const auto* tensor = reinterpret_cast<Tensor*>(output);
      if (tensor->requires_grad && !walk.add(tensor->node == Py_None ? output : tensor->node, PyList_GET_ITEM(args[1], i))) return nullptr;
    }
    if (!walk.run()) return nullptr;
    if (args[2] != Py_None) return walk.results(args[2]);
    return walk.store() ? PyList_New(0) : nullptr;
  } catch (const std::bad_alloc&) {
    return PyErr_NoMemory();
  }
}

PyObject* set_walk_helpers(PyObject*, PyObject* args) {
  Helpers found;
  if (!PyArg_ParseTuple(args, "OOOOOO", &found.add, &found.astype, &found.wide, &found.complete, &found.gradients, &found.check))
    return nullptr;
  for (PyObject* helper : {found.add, found.astype, found.wide, found.complete, found.gradients, found.check}) Py_INCREF(helper);
  helpers = found;  // for as long as the process lives
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {
    {"walk_back", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(walk_back)), METH_FASTCALL, "Carry gradients back; see autograd.engine."},
    {"set_walk_helpers", set_walk_helpers, METH_VARARGS, "Tell the walk the functions of Python it asks."},
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
