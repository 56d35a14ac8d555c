#include "bindings/recorder/plan.hpp"

#include "bindings/exceptions.hpp"

namespace extensor::recorder {

constexpr int max_values = 160, max_arguments = 80;

namespace {

template <class... Fields>
void parse(PyObject* tuple, const char* format, Fields... fields) {
  if (!PyArg_ParseTuple(tuple, format, fields...)) throw PythonError();
}

std::vector<int> read_ints(PyObject* tuple) {
  std::vector<int> found;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i) found.push_back(int(PyLong_AsLong(PyTuple_GET_ITEM(tuple, i))));
  return found;
}

bool has_shape(PyObject* value, PyObject* shape) {
  if (!PyArray_Check(value) || !PyTuple_Check(shape)) return value == shape;  // None
  auto* array = reinterpret_cast<PyArrayObject*>(value);
  if (PyArray_NDIM(array) != PyTuple_GET_SIZE(shape)) return false;
  for (int axis = 0; axis < PyArray_NDIM(array); ++axis)
    if (PyArray_DIM(array, axis) != PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, axis))) return false;
  return true;
}

}  // namespace

// The values of one call. Leaves and constants are borrowed, the results of steps are owned.
class Plan::Values {
 public:
  Values(const Key& key, PyObject* constants) : leaves_(key.values), leaf_count_(key.leaf_count), constants_(constants) {}
  ~Values() {
    while (result_count_ > 0) Py_DECREF(results_[--result_count_]);
  }
  Values(const Values&) = delete;
  Values& operator=(const Values&) = delete;
  PyObject* operator[](int i) const {
    return i >= leaf_count_ ? results_[i - leaf_count_] : i >= 0 ? leaves_[i] : PyTuple_GET_ITEM(constants_, -1 - i);
  }
  void push(PyObject* value) { results_[result_count_++] = value; }
  bool is_result(int i) const { return i >= leaf_count_; }

 private:
  PyObject* const* leaves_;
  int leaf_count_, result_count_ = 0;
  PyObject* constants_;
  PyObject* results_[max_values];
};

// (constants, steps, (container, results), outcome, record): the words are explained in graph/plans.py.
Plan::Plan(const Key& key, Ref<> description) : hash_(key.hash), words_(key.words, key.words + key.word_count), description_(std::move(description)) {
  for (int i = 0; i < key.held_count; ++i) held_.push_back(shared(key.held[i]));
  if (runs_body()) return;
  PyObject *steps, *results, *record, *saved, *edges;
  parse(description_, "O!O!(OO!)OO", &PyTuple_Type, &constants_, &PyTuple_Type, &steps, &container_, &PyTuple_Type, &results, &outcome_, &record);
  if (!read_steps(steps)) {
    description_ = shared(Py_None);
    return;
  }
  results_ = read_ints(results);
  if (record == Py_None) return;
  records_ = true;
  parse(record, "O!O!OOO", &PyTuple_Type, &saved, &PyTuple_Type, &edges, &options_, &shape_, &casts_);
  saved_ = read_ints(saved);
  edges_ = read_ints(edges);
}

// False if somebody's own function stands in the place of a native kernel, or there is no room.
bool Plan::read_steps(PyObject* steps) {
  int values = 0;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(steps); ++i) {
    Step step;
    const char* kind;
    PyObject *arguments, *native;
    parse(PyTuple_GET_ITEM(steps, i), "sOOO!iO", &kind, &native, &step.reference, &PyTuple_Type, &arguments, &step.results, &step.known);
    step.kind = kind[0] == 'k' ? Step::kernel : kind[0] == 'g' ? Step::guard : kind[0] == 't' ? Step::tuple : Step::list;
    step.native = native == Py_None ? nullptr : native_kernel(native);
    step.arguments = read_ints(arguments);
    values += step.results;
    if ((native != Py_None && step.native == nullptr) || step.arguments.size() > max_arguments || values > max_values) return false;
    steps_.push_back(std::move(step));
  }
  return true;
}

// False: with a Python error set, or without where a guard has another answer.
bool Plan::take_step(const Step& step, Values& values) const {
  const Py_ssize_t count = Py_ssize_t(step.arguments.size());
  PyObject* arguments[max_arguments];
  for (Py_ssize_t i = 0; i < count; ++i) arguments[i] = values[step.arguments[size_t(i)]];
  if (step.kind == Step::tuple || step.kind == Step::list) {
    Ref<> made = owned(step.kind == Step::list ? PyList_New(count) : PyTuple_New(count));
    for (Py_ssize_t i = 0; i < count; ++i) {
      if (step.kind == Step::list) PyList_SET_ITEM(made.get(), i, Py_NewRef(arguments[i]));
      else PyTuple_SET_ITEM(made.get(), i, Py_NewRef(arguments[i]));
    }
    values.push(made.release());
    return true;
  }
  Ref<> found = maybe(step.native == nullptr ? not_covered() : guarded([&] { return step.native->function(step.native->self, arguments, count); }));
  if (found == Py_NotImplemented) found = maybe(PyObject_Vectorcall(step.reference, arguments, size_t(count), nullptr));
  if (found == nullptr) return false;
  if (step.kind == Step::guard) return found == step.known || PyObject_RichCompareBool(found, step.known, Py_EQ) == 1;
  const bool several = step.results != 1;
  bool fits = !several || ((PyTuple_Check(found.get()) || PyList_Check(found.get())) && PySequence_Fast_GET_SIZE(found.get()) == step.results);
  for (int i = 0; fits && i < step.results; ++i) {
    PyObject* part = several ? Py_NewRef(PySequence_Fast_GET_ITEM(found.get(), i)) : found.release();
    values.push(part);
    fits = step.known == Py_None || has_shape(part, PyTuple_GET_ITEM(step.known, i));
  }
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

// A value as Python sees it: a leaf is the tensor that was given, an array becomes a tensor.
Ref<> Plan::object_of(int at, const Key& key, const Values& values) {
  if (values.is_result(at) && values[at] != Py_None) return owned(make_tensor(Py_NewRef(values[at]), false, nullptr));
  return shared(at >= 0 && !values.is_result(at) ? key.leaves[at] : values[at]);
}

Ref<> Plan::objects_of(const std::vector<int>& places, const Key& key, const Values& values) {
  Ref<> made = owned(PyTuple_New(Py_ssize_t(places.size())));
  for (size_t i = 0; i < places.size(); ++i) PyTuple_SET_ITEM(made.get(), Py_ssize_t(i), object_of(places[i], key, values).release());
  return made;
}

PyObject* Plan::made_node(Op* op, const Key& key, const Values& values) const {
  const Ref<> saved = objects_of(saved_, key, values), edges = owned(PyTuple_New(Py_ssize_t(edges_.size())));
  for (size_t i = 0; i < edges_.size(); ++i) {
    PyObject* edge = edges_[i] < 0 ? Py_None : key.leaves[edges_[i]];
    if (edge != Py_None && !is_none(reinterpret_cast<Tensor*>(edge)->node)) edge = reinterpret_cast<Tensor*>(edge)->node;
    PyTuple_SET_ITEM(edges.get(), Py_ssize_t(i), Py_NewRef(edge));
  }
  Ref<Node> node = make_node(node_type, reinterpret_cast<PyObject*>(op), edges, saved, options_);
  auto* output = reinterpret_cast<PyArrayObject*>(values[results_[0]]);  // its shape may depend on elements: x[x > 0]
  node->shape = has_shape(values[results_[0]], shape_) ? Py_NewRef(shape_) : PyArray_IntTupleFromIntp(PyArray_NDIM(output), PyArray_DIMS(output));
  node->casts = Py_NewRef(casts_);
  return node.release();
}

PyObject* Plan::made_result(Op* op, const Key& key, const Values& values) const {
  if (records_) return make_tensor(Py_NewRef(values[results_[0]]), true, made_node(op, key, values));
  if (container_ == Py_None) return object_of(results_[0], key, values).release();
  Ref<> parts = objects_of(results_, key, values);
  if (container_ == reinterpret_cast<PyObject*>(&PyTuple_Type)) return parts.release();
  if (container_ == reinterpret_cast<PyObject*>(&PyList_Type)) return PySequence_List(parts);
  return PyObject_CallObject(container_, parts);
}

}  // namespace extensor::recorder
