// Programs: made from their description, matched with the arguments of a call, run.
#include "bindings/recorder/program.hpp"

#include <algorithm>
#include <ctime>
#include <utility>

#include "bindings/exceptions.hpp"
#include "bindings/recorder/prompt_lock.hpp"

#include <structmember.h>

namespace extensor::recorder {
namespace {

long long structure_version = 1;  // of all modules: bumped whenever an attribute of one is set
PyObject *name_replaced = nullptr, *name_relu = nullptr;

// --- Matching a call ---

bool is_like(PyObject* array, int typenum, const std::vector<npy_intp>& shape) {
  if (typenum < 0) return array == Py_None;
  if (!PyArray_Check(array) || is_on_device(array)) return false;
  auto* typed = reinterpret_cast<PyArrayObject*>(array);
  return PyArray_TYPE(typed) == typenum && PyArray_NDIM(typed) == int(shape.size()) && PyArray_CompareLists(PyArray_DIMS(typed), shape.data(), int(shape.size()));
}

// The tensors among the arguments, if they have the structure that was recorded. -1 with a Python error set.
int match(const Tree& tree, PyObject* given, std::vector<PyObject*>& tensors) {
  switch (tree.kind) {
    case Tree::tensor:
      if (!is_tensor(given)) return 0;
      tensors.push_back(given);
      return 1;
    case Tree::object:
      return given == tree.what;
    case Tree::value:
      if (given == tree.what) return 1;
      if (Py_TYPE(given) != Py_TYPE(tree.what)) return 0;
      return PyObject_RichCompareBool(given, tree.what, Py_EQ);
    case Tree::list:
    case Tree::tuple: {
      if (reinterpret_cast<PyObject*>(Py_TYPE(given)) != tree.what) return 0;
      const bool is_list = PyList_Check(given);
      if ((is_list ? PyList_GET_SIZE(given) : PyTuple_GET_SIZE(given)) != Py_ssize_t(tree.children.size())) return 0;
      for (size_t i = 0; i < tree.children.size(); ++i) {
        if (is_list && PyList_GET_SIZE(given) <= Py_ssize_t(i)) return 0;
        const int found = match(tree.children[i], is_list ? PyList_GET_ITEM(given, Py_ssize_t(i)) : PyTuple_GET_ITEM(given, Py_ssize_t(i)), tensors);
        if (found != 1) return found;
      }
      return 1;
    }
    case Tree::dict: {
      if (!PyDict_CheckExact(given) || PyDict_GET_SIZE(given) != Py_ssize_t(tree.children.size())) return 0;
      for (size_t i = 0; i < tree.children.size(); ++i) {
        PyObject* value = PyDict_GetItemWithError(given, PyTuple_GET_ITEM(tree.what, Py_ssize_t(i)));
        if (value == nullptr) return PyErr_Occurred() ? -1 : 0;
        const int found = match(tree.children[i], value, tensors);
        if (found != 1) return found;
      }
      return 1;
    }
  }
  return 0;
}

// One run: what it has read and computed so far.
class Run {
 public:
  Run(Program* program, PyObject* kept, PyObject* listener) : program_(program), kept_(kept), listener_(listener), values_(size_t(program->value_count), nullptr) {}
  ~Run() {
    for (PyObject* value : values_) Py_XDECREF(value);
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  // False where the call is of another kind.
  bool read_inputs(PyObject* args, PyObject* kwargs) {
    if (state.recording != program_->records || state.mode != program_->mode || state.observer != nullptr || state.trace != nullptr || state.reader != nullptr)
      return false;
    for (const Body& body : *program_->bodies)
      if (!has_body(body.op, body.fn, body.code, body.defaults)) return false;
    for (const Watched& watch : *program_->watched)
      if (!is_as_it_was(watch)) return false;
    const Tree& tree = *program_->arguments;
    for (int part = 0; part < 2; ++part) {
      const int found = match(tree.children[size_t(part)], part == 0 ? args : kwargs, tensors_);
      if (found < 0) throw PythonError();
      if (found == 0) return false;
    }
    if (program_->version != structure_version) {
      const long long now = structure_version;
      const Ref answer = owned(PyObject_CallNoArgs(program_->is_valid));
      if (answer.get() != Py_True) return false;
      program_->version = now;
    }
    for (const GradCondition& condition : *program_->grads)
      if (is_none(owner_of(condition.owner)->grad) == condition.present) return false;
    for (size_t i = 0; i < program_->inputs->size(); ++i) {
      const Input& input = (*program_->inputs)[i];
      PyObject* array = read(input);
      if (array == nullptr || !is_like(array, input.typenum, input.shape)) return false;
      values_[i] = Py_NewRef(array);
    }
    const size_t start = program_->inputs->size();
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(program_->constants); ++i) values_[start + size_t(i)] = Py_NewRef(PyTuple_GET_ITEM(program_->constants, i));
    next_ = start + size_t(PyTuple_GET_SIZE(program_->constants));
    return true;
  }

  // False where it was given up: nothing has changed, the function itself must run.
  bool run_steps() {
    const bool saves = program_->save != Py_None;
    const Ref saved = saves ? owned(PyObject_CallNoArgs(program_->save)) : shared(Py_None);
    const PromptLock prompt(program_->is_long);
    const bool timed = (program_->runs++ & 63) == 1;
    program_->timed_runs += timed;
    for (size_t i = 0; i < program_->steps->size(); ++i) {
      Instruction& step = (*program_->steps)[i];
      drop_old_grads(i);
      const long long start = timed ? now() : 0;
      const bool done = take(step);
      if (timed) step.nanoseconds += now() - start;
      if (done) {
        committed_ |= step.commits;
        for (int number : step.releases) release(size_t(number));
        if (listener_ != nullptr) tell_grads(i + 1);
        continue;
      }
      if (PyErr_Occurred()) {
        const bool lasting = committed_ || PyErr_ExceptionMatches(PyExc_MemoryError) || !PyErr_ExceptionMatches(PyExc_Exception);
        if (lasting) throw PythonError();
        PyErr_Clear();  // what is wrong, the function itself knows how to say
      } else if (committed_) {
        PyErr_SetString(PyExc_RuntimeError, "[compile] a shape or a check changed after the optimiser's step or after gradients were handed on; run this function without compile");
        throw PythonError();
      }
      if (saves) owned(PyObject_CallOneArg(program_->restore, saved));
      return false;
    }
    return true;
  }

  void leave_effects() {
    for (; left_ < program_->effects->size(); ++left_) leave((*program_->effects)[left_]);
  }

  PyObject* made_result() { return made(*program_->result); }

 private:
  void leave(const Effect& effect) {
    const Ref value = effect.value < 0 ? shared(Py_None) : effect.kind == Effect::assign ? shared(values_[size_t(effect.value)]) : owned(tensor_of(effect.value, false, Py_None));
    if (effect.kind == Effect::attribute) {
      PyObject* fields = PyObject_GenericGetDict(effect.owner, nullptr);  // not by __setattr__: this is no change of the structure
      const Ref dict = owned(fields);
      if (PyDict_SetItem(dict, effect.name, value) < 0) throw PythonError();
      return;
    }
    Tensor* owner = owner_of(effect.owner);
    if (effect.kind == Effect::grad) {
      Py_XSETREF(owner->grad, Py_NewRef(value.get()));
    } else {
      Py_SETREF(owner->array, Py_NewRef(value.get()));
      const Ref sequence = owned(PyLong_FromLongLong(++last_sequence));
      if (PyObject_SetAttr(reinterpret_cast<PyObject*>(owner), name_replaced, sequence) < 0) throw PythonError();
    }
  }

  // The gradients that are complete after so many steps, to who listens; those of the step before are gone by then. The run cannot
  // be given up afterwards.
  void tell_grads(size_t done) {
    drop_old_grads(done);
    const std::vector<Effect>& effects = *program_->effects;
    for (; left_ < effects.size() && effects[left_].ready <= done; ++left_) {
      const Effect& effect = effects[left_];
      committed_ = true;
      leave(effect);
      owned(PyObject_CallOneArg(listener_, reinterpret_cast<PyObject*>(owner_of(effect.owner))));
    }
  }

  static bool is_as_it_was(const Watched& watch) {
    PyObject* found = watch.key == Py_None ? PyCell_Get(watch.holder) : Py_XNewRef(PyDict_GetItemWithError(watch.holder, watch.key));
    if (found == nullptr) {
      if (PyErr_Occurred()) throw PythonError();
      return false;
    }
    const Ref value = owned(found);
    if (value.get() == watch.value) return true;
    if (Py_TYPE(value.get()) != Py_TYPE(watch.value)) return false;
    const int same = PyObject_RichCompareBool(value, watch.value, Py_EQ);
    if (same < 0) throw PythonError();
    return same == 1;
  }

  static long long now() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
  }

  Tensor* owner_of(PyObject* owner) const {
    return reinterpret_cast<Tensor*>(PyLong_CheckExact(owner) ? tensors_[size_t(PyLong_AsLong(owner))] : owner);
  }

  // Borrowed; nullptr where there is no array.
  PyObject* read(const Input& input) {
    if (input.kind == Input::attribute) {
      const Ref dict = owned(PyObject_GenericGetDict(input.owner, nullptr));
      PyObject* value = PyDict_GetItemWithError(dict, input.name);
      if (value == nullptr && PyErr_Occurred()) throw PythonError();
      return value != nullptr && is_tensor(value) ? reinterpret_cast<Tensor*>(value)->array : nullptr;
    }
    Tensor* owner = owner_of(input.owner);
    if (input.requires_grad >= 0 && owner->requires_grad != input.requires_grad) return nullptr;
    if (input.kind != Input::grad) {
      if (input.kind == Input::argument && !is_none(owner->node) && owner->requires_grad) return nullptr;  // its history goes on outside
      return owner->array;
    }
    return !is_none(owner->grad) && is_tensor(owner->grad) ? reinterpret_cast<Tensor*>(owner->grad)->array : nullptr;
  }

  PyObject* tensor_of(int number, bool requires_grad, PyObject* node) const {
    return make_tensor(Py_NewRef(values_[size_t(number)]), requires_grad, node == Py_None ? nullptr : Py_NewRef(node));
  }

  void release(size_t number) {
    PyObject* value = std::exchange(values_[number], nullptr);
    SpareArrays* spare = (*program_->spare_of)[number];
    if (spare != nullptr && value != nullptr && Py_REFCNT(value) == 1) spare->give(value);
    else Py_XDECREF(value);
  }

  // Replaces a gradient. The array of the one before is used again if nobody else holds it.
  static void replace_grad(Tensor* leaf, PyObject* made, SpareArrays* spare) {
    PyObject* before = std::exchange(leaf->grad, made);
    if (spare != nullptr && before != nullptr && Py_TYPE(before) == tensor_type && Py_REFCNT(before) == 1) spare->give(Py_NewRef(reinterpret_cast<Tensor*>(before)->array));
    Py_XDECREF(before);
  }

  bool set_grad(Tensor* leaf, PyObject* array, SpareArrays* spare) {
    PyObject* made = make_tensor(Py_NewRef(array), false, nullptr);
    if (made == nullptr) return false;
    replace_grad(leaf, made, spare);
    return true;
  }

  // Those that go before this step.
  void drop_old_grads(size_t step) {
    const std::vector<OldGrad>& old = *program_->old_grads;
    for (; dropped_ < old.size() && old[dropped_].at <= step; ++dropped_) replace_grad(owner_of(old[dropped_].owner), Py_NewRef(Py_None), old[dropped_].spare);
  }

  // An optimiser's step; afterwards the new values of its parameters are results of the program.
  bool update(Instruction& step) {
    try {
      step.groups.step(step.expected);
    } catch (const PythonError&) {
      return false;
    }
    PyObject* moved = PyTuple_GET_ITEM(step.expected, 3);
    if (kept_ != nullptr) {
      const Ref arrays = owned(PyTuple_New(PyTuple_GET_SIZE(moved)));
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(moved); ++i)
        PyTuple_SET_ITEM(arrays.get(), i, Py_NewRef(reinterpret_cast<Tensor*>(PyTuple_GET_ITEM(moved, i))->array));
      if (PyList_Append(kept_, arrays) < 0) return false;
    }
    for (size_t i = 0; i < step.results.size(); ++i)
      if (!push(reinterpret_cast<Tensor*>(PyTuple_GET_ITEM(moved, Py_ssize_t(i)))->array, step.results[i])) return false;
    return true;
  }

  // False: with a Python error set, or without where an answer or a shape differs from the recorded one.
  bool take(Instruction& step) {
    if (step.kind == Instruction::update) return update(step);
    const size_t count = step.arguments.size();
    arguments_.resize(count);
    for (size_t i = 0; i < count; ++i) arguments_[i] = values_[size_t(step.arguments[i])];
    if (step.kind == Instruction::set_grad) {
      return set_grad(owner_of(step.reference), arguments_[0], (*program_->spare_of)[size_t(step.arguments[0])]);
    }
    if (step.kind == Instruction::tuple || step.kind == Instruction::list) {
      const bool is_list = step.kind == Instruction::list;
      PyObject* made = is_list ? PyList_New(Py_ssize_t(count)) : PyTuple_New(Py_ssize_t(count));
      if (made == nullptr) return false;
      for (size_t i = 0; i < count; ++i) {
        if (is_list) PyList_SET_ITEM(made, Py_ssize_t(i), Py_NewRef(arguments_[i]));
        else PyTuple_SET_ITEM(made, Py_ssize_t(i), Py_NewRef(arguments_[i]));
      }
      values_[next_++] = made;
      return true;
    }
    if (step.fusion == Instruction::activation && (fused_ >> step.fusion_number & 1)) {
      values_[next_++] = Py_NewRef(arguments_[0]);
      return true;
    }
    PyObject* found = not_covered();
    if (step.fusion == Instruction::product && kept_ == nullptr) {
      arguments_.push_back(name_relu);
      found = called(step, found);
      fused_ |= (unsigned long long)(found != Py_NotImplemented) << step.fusion_number;
    }
    if (found == Py_NotImplemented && step.native != nullptr) {
      arguments_.resize(count);
      found = called(step, found);
    }
    if (found == Py_NotImplemented) {
      Py_DECREF(found);
      found = PyObject_Vectorcall(step.reference, arguments_.data(), count, nullptr);
    }
    if (found == nullptr) return false;
    const Ref result = owned(found);
    if (step.kind == Instruction::guard) return PyObject_RichCompareBool(result, step.expected, Py_EQ) == 1;
    if (kept_ != nullptr && PyList_Append(kept_, result) < 0) return false;
    const size_t wanted = step.results.size();
    if (step.kind == Instruction::kernel && wanted == 1) return push(result, step.results[0]);
    const bool is_list = PyList_Check(result.get());
    if (!is_list && !PyTuple_Check(result.get())) return false;
    if (size_t(PySequence_Fast_GET_SIZE(result.get())) != wanted) return false;
    for (size_t i = 0; i < wanted; ++i)
      if (!push(PySequence_Fast_GET_ITEM(result.get(), Py_ssize_t(i)), step.results[i])) return false;
    return true;
  }

  // What the native kernel of a step answers, in place of an answer before.
  PyObject* called(const Instruction& step, PyObject* before) {
    Py_DECREF(before);
    return guarded([&] {
      const OfferSpareArrays offer(step.spare.data(), step.spare.size());
      return step.native->function(step.native->self, arguments_.data(), Py_ssize_t(arguments_.size()));
    });
  }

  bool push(PyObject* value, const Result& like) {
    if (!is_like(value, like.typenum, like.shape)) return false;
    values_[next_++] = Py_NewRef(value);
    return true;
  }

  PyObject* made(const Tree& tree) {
    switch (tree.kind) {
      case Tree::tensor:
        return tensor_of(tree.number, tree.requires_grad, tree.node);
      case Tree::object:
        return Py_NewRef(tree.number >= 0 ? tensors_[size_t(tree.number)] : tree.what);
      case Tree::value:
        return Py_NewRef(tree.what);
      case Tree::dict: {
        Ref dict = owned(PyDict_New());
        for (size_t i = 0; i < tree.children.size(); ++i) {
          const Ref value = owned(made(tree.children[i]));
          if (PyDict_SetItem(dict, PyTuple_GET_ITEM(tree.what, Py_ssize_t(i)), value) < 0) throw PythonError();
        }
        return dict.release();
      }
      case Tree::list:
      case Tree::tuple: {
        Ref parts = owned(PyList_New(0));
        for (const Tree& child : tree.children) {
          const Ref value = owned(made(child));
          if (PyList_Append(parts, value) < 0) throw PythonError();
        }
        if (tree.kind == Tree::list) return parts.release();
        Ref tuple = owned(PyList_AsTuple(parts));
        if (tree.what == reinterpret_cast<PyObject*>(&PyTuple_Type)) return tuple.release();
        return PyObject_CallObject(tree.what, tuple);  // a NamedTuple
      }
    }
    return nullptr;
  }

  Program* program_;
  PyObject* kept_;  // a list that results of steps are kept in, or nullptr
  PyObject* listener_;  // is called with each leaf whose gradient is complete, or nullptr
  std::vector<PyObject*> values_, arguments_, tensors_;
  unsigned long long fused_ = 0;  // bit i: the activation is in the product of fusion i
  size_t next_ = 0, dropped_ = 0, left_ = 0;  // the next value; how many old gradients are gone, and effects are there
  bool committed_ = false;
};

// --- The class ---

// run(args, kwargs, kept=None, listener=None): the result, or NotImplemented where the call is of another kind
PyObject* program_run(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  auto* program = reinterpret_cast<Program*>(self);
  return guarded([&]() -> PyObject* {
    const auto given = [&](Py_ssize_t i) { return i < count && args[i] != Py_None ? args[i] : nullptr; };
    if (count < 2 || count > 4 || !PyTuple_Check(args[0]) || !PyDict_Check(args[1]) || (given(2) != nullptr && !PyList_Check(args[2]))) {
      PyErr_SetString(PyExc_TypeError, "[program] run takes a tuple, a dict, a list or None, and a function or None");
      return nullptr;
    }
    const Ref alive = shared(self);
    Run run(program, given(2), given(3));
    if (!run.read_inputs(args[0], args[1])) return not_covered();
    if (!run.run_steps()) return not_covered();
    run.leave_effects();
    return run.made_result();
  });
}

PyObject* program_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* description;
  if (!PyArg_ParseTuple(args, "O!", &PyTuple_Type, &description)) return nullptr;
  return guarded([&] {
    Ref made = owned(type->tp_alloc(type, 0));
    auto* self = reinterpret_cast<Program*>(made.get());
    self->description = Py_NewRef(description);
    read_description(self, description);
    return made.release();
  });
}

// Seconds each step took on average in the runs that were timed, and the number of runs.
PyObject* program_times(PyObject* self, PyObject*) {
  auto* program = reinterpret_cast<Program*>(self);
  PyObject* times = PyList_New(0);
  if (times == nullptr) return nullptr;
  for (const Instruction& step : *program->steps) {
    PyObject* seconds = PyFloat_FromDouble(program->timed_runs == 0 ? 0.0 : double(step.nanoseconds) * 1e-9 / double(program->timed_runs));
    if (seconds == nullptr || PyList_Append(times, seconds) < 0) {
      Py_XDECREF(seconds);
      Py_DECREF(times);
      return nullptr;
    }
    Py_DECREF(seconds);
  }
  return Py_BuildValue("(NL)", times, program->runs);
}

int program_traverse(PyObject* object, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(object));
  Py_VISIT(reinterpret_cast<Program*>(object)->description);
  return 0;
}

void program_dealloc(PyObject* object) {
  PyObject_GC_UnTrack(object);
  auto* self = reinterpret_cast<Program*>(object);
  PyTypeObject* type = Py_TYPE(object);
  delete self->arguments;
  delete self->result;
  delete self->inputs;
  delete self->grads;
  delete self->steps;
  delete self->effects;
  delete self->bodies;
  delete self->watched;
  delete self->spare;
  delete self->spare_of;
  delete self->old_grads;
  Py_CLEAR(self->description);
  type->tp_free(object);
  Py_DECREF(type);
}

PyMethodDef program_methods[] = {
    {"run", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(program_run)), METH_FASTCALL,
     "run($self, args, kwargs, kept=None, listener=None, /)\n--\n\nThe result; NotImplemented where the call is of another kind."},
    {"times", program_times, METH_NOARGS, "Seconds that each step took on average, and the number of runs."},
    {nullptr, nullptr, 0, nullptr}};

PyType_Slot program_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(program_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(program_dealloc)},
    {Py_tp_traverse, reinterpret_cast<void*>(program_traverse)},
    {Py_tp_methods, program_methods},
    {Py_tp_doc, const_cast<char*>("A recorded function, repeated.")},
    {0, nullptr}};

PyType_Spec program_spec = {"extensor._native.Program", sizeof(Program), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, program_slots};

PyObject* bump_structure(PyObject*, PyObject*) {
  ++structure_version;
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {{"bump_structure", bump_structure, METH_NOARGS, "An attribute of a module was set: programs look at their modules again."},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool bind_program(PyObject* module) {
  name_replaced = PyUnicode_InternFromString("_replaced");
  name_relu = PyUnicode_InternFromString("relu");
  PyObject* type = PyType_FromSpec(&program_spec);
  if (type == nullptr || name_replaced == nullptr || name_relu == nullptr) return false;
  const bool added = PyModule_AddObjectRef(module, "Program", type) == 0;
  Py_DECREF(type);
  return added && PyModule_AddFunctions(module, functions) == 0;
}

}  // namespace extensor::recorder
