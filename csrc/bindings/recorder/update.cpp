// The step of an optimiser, for the usual case: every parameter that has a gradient has a state of the usual form. What is
// gathered and put back here in one call, extensor.optim.optimizer does in Python; a test holds the two to the same results.
#include <vector>

#include "bindings/exceptions.hpp"
#include "bindings/optim.hpp"
#include "bindings/recorder/objects.hpp"

namespace extensor::recorder {
namespace {

PyObject *name_params, *name_grads, *name_step, *name_nothing, *name_left, *name_replaced;

// An attribute of a parameter; shared None where it has none.
Ref<> attribute(PyObject* owner, PyObject* name) {
  PyObject* found = PyObject_GetAttr(owner, name);
  if (found != nullptr) return owned(found);
  if (!PyErr_ExceptionMatches(PyExc_AttributeError)) throw PythonError();
  PyErr_Clear();
  return shared(Py_None);
}

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
      const Ref<> left = attribute(object, name_left);
      if (left != Py_None) return false;
      if (param->grad == Py_None) continue;
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

  // Set aside what is small and held by nobody else: it can be stepped where it lies.
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

  void step_in_place(const StepInPlace& rule) const {
    for (const Own& own : own_) {
      const Ref<> step = owned(PyLong_FromLongLong(own.step)), sequence = owned(PyLong_FromLongLong(++last_sequence));
      if (own.step > 0 && PyDict_SetItem(own.moving.state, name_step, step) < 0) throw PythonError();
      if (PyObject_SetAttr(reinterpret_cast<PyObject*>(own.moving.param), name_replaced, sequence) < 0) throw PythonError();
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
      if (PyObject_SetAttr(reinterpret_cast<PyObject*>(param), name_replaced, sequence) < 0) throw PythonError();
      for (size_t k = 0; k < fields.size(); ++k)
        if (PyDict_SetItem(state, fields[k], made[(k + 1) * moving_.size() + i]) < 0) throw PythonError();
      if (counts_steps_ && PyDict_SetItem(state, name_step, PyList_GET_ITEM(steps_.get(), Py_ssize_t(i))) < 0) throw PythonError();
    }
  }

 private:
  // An array that belongs to this object alone, with memory of its own.
  static PyArrayObject* own_array(PyObject* holder, Py_ssize_t holders) {
    auto* array = reinterpret_cast<PyArrayObject*>(reinterpret_cast<Tensor*>(holder)->array);
    const bool own = Py_REFCNT(holder) == holders && Py_REFCNT(array) == 1 && PyArray_CHKFLAGS(array, NPY_ARRAY_OWNDATA);
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

// update_group(params, state, layout, kernel, tail) -> whether the step was made
PyObject* update_group(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    if (count != 5 || !PyList_CheckExact(args[0]) || !PyDict_CheckExact(args[1]) || !PyTuple_CheckExact(args[2]) || !PyTuple_CheckExact(args[4])) {
      PyErr_SetString(PyExc_TypeError, "[update_group] takes a list, a dict, a tuple, a kernel and a tuple");
      return nullptr;
    }
    Update update(args[0], args[1], args[2]);
    if (!update.gather()) Py_RETURN_FALSE;
    const StepInPlace rule(args[3], args[4]);
    update.set_aside(rule);
    if (!update.nothing_moves()) {
      if (!update.arrange(args[4])) Py_RETURN_FALSE;
      const Ref<> results = update.run(args[3]);
      if (results == Py_NotImplemented) Py_RETURN_FALSE;
      update.put_back(results);
    }
    update.step_in_place(rule);
    Py_RETURN_TRUE;
  });
}

PyMethodDef functions[] = {{"update_group", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(update_group)), METH_FASTCALL,
                            "update_group($module, params, state, layout, kernel, tail, /)\n--\n\n"
                            "Make the step of an optimiser; False where Python must. See extensor.optim.optimizer."},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool bind_update(PyObject* module) {
  name_params = PyUnicode_InternFromString("params");
  name_grads = PyUnicode_InternFromString("grads");
  name_step = PyUnicode_InternFromString("step");
  name_nothing = PyUnicode_InternFromString("nothing");
  name_left = PyUnicode_InternFromString("_left");
  name_replaced = PyUnicode_InternFromString("_replaced");
  return PyModule_AddFunctions(module, functions) == 0;
}

}  // namespace extensor::recorder
