#include "bindings/recorder/plan.hpp"

#include "bindings/exceptions.hpp"

namespace extensor::recorder {

constexpr int max_values = 160, max_arguments = 80;

namespace {

bool read_ints(PyObject* tuple, std::vector<int>& out) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i) {
    const long value = PyLong_AsLong(PyTuple_GET_ITEM(tuple, i));
    if (value == -1 && PyErr_Occurred()) return false;
    if (value < -1 || value >= max_values) {
      PyErr_SetString(PyExc_ValueError, "[plan] a value is out of range");
      return false;
    }
    out.push_back(int(value));
  }
  return true;
}

bool has_shape(PyObject* value, PyObject* shape) {
  if (!PyArray_Check(value) || !PyTuple_Check(shape)) return value == shape;  // None
  auto* array = reinterpret_cast<PyArrayObject*>(value);
  if (PyArray_NDIM(array) != PyTuple_GET_SIZE(shape)) return false;
  for (int axis = 0; axis < PyArray_NDIM(array); ++axis)
    if (PyArray_DIM(array, axis) != PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, axis))) return false;
  return true;
}

PyObject* shape_of(PyObject* value) { return PyArray_IntTupleFromIntp(PyArray_NDIM(reinterpret_cast<PyArrayObject*>(value)), PyArray_DIMS(reinterpret_cast<PyArrayObject*>(value))); }

}  // namespace

// The values of one call. Leaves and constants are borrowed, the results of steps are owned.
class Plan::Values {
 public:
  Values(const Key& key, PyObject* constants)
      : leaves_(key.values), leaf_count_(key.leaf_count), constants_(constants), borrowed_(key.leaf_count + int(PyTuple_GET_SIZE(constants))) {}
  ~Values() {
    while (result_count_ > 0) Py_DECREF(results_[--result_count_]);
  }
  Values(const Values&) = delete;
  Values& operator=(const Values&) = delete;
  PyObject* operator[](int i) const {
    return i < leaf_count_ ? leaves_[i] : i < borrowed_ ? PyTuple_GET_ITEM(constants_, i - leaf_count_) : results_[i - borrowed_];
  }
  void push(PyObject* value) { results_[result_count_++] = value; }
  bool is_result(int i) const { return i >= borrowed_; }

 private:
  PyObject* const* leaves_;
  int leaf_count_;
  PyObject* constants_;
  int borrowed_, result_count_ = 0;
  PyObject* results_[max_values];
};

Plan* Plan::make(const Key& key, PyObject* description) {
  Plan* plan = new Plan;
  plan->hash_ = key.hash;
  plan->words_.assign(key.words, key.words + key.word_count);
  plan->held_.assign(key.held, key.held + key.held_count);
  for (PyObject* object : plan->held_) Py_INCREF(object);
  plan->description_ = Py_NewRef(description);
  if (description != Py_None && !plan->read(description)) {
    plan->release();
    return nullptr;
  }
  return plan;
}

Plan::~Plan() {
  for (PyObject* object : held_) Py_DECREF(object);
  Py_XDECREF(description_);
}

// (constants, steps, (container, results), outcome, record): the words are explained in graph/plans.py.
bool Plan::read(PyObject* description) {
  PyObject *steps, *results, *record;
  if (!PyArg_ParseTuple(description, "O!O!(OO!)OO", &PyTuple_Type, &constants_, &PyTuple_Type, &steps, &container_, &PyTuple_Type, &results, &outcome_, &record))
    return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(steps); ++i) {
    Step step;
    const char* kind;
    PyObject *arguments, *native;
    if (!PyArg_ParseTuple(PyTuple_GET_ITEM(steps, i), "sOOO!iOO", &kind, &native, &step.reference, &PyTuple_Type, &arguments, &step.results, &step.expected,
                          &step.shapes) ||
        !read_ints(arguments, step.arguments))
      return false;
    step.kind = kind[0] == 'k' ? Step::kernel : kind[0] == 'g' ? Step::guard : kind[0] == 't' ? Step::tuple : Step::list;
    step.native = native == Py_None ? nullptr : native_kernel(native);
    if (step.arguments.size() > max_arguments || (native != Py_None && step.native == nullptr)) {
      PyErr_SetString(PyExc_ValueError, "[plan] a step is not one");
      return false;
    }
    steps_.push_back(step);
  }
  if (!read_ints(results, results_)) return false;
  if (results_.size() > max_arguments) {
    PyErr_SetString(PyExc_ValueError, "[plan] too many results");
    return false;
  }
  if (record == Py_None) return true;
  PyObject *saved, *edges;
  records_ = true;
  return PyArg_ParseTuple(record, "O!O!OOO", &PyTuple_Type, &saved, &PyTuple_Type, &edges, &options_, &shape_, &casts_) && read_ints(saved, saved_) &&
         read_ints(edges, edges_);
}

// False: with a Python error set, or without where a guard has another answer.
bool Plan::take_step(const Step& step, Values& values) const {
  const Py_ssize_t count = Py_ssize_t(step.arguments.size());
  PyObject* arguments[max_arguments];
  for (Py_ssize_t i = 0; i < count; ++i) arguments[i] = values[step.arguments[size_t(i)]];
  if (step.kind == Step::tuple || step.kind == Step::list) {
    PyObject* made = step.kind == Step::tuple ? PyTuple_New(count) : PyList_New(count);
    if (made == nullptr) return false;
    for (Py_ssize_t i = 0; i < count; ++i) {
      if (step.kind == Step::tuple) PyTuple_SET_ITEM(made, i, Py_NewRef(arguments[i]));
      else PyList_SET_ITEM(made, i, Py_NewRef(arguments[i]));
    }
    values.push(made);
    return true;
  }
  PyObject* found = step.native == nullptr ? not_covered() : guarded([&] { return step.native->function(step.native->self, arguments, count); });
  if (found == Py_NotImplemented) {
    Py_DECREF(found);
    found = PyObject_Vectorcall(step.reference, arguments, size_t(count), nullptr);
  }
  if (found == nullptr) return false;
  if (step.kind == Step::guard) {
    const int same = found == step.expected ? 1 : PyObject_RichCompareBool(found, step.expected, Py_EQ);
    Py_DECREF(found);
    return same == 1;
  }
  if (step.results == 1) {
    values.push(found);
    return step.shapes == Py_None || has_shape(found, PyTuple_GET_ITEM(step.shapes, 0));
  }
  bool fits = (PyTuple_Check(found) || PyList_Check(found)) && PySequence_Fast_GET_SIZE(found) == step.results;
  for (int i = 0; fits && i < step.results; ++i) {
    PyObject* part = PySequence_Fast_GET_ITEM(found, i);
    values.push(Py_NewRef(part));
    fits = step.shapes == Py_None || has_shape(part, PyTuple_GET_ITEM(step.shapes, i));
  }
  Py_DECREF(found);
  return fits;
}

PyObject* Plan::outcome(const Key& key) const {
  Values values(key, constants_);
  for (const Step& step : steps_) {
    if (step.kind != Step::guard) continue;
    for (int at : step.arguments)
      if (values.is_result(at)) return nullptr;  // it asks about what only the kernels before it compute
    if (!take_step(step, values)) return nullptr;
  }
  return Py_NewRef(outcome_);
}

PyObject* Plan::run(Op* op, const Key& key) const {
  Values values(key, constants_);
  for (const Step& step : steps_)
    if (!take_step(step, values)) return nullptr;
  return made_result(op, key, values);
}

PyObject* Plan::made_node(Op* op, const Key& key, const Values& values) const {
  PyObject* saved = PyTuple_New(Py_ssize_t(saved_.size()));
  PyObject* edges = PyTuple_New(Py_ssize_t(edges_.size()));
  Node* node = nullptr;
  bool made = saved != nullptr && edges != nullptr;
  for (size_t i = 0; made && i < saved_.size(); ++i) {
    const int at = saved_[i];
    PyObject* value = at < key.leaf_count ? Py_NewRef(key.leaves[at])
                      : values.is_result(at) ? make_tensor(Py_NewRef(values[at]), false, nullptr)
                                             : Py_NewRef(values[at]);
    made = value != nullptr;
    if (made) PyTuple_SET_ITEM(saved, Py_ssize_t(i), value);
  }
  for (size_t i = 0; made && i < edges_.size(); ++i) {
    PyObject* edge = Py_None;
    if (edges_[i] >= 0) {
      edge = key.leaves[edges_[i]];
      const auto* tensor = reinterpret_cast<Tensor*>(edge);
      if (tensor->node != Py_None) edge = tensor->node;
    }
    PyTuple_SET_ITEM(edges, Py_ssize_t(i), Py_NewRef(edge));
  }
  if (made) node = make_node(node_type, reinterpret_cast<PyObject*>(op), edges, saved, options_);
  Py_XDECREF(saved);
  Py_XDECREF(edges);
  if (node == nullptr) return nullptr;
  PyObject* output = values[results_[0]];  // its shape may depend on elements: x[x > 0]
  node->shape = has_shape(output, shape_) ? Py_NewRef(shape_) : shape_of(output);
  node->casts = Py_NewRef(casts_);
  return reinterpret_cast<PyObject*>(node);
}

PyObject* Plan::made_result(Op* op, const Key& key, const Values& values) const {
  const auto tensor_of = [&](int at) {
    if (at < key.leaf_count) return Py_NewRef(key.leaves[at]);
    if (!values.is_result(at) || values[at] == Py_None) return Py_NewRef(values[at]);
    return make_tensor(Py_NewRef(values[at]), false, nullptr);
  };
  if (container_ == Py_None) {
    if (!records_) return tensor_of(results_[0]);
    PyObject* node = made_node(op, key, values);
    return node == nullptr ? nullptr : make_tensor(Py_NewRef(values[results_[0]]), true, node);
  }
  PyObject* parts[max_arguments];
  parts[0] = nullptr;
  size_t count = 0;
  for (; count < results_.size(); ++count) {
    parts[count] = tensor_of(results_[count]);
    if (parts[count] == nullptr) break;
  }
  PyObject* result = nullptr;
  if (count == results_.size()) {
    if (container_ == reinterpret_cast<PyObject*>(&PyList_Type)) {
      result = PyList_New(Py_ssize_t(count));
      for (size_t i = 0; result != nullptr && i < count; ++i) PyList_SET_ITEM(result, Py_ssize_t(i), Py_NewRef(parts[i]));
    } else if (container_ == reinterpret_cast<PyObject*>(&PyTuple_Type)) {
      result = PyTuple_New(Py_ssize_t(count));
      for (size_t i = 0; result != nullptr && i < count; ++i) PyTuple_SET_ITEM(result, Py_ssize_t(i), Py_NewRef(parts[i]));
    } else {
      result = PyObject_Vectorcall(container_, parts, count, nullptr);
    }
  }
  while (count > 0) Py_DECREF(parts[--count]);
  return result;
}

}  // namespace extensor::recorder
