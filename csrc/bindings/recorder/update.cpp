// The step of an optimiser, for the usual case: every parameter that has a gradient has a state of the usual form. What is
// gathered and put back here in one call, extensor.optim.optimizer does in Python; a test holds the two to the same results.
#include "bindings/recorder/update.hpp"

#include "bindings/exceptions.hpp"
#include "bindings/optim.hpp"
#include "bindings/spare_arrays.hpp"

#include <structmember.h>

namespace extensor::recorder {
namespace {

PyObject *name_params, *name_grads, *name_step, *name_nothing, *name_left, *name_replaced, *name_groups, *name_state, *name_rounding;

// A slot of the class of parameters: where it lies in an object is asked once.
class Slot {
 public:
  explicit Slot(PyObject** name) : name_(name) {}

  // Shared None where the object has no such slot, or nothing in it.
  Ref<> get(PyObject* owner) {
    if (PyObject** place = find(owner)) return shared(*place == nullptr ? Py_None : *place);
    PyObject* found = PyObject_GetAttr(owner, *name_);
    if (found != nullptr) return owned(found);
    if (!PyErr_ExceptionMatches(PyExc_AttributeError)) throw PythonError();
    PyErr_Clear();
    return shared(Py_None);
  }

  void set(PyObject* owner, PyObject* value) {
    if (PyObject** place = find(owner)) {
      Py_XSETREF(*place, Py_NewRef(value));
    } else if (PyObject_SetAttr(owner, *name_, value) < 0) {
      throw PythonError();
    }
  }

 private:
  // nullptr where only Python knows how.
  PyObject** find(PyObject* owner) {
    if (Py_TYPE(owner) != type_) look_at(owner);
    return offset_ <= 0 ? nullptr : reinterpret_cast<PyObject**>(reinterpret_cast<char*>(owner) + offset_);
  }

  // Only of classes of this package, which nobody gives other descriptors.
  void look_at(PyObject* owner) {
    type_ = nullptr, offset_ = 0;
    if (!has_our_class(owner)) return;
    const Ref<> found = owned(PyObject_GetAttr(reinterpret_cast<PyObject*>(Py_TYPE(owner)), *name_));
    if (Py_TYPE(found.get()) == &PyMemberDescr_Type) {
      const PyMemberDef* member = reinterpret_cast<PyMemberDescrObject*>(found.get())->d_member;
      if (member->type == T_OBJECT_EX) offset_ = member->offset;
    }
    type_ = Py_TYPE(owner);
  }

  PyObject** name_;
  PyTypeObject* type_ = nullptr;  // a class of this package lives as long as the process
  Py_ssize_t offset_ = 0;
};
Slot left_slot(&name_left), replaced_slot(&name_replaced);

// One parameter that moves, and what the rule remembers of it. All borrowed.
struct Moving {
  Tensor* param;
  PyObject* state;  // a dict
};

class Update {
 public:
  Update(PyObject* params, PyObject* state, PyObject* layout) : params_(params), state_(state), layout_(layout) {}

  // False where Python must make the step: the first of a parameter, half precision, a parameter that left its model.
  bool gather() {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(params_); ++i) {
      PyObject* object = PyList_GET_ITEM(params_, i);
      if (!is_tensor(object)) return false;
      auto* param = reinterpret_cast<Tensor*>(object);
      const Ref<> left = left_slot.get(object);
      if (left != Py_None) return false;
      if (is_none(param->grad)) continue;
      if (!is_tensor(param->grad) || is_on_device(param->array) || is_on_device(reinterpret_cast<Tensor*>(param->grad)->array)) return false;
      auto* value = reinterpret_cast<PyArrayObject*>(param->array);
      auto* grad = reinterpret_cast<PyArrayObject*>(reinterpret_cast<Tensor*>(param->grad)->array);
      if (PyArray_TYPE(value) != PyArray_TYPE(grad)) return false;
      PyObject* state = PyDict_GetItemWithError(state_, object);
      if (state == nullptr && PyErr_Occurred()) throw PythonError();
      if (state == nullptr || !PyDict_CheckExact(state)) return false;
      moving_.push_back({param, state});
    }
    return true;
  }

  // Set aside what is held by nobody else, and not very large: it can be stepped where it lies.
  void set_aside(const StepInPlace& rule) {
    if (!rule) return;
    size_t left = 0;
    for (const Moving& moving : moving_) {
      Own own{moving, {}, 0};
      if (is_own(rule, own)) own_.push_back(own);
      else moving_[left++] = moving;
    }
    moving_.resize(left);
  }

  void step_in_place(StepInPlace& rule) const {
    if (own_.empty()) return;
    const Ref<> sequence = owned(PyLong_FromLongLong(++last_sequence));
    Ref<> step;
    long long last = 0;
    for (const Own& own : own_) {
      if (own.step != last) step = owned(PyLong_FromLongLong(last = own.step));
      if (own.step > 0 && PyDict_SetItem(own.moving.state, name_step, step) < 0) throw PythonError();
      replaced_slot.set(reinterpret_cast<PyObject*>(own.moving.param), sequence);
      rule.run(own.arrays, double(own.step));
    }
  }

  bool nothing_moves() const { return moving_.empty(); }

  // The arguments of the kernel, by the layout, and `tail`. False as in `gather`.
  bool arrange(PyObject* tail) {
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(layout_); ++k) {
      PyObject* name = PyTuple_GET_ITEM(layout_, k);
      if (name == Py_None) {
        arguments_.push_back(shared(Py_None));
        continue;
      }
      Ref<> list = owned(PyList_New(Py_ssize_t(moving_.size())));
      for (size_t i = 0; i < moving_.size(); ++i) {
        Ref<> entry = entry_of(moving_[i], name);
        if (entry.get() == nullptr) return false;
        PyList_SET_ITEM(list.get(), Py_ssize_t(i), entry.release());
      }
      arguments_.push_back(std::move(list));
    }
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(tail); ++k) arguments_.push_back(shared(PyTuple_GET_ITEM(tail, k)));
    return true;
  }

  Ref<> run(PyObject* kernel) const {
    std::vector<PyObject*> given;
    for (const Ref<>& argument : arguments_) given.push_back(argument.get());
    return owned(PyObject_Vectorcall(kernel, given.data(), given.size(), nullptr));
  }

  // Put the results in their places: the new values of the parameters first, then the fields of the layout in order. Tensors
  // are made before anything is replaced, so that nothing is half done when memory runs out.
  void put_back(PyObject* results) {
    std::vector<PyObject*> fields;
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(layout_); ++k) {
      PyObject* name = PyTuple_GET_ITEM(layout_, k);
      if (name != Py_None && name != name_params && name != name_grads && name != name_step && name != name_nothing) fields.push_back(name);
    }
    if (!PyTuple_Check(results) || PyTuple_GET_SIZE(results) < Py_ssize_t(1 + fields.size())) wrong();
    std::vector<Ref<>> made;
    for (size_t k = 0; k <= fields.size(); ++k) {
      PyObject* column = PyTuple_GET_ITEM(results, Py_ssize_t(k));
      if (!PyList_Check(column) || PyList_GET_SIZE(column) != Py_ssize_t(moving_.size())) wrong();
      for (Py_ssize_t i = 0; i < PyList_GET_SIZE(column); ++i) {
        PyObject* array = PyList_GET_ITEM(column, i);
        if (!PyArray_Check(array)) wrong();
        made.push_back(k == 0 ? shared(array) : owned(make_tensor(Py_NewRef(array), false, nullptr)));
      }
    }
    for (size_t i = 0; i < moving_.size(); ++i) {
      const auto [param, state] = moving_[i];
      Py_SETREF(param->array, Py_NewRef(made[i].get()));
      const Ref<> sequence = owned(PyLong_FromLongLong(++last_sequence));
      replaced_slot.set(reinterpret_cast<PyObject*>(param), sequence);
      for (size_t k = 0; k < fields.size(); ++k)
        if (PyDict_SetItem(state, fields[k], made[(k + 1) * moving_.size() + i]) < 0) throw PythonError();
      if (counts_steps_ && PyDict_SetItem(state, name_step, PyList_GET_ITEM(steps_.get(), Py_ssize_t(i))) < 0) throw PythonError();
    }
  }

 private:
  // An array that belongs to this object alone, with memory of its own.
  static PyArrayObject* own_array(PyObject* holder, Py_ssize_t holders) {
    auto* array = reinterpret_cast<PyArrayObject*>(reinterpret_cast<Tensor*>(holder)->array);
    const bool own = Py_REFCNT(holder) == holders && Py_REFCNT(array) == 1 && has_own_memory(array);
    return own ? array : nullptr;
  }

  struct Own {
    Moving moving;
    PyArrayObject* arrays[4];
    long long step;
  };

  bool is_own(const StepInPlace& rule, Own& own) const {
    auto* object = reinterpret_cast<PyObject*>(own.moving.param);
    own.arrays[0] = own_array(object, Py_REFCNT(object));
    own.arrays[1] = reinterpret_cast<PyArrayObject*>(reinterpret_cast<Tensor*>(own.moving.param->grad)->array);
    int count = 2;
    for (Py_ssize_t k = 2; k < PyTuple_GET_SIZE(layout_); ++k) {
      PyObject* name = PyTuple_GET_ITEM(layout_, k);
      if (name == Py_None || name == name_nothing) continue;
      PyObject* found = PyDict_GetItemWithError(own.moving.state, name);
      if (found == nullptr && PyErr_Occurred()) throw PythonError();
      if (found == nullptr) return false;
      if (name == name_step) {
        if (!PyLong_CheckExact(found)) return false;
        own.step = PyLong_AsLongLong(found) + 1;
        if (own.step == 0 && PyErr_Occurred()) throw PythonError();
        continue;
      }
      if (count == 4 || !is_tensor(found)) return false;
      own.arrays[count++] = own_array(found, 1);
    }
    for (int i = 0; i < count; ++i)
      if (own.arrays[i] == nullptr) return false;
    return count == rule.arrays() && rule.fits(own.arrays);
  }

  [[noreturn]] static void wrong() {
    PyErr_SetString(PyExc_TypeError, "[update_group] the kernel returned something else");
    throw PythonError();
  }

  // Without an object where the state has not the usual form.
  Ref<> entry_of(const Moving& moving, PyObject* name) {
    if (name == name_params) return shared(moving.param->array);
    if (name == name_grads) return shared(reinterpret_cast<Tensor*>(moving.param->grad)->array);
    if (name == name_nothing) return shared(Py_None);
    PyObject* found = PyDict_GetItemWithError(moving.state, name);
    if (found == nullptr && PyErr_Occurred()) throw PythonError();
    if (found == nullptr) return {};
    if (name == name_step) {
      if (!PyLong_CheckExact(found)) return {};
      const long long step = PyLong_AsLongLong(found);
      if (step == -1 && PyErr_Occurred()) throw PythonError();
      if (!counts_steps_) steps_ = owned(PyList_New(0));
      counts_steps_ = true;
      Ref<> next = owned(PyLong_FromLongLong(step + 1));
      if (PyList_Append(steps_, next) < 0) throw PythonError();
      return next;
    }
    if (!is_tensor(found) || is_on_device(reinterpret_cast<Tensor*>(found)->array)) return {};
    return shared(reinterpret_cast<Tensor*>(found)->array);
  }

  PyObject *params_, *state_, *layout_;
  std::vector<Moving> moving_;
  std::vector<Own> own_;
  std::vector<Ref<>> arguments_;
  Ref<> steps_;
  bool counts_steps_ = false;
};

// Whether an option stays what it is for as long as it is the same object.
bool is_fixed(PyObject* value) {
  if (value == Py_None || PyFloat_CheckExact(value) || PyLong_CheckExact(value) || PyBool_Check(value) || PyUnicode_CheckExact(value)) return true;
  if (!PyTuple_CheckExact(value)) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value); ++i)
    if (!is_fixed(PyTuple_GET_ITEM(value, i))) return false;
  return true;
}

// The field of an object, which it must have.
PyObject* field(PyObject* fields, PyObject* name) {
  PyObject* found = PyDict_GetItemWithError(fields, name);
  if (found == nullptr && !PyErr_Occurred()) PyErr_SetObject(PyExc_AttributeError, name);
  if (found == nullptr) throw PythonError();
  return found;
}

// update_group(params, state, layout, kernel, tail) -> whether the step was made
PyObject* call_update_group(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    if (count != 5 || !PyList_CheckExact(args[0]) || !PyDict_CheckExact(args[1]) || !PyTuple_CheckExact(args[2]) || !PyTuple_CheckExact(args[4])) {
      PyErr_SetString(PyExc_TypeError, "[update_group] takes a list, a dict, a tuple, a kernel and a tuple");
      return nullptr;
    }
    return PyBool_FromLong(update_group(args[0], args[1], args[2], args[3], args[4]));
  });
}

PyMethodDef functions[] = {{"update_group", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(call_update_group)), METH_FASTCALL,
                            "update_group($module, params, state, layout, kernel, tail, /)\n--\n\n"
                            "Make the step of an optimiser; False where Python must. See extensor.optim.optimizer."},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool update_group(PyObject* params, PyObject* state, PyObject* layout, PyObject* kernel, PyObject* tail) {
  Update update(params, state, layout);
  if (!update.gather()) return false;
  StepInPlace rule(kernel, tail);
  update.set_aside(rule);
  if (!update.nothing_moves()) {
    if (!update.arrange(tail)) return false;
    const Ref<> results = update.run(kernel);
    if (results == Py_NotImplemented) return false;
    update.put_back(results);
  }
  update.step_in_place(rule);
  return true;
}

bool GroupCalls::Call::holds_for(PyObject* now) const {
  if (group != now || options.empty() || size_t(PyDict_GET_SIZE(now)) * 2 != options.size()) return false;
  PyObject *key, *value;
  Py_ssize_t place = 0;
  size_t i = 0;
  while (PyDict_Next(now, &place, &key, &value)) {
    if (options[i] != key || (key != name_params && options[i + 1] != value)) return false;
    i += 2;
  }
  return true;
}

void GroupCalls::ask(size_t place, PyObject* group, PyObject* call_of) {
  Call call;
  call.told = owned(PyObject_CallOneArg(call_of, group));
  PyObject* told = call.told.get();
  const bool is_call = PyTuple_CheckExact(told) && PyTuple_GET_SIZE(told) == 3 && PyTuple_CheckExact(PyTuple_GET_ITEM(told, 0)) && PyTuple_CheckExact(PyTuple_GET_ITEM(told, 2));
  if (told != Py_None && !is_call) {
    PyErr_SetString(PyExc_TypeError, "[update_group] an optimiser tells a layout, a kernel and a tuple, or None");
    throw PythonError();
  }
  call.group = shared(group);
  PyObject *key, *value;
  Py_ssize_t at = 0;
  bool fixed = true;
  while (PyDict_Next(group, &at, &key, &value)) {
    fixed &= key == name_params || is_fixed(value);
    call.options.push_back(shared(key));
    call.options.push_back(shared(value));
  }
  if (!fixed) call.options.clear();
  if (place == calls_.size()) calls_.push_back(std::move(call));
  else calls_[place] = std::move(call);
}

void GroupCalls::step(PyObject* parts) {
  PyObject* optimizer = PyTuple_GET_ITEM(parts, 0);
  const Ref<> fields = owned(PyObject_GenericGetDict(optimizer, nullptr));
  const Ref<> groups = shared(field(fields, name_groups)), state = shared(field(fields, name_state));
  if (!PyList_CheckExact(groups.get()) || !PyDict_CheckExact(state.get())) {
    PyErr_SetString(PyExc_TypeError, "[update_group] param_groups must be a list and state a dict");
    throw PythonError();
  }
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(groups.get()); ++i) {
    const Ref<> group = shared(PyList_GET_ITEM(groups.get(), i));
    bool made = false;
    if (PyDict_CheckExact(group.get()) && field(fields, name_rounding) == Py_None) {
      if (size_t(i) >= calls_.size() || !calls_[size_t(i)].holds_for(group)) ask(size_t(i), group, PyTuple_GET_ITEM(parts, 1));
      const Ref<> told = shared(calls_[size_t(i)].told.get()), params = shared(field(group, name_params));
      if (told != Py_None && PyList_CheckExact(params.get()))
        made = update_group(params, state, PyTuple_GET_ITEM(told.get(), 0), PyTuple_GET_ITEM(told.get(), 1), PyTuple_GET_ITEM(told.get(), 2));
    }
    if (!made) owned(PyObject_CallOneArg(PyTuple_GET_ITEM(parts, 2), group));
  }
}

bool bind_update(PyObject* module) {
  name_params = PyUnicode_InternFromString("params");
  name_grads = PyUnicode_InternFromString("grads");
  name_step = PyUnicode_InternFromString("step");
  name_nothing = PyUnicode_InternFromString("nothing");
  name_left = PyUnicode_InternFromString("_left");
  name_replaced = PyUnicode_InternFromString("_replaced");
  name_groups = PyUnicode_InternFromString("param_groups");
  name_rounding = PyUnicode_InternFromString("rounding");
  name_state = PyUnicode_InternFromString("state");
  return PyModule_AddFunctions(module, functions) == 0;
}

}  // namespace extensor::recorder
