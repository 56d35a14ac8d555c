// Programs made from their description in plain tuples (src/extensor/compile/program.py).
#include <algorithm>
#include <cstring>

#include "bindings/recorder/program.hpp"

namespace extensor::recorder {
namespace {

PyObject* item(PyObject* tuple, Py_ssize_t i) {
  if (!PyTuple_Check(tuple) || i >= PyTuple_GET_SIZE(tuple)) {
    PyErr_SetString(PyExc_ValueError, "[program] the description is not one");
    throw PythonError();
  }
  return PyTuple_GET_ITEM(tuple, i);
}

long whole(PyObject* object) {
  const long value = PyLong_AsLong(object);
  if (value == -1 && PyErr_Occurred()) throw PythonError();
  return value;
}

template <class T, class Read>
std::vector<T> read_all(PyObject* tuple, const Read& read) {
  std::vector<T> found;
  for (Py_ssize_t i = 0; i < PyTuple_Size(tuple); ++i) found.push_back(read(PyTuple_GET_ITEM(tuple, i)));
  if (PyErr_Occurred()) throw PythonError();
  return found;
}

template <class T>
std::vector<T> read_wholes_of(PyObject* tuple) {
  return read_all<T>(tuple, [](PyObject* value) { return T(whole(value)); });
}

Tree read_tree(PyObject* tuple) {
  Tree tree;
  tree.kind = Tree::Kind(whole(item(tuple, 0)));
  tree.what = item(tuple, 1);
  tree.number = int(whole(item(tuple, 2)));
  tree.requires_grad = item(tuple, 3) == Py_True;
  tree.node = item(tuple, 4);
  tree.children = read_all<Tree>(item(tuple, 5), read_tree);
  return tree;
}

Result read_result(PyObject* described) {
  if (described == Py_None) return {-1, {}};
  PyObject* dtype = item(described, 0);
  if (!PyArray_DescrCheck(dtype)) {
    PyErr_SetString(PyExc_TypeError, "[program] a dtype is not one");
    throw PythonError();
  }
  return {reinterpret_cast<PyArray_Descr*>(dtype)->type_num, read_wholes_of<npy_intp>(item(described, 1))};
}

// An update is of an optimiser, two of its methods, and as many tensors as there are results.
void check_update(const Instruction& step) {
  PyObject* moved = item(step.expected, 3);
  bool fits = PyTuple_Check(moved) && size_t(PyTuple_GET_SIZE(moved)) == step.results.size();
  for (Py_ssize_t i = 0; fits && i < PyTuple_GET_SIZE(moved); ++i) fits = is_tensor(PyTuple_GET_ITEM(moved, i));
  if (fits) return;
  PyErr_SetString(PyExc_ValueError, "[program] an update is not one");
  throw PythonError();
}

// Gives small results of one dtype and shape the same spare arrays.
void find_spare_arrays(Program* self) {
  constexpr npy_intp most_bytes = 64 << 10;
  self->spare = new std::vector<std::unique_ptr<SpareArrays>>;
  self->spare_of = new std::vector<SpareArrays*>(size_t(self->value_count), nullptr);
  size_t number = self->inputs->size() + size_t(PyTuple_Size(self->constants));
  for (Instruction& step : *self->steps) {
    for (const Result& result : step.results) {
      const DType dtype = dtype_of_number(result.typenum);
      npy_intp bytes = dtype == DType::other ? most_bytes : npy_intp(item_size(dtype));
      for (npy_intp length : result.shape) bytes = length < most_bytes ? std::min(most_bytes, bytes * length) : most_bytes;
      SpareArrays* found = nullptr;
      self->is_long |= dtype != DType::other && bytes == most_bytes;  // what takes long to compute is as a rule also large
      if (step.kind == Instruction::kernel && bytes < most_bytes) {
        for (const auto& spare : *self->spare)
          if (spare->holds(result.typenum, result.shape)) found = spare.get();
        if (found == nullptr) found = self->spare->emplace_back(new SpareArrays(result.typenum, result.shape)).get();
      }
      step.spare.push_back(found);
      (*self->spare_of)[number++] = found;
    }
  }
}

// Gradients that are set and not read go where the eager step lets them go. Where that is not known, they go after the last guard:
// until then the function may still have to run itself, with all as it was.
void find_old_grads(Program* self) {
  self->old_grads = new std::vector<OldGrad>;
  size_t last = 0;
  for (size_t i = 0; i < self->steps->size(); ++i)
    if ((*self->steps)[i].kind == Instruction::guard) last = i + 1;
  const auto add = [&](PyObject* owner, SpareArrays* spare, size_t at) {
    for (const Input& input : *self->inputs)
      if (input.kind == Input::grad && input.owner == owner) return;
    self->old_grads->push_back({owner, spare, at});
  };
  for (const Instruction& step : *self->steps) {
    if (step.kind != Instruction::set_grad) continue;
    add(step.reference, (*self->spare_of)[size_t(step.arguments[0])], step.expected == Py_None ? last : size_t(whole(step.expected)));
  }
  for (const Effect& effect : *self->effects)
    if (effect.kind == Effect::grad) add(effect.owner, nullptr, last);
  std::stable_sort(self->old_grads->begin(), self->old_grads->end(), [](const OldGrad& a, const OldGrad& b) { return a.at < b.at; });
}

const char* name_of(PyObject* native) { return PyCFunction_Check(native) ? reinterpret_cast<PyCFunctionObject*>(native)->m_ml->ml_name : ""; }

void note_values(const Tree& tree, std::vector<int>& uses) {
  if (tree.kind == Tree::tensor && tree.number >= 0) uses[size_t(tree.number)] += 2;
  for (const Tree& child : tree.children) note_values(child, uses);
}

// linear or conv2d, then relu of nothing but its result: the product applies relu as it writes. relu_backward asks where its second
// argument is above zero, and relu(x) is above zero where x is, so it may be given either.
void join_activations(Program* self, PyObject* described) {
  std::vector<Instruction>& steps = *self->steps;
  std::vector<int> maker(size_t(self->value_count), -1), uses(size_t(self->value_count), 0);  // uses other than by relu_backward
  int number = int(self->inputs->size()) + int(PyTuple_Size(self->constants));
  for (size_t i = 0; i < steps.size(); ++i) {
    const bool is_backward = std::strcmp(name_of(item(item(described, Py_ssize_t(i)), 1)), "relu_backward") == 0;
    for (size_t k = 0; k < steps[i].arguments.size(); ++k) uses[size_t(steps[i].arguments[k])] += !(is_backward && k == 1);
    for (size_t k = 0; k < steps[i].results.size(); ++k) maker[size_t(number++)] = int(i);
  }
  for (const Effect& effect : *self->effects)
    if (effect.value >= 0) uses[size_t(effect.value)] += 2;
  note_values(*self->result, uses);
  int fusions = 0;
  for (size_t i = 0; i < steps.size() && fusions < 64; ++i) {
    Instruction& relu = steps[i];
    if (relu.native == nullptr || relu.arguments.size() != 1 || std::strcmp(name_of(item(item(described, Py_ssize_t(i)), 1)), "relu") != 0) continue;
    const size_t from = size_t(relu.arguments[0]);
    if (maker[from] < 0 || uses[from] != 1) continue;
    Instruction& product = steps[size_t(maker[from])];
    const char* name = product.native == nullptr ? "" : name_of(item(item(described, maker[from]), 1));
    if (std::strcmp(name, "linear") != 0 && std::strcmp(name, "conv2d") != 0) continue;
    product.fusion = Instruction::product;
    relu.fusion = Instruction::activation;
    product.fusion_number = relu.fusion_number = fusions++;
  }
}

}  // namespace

void read_description(Program* self, PyObject* d) {
  self->arguments = new Tree(read_tree(item(d, 0)));
  self->inputs = new std::vector<Input>(read_all<Input>(item(d, 1), [](PyObject* t) {
    Result like = read_result(item(t, 3));
    return Input{Input::Kind(whole(item(t, 0))), item(t, 1), item(t, 2), like.typenum, like.shape, int(whole(item(t, 4)))};
  }));
  self->grads = new std::vector<GradCondition>(
      read_all<GradCondition>(item(d, 2), [](PyObject* t) { return GradCondition{item(t, 0), item(t, 1) == Py_True}; }));
  self->constants = item(d, 3);
  self->steps = new std::vector<Instruction>(read_all<Instruction>(item(d, 4), [](PyObject* t) {
    PyObject* native = item(t, 1);
    Instruction step{Instruction::Kind(whole(item(t, 0))),
                     native == Py_None ? nullptr : native_kernel(native),
                     item(t, 2),
                     item(t, 3),
                     read_wholes_of<int>(item(t, 4)),
                     read_all<Result>(item(t, 5), read_result),
                     read_wholes_of<int>(item(t, 6)),
                     item(t, 7) == Py_True};
    return step;
  }));
  self->effects = new std::vector<Effect>(read_all<Effect>(item(d, 5), [](PyObject* t) {
    return Effect{Effect::Kind(whole(item(t, 0))), item(t, 1), item(t, 2), int(whole(item(t, 3))), size_t(whole(item(t, 4)))};
  }));
  self->result = new Tree(read_tree(item(d, 6)));
  self->bodies = new std::vector<Body>(read_all<Body>(item(d, 7), [](PyObject* op) {
    const auto* known = reinterpret_cast<Op*>(op);
    const auto* body = reinterpret_cast<PyFunctionObject*>(known->fn);
    const bool plain = PyFunction_Check(known->fn);
    return Body{reinterpret_cast<Op*>(op), known->fn, plain ? body->func_code : nullptr, plain ? body->func_defaults : nullptr};
  }));
  self->mode = whole(item(d, 8));
  self->records = item(d, 9) == Py_True;
  self->is_valid = item(d, 10);
  self->save = item(d, 11);
  self->restore = item(d, 12);
  self->watched = new std::vector<Watched>(read_all<Watched>(item(d, 13), [](PyObject* t) { return Watched{item(t, 0), item(t, 1), item(t, 2)}; }));
  int count = int(self->inputs->size()) + int(PyTuple_Size(self->constants));
  for (const Instruction& step : *self->steps) count += int(step.results.size());
  self->value_count = count;
  // Every number must be one of a value that exists by then: what follows trusts them.
  int known = int(self->inputs->size()) + int(PyTuple_Size(self->constants));
  const auto check = [](int number, int least, int most) {
    if (number >= least && number < most) return;
    PyErr_SetString(PyExc_ValueError, "[program] a value is out of range");
    throw PythonError();
  };
  for (const Instruction& step : *self->steps) {
    for (int number : step.arguments) check(number, 0, known);
    if (step.kind == Instruction::update) check_update(step);
    known += int(step.results.size());
    for (int number : step.releases) check(number, 0, known);
  }
  for (const Effect& effect : *self->effects) check(effect.value, -1, known);
  find_spare_arrays(self);
  find_old_grads(self);
  join_activations(self, item(d, 4));
}

}  // namespace extensor::recorder
