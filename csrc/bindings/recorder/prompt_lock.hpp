// The interpreter lock, handed back soon.
//
// Long kernels run without the lock. A thread that computes in Python meanwhile keeps it for the interpreter's switch interval, 5 ms,
// and so long the next kernel would wait: a step of a hundred kernels beside a busy thread took twenty times as long. While a program
// runs, the interval is short; the other thread still has the lock whenever a kernel runs.
#pragma once

#include "bindings/recorder/objects.hpp"

namespace extensor::recorder {

// Lives as long as a run, if `wanted`. Runs of several threads may overlap: the first sets the interval, the last puts back what it was,
// unless somebody else has set another one. To be made and ended under the lock.
class PromptLock {
 public:
  explicit PromptLock(bool wanted) : wanted_(wanted) {
    if (!wanted_ || runs++ > 0) return;
    ours = before = interval();
    if (before > shortest) set(shortest), ours = interval();  // which is rounded
  }
  ~PromptLock() {
    if (!wanted_ || --runs > 0 || ours == before) return;
    PyObject *type, *value, *trace;  // of the error that a run may have ended with
    PyErr_Fetch(&type, &value, &trace);
    if (interval() == ours) set(before);
    PyErr_Restore(type, value, trace);
  }
  PromptLock(const PromptLock&) = delete;
  PromptLock& operator=(const PromptLock&) = delete;

 private:
  static constexpr double shortest = 1e-4;
  inline static int runs = 0;
  inline static double before = 0, ours = 0;

  // By the functions of `sys`: what does not work leaves all as it is.
  static double interval() {
    const Ref<> seconds = maybe(call("getswitchinterval", nullptr));
    const double found = seconds.get() == nullptr ? 0.0 : PyFloat_AsDouble(seconds);
    PyErr_Clear();
    return found;
  }
  static void set(double seconds) {
    Py_XDECREF(call("setswitchinterval", PyFloat_FromDouble(seconds)));
    PyErr_Clear();
  }
  static PyObject* call(const char* name, PyObject* argument) {
    PyObject* function = PySys_GetObject(name);
    if (function == nullptr) return nullptr;
    PyObject* found = argument == nullptr ? PyObject_CallNoArgs(function) : PyObject_CallOneArg(function, argument);
    Py_XDECREF(argument);
    return found;
  }

  bool wanted_;
};

}  // namespace extensor::recorder
