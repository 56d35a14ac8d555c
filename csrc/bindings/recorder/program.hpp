// A program: the kernel calls of a whole function, recorded once, with what it reads and what it leaves behind.
// src/extensor/compile/program.py makes and describes it, and has the same run in Python; here it is repeated without the
// interpreter between the calls.
//
// Values are numbered: first the inputs, then the constants, then the results of the steps in order.
#pragma once

#include <memory>
#include <vector>

#include "bindings/recorder/objects.hpp"
#include "bindings/recorder/update.hpp"
#include "bindings/spare_arrays.hpp"

namespace extensor::recorder {

// A structure of Python objects: of the arguments of a call, or of its result.
struct Tree {
  enum Kind : char { tensor, object, value, list, tuple, dict } kind;
  PyObject* what = Py_None;  // object, value: it; dict: its keys; list, tuple: the class
  int number = -1;           // tensor: of the value; object: of the argument that it is, if it is one
  bool requires_grad = false;
  PyObject* node = Py_None;  // tensor: its history, which nobody can walk again
  std::vector<Tree> children;
};

// What a program reads of the world around it.
struct Input {
  enum Kind : char { argument, leaf, grad, attribute } kind;
  PyObject* owner;  // leaf, grad: the tensor, or the number of the argument; attribute: the object
  PyObject* name;   // of the attribute
  int typenum;
  std::vector<npy_intp> shape;
  int requires_grad;  // 0, 1, or -1 where it does not matter
};

// A leaf that must, or must not, have a gradient when the program starts.
struct GradCondition {
  PyObject* owner;
  bool present;
};

struct Result {
  int typenum;  // -1: None
  std::vector<npy_intp> shape;
};

struct Instruction {
  enum Kind : char { kernel, guard, tuple, list, call, set_grad, update } kind;
  const NativeKernel* native;  // or nullptr
  PyObject* reference;  // kernel: what computes where that answers NotImplemented; call: what is called; set_grad: the leaf
  PyObject* expected;   // guard: its answer; set_grad: before which step the old one goes, or None; update: an optimiser, two of its methods, and the parameters that it moves
  std::vector<int> arguments;
  std::vector<Result> results;
  std::vector<int> releases;  // values that nobody needs afterwards
  bool commits;               // from here on the world has changed, and the program cannot be given up
  GroupCalls groups = {};                // of an update
  std::vector<SpareArrays*> spare = {};  // for each result: arrays like it that nobody holds, or nullptr
  enum Fusion : char { none, product, activation } fusion = none;  // a product that applies the activation; that activation
  int fusion_number = 0;  // what the two have in common
  long long nanoseconds = 0;
};

// What a program leaves behind when all steps are done. They are in the order of `ready`.
struct Effect {
  enum Kind : char { assign, grad, attribute } kind;
  PyObject *owner, *name;
  int value;     // -1: None
  size_t ready;  // a gradient may be left after so many steps already, if somebody listens
};

// A gradient of the step before, whose array the program may use again.
struct OldGrad {
  PyObject* owner;
  SpareArrays* spare;
  size_t at;  // before this step it goes
};

struct Body {
  Op* op;
  PyObject *fn, *code, *defaults;
};

// A Python value that the recording holds as a constant: in a dict, or in a cell, whose key is None.
struct Watched {
  PyObject *holder, *key, *value;
};

struct Program {
  PyObject_HEAD
  PyObject* description;  // owns what the fields below borrow
  Tree* arguments;
  Tree* result;
  std::vector<Input>* inputs;
  std::vector<GradCondition>* grads;
  std::vector<Instruction>* steps;
  std::vector<Effect>* effects;
  std::vector<Body>* bodies;
  std::vector<Watched>* watched;
  std::vector<std::unique_ptr<SpareArrays>>* spare;
  std::vector<SpareArrays*>* spare_of;  // by the number of a value
  std::vector<OldGrad>* old_grads;      // that are replaced and not read, in the order in which they go
  PyObject *constants, *is_valid, *save, *restore;
  int value_count;
  bool records;
  bool is_long;  // some of its kernels run without the interpreter lock
  long long mode, version, runs, timed_runs;
};

// Fills a new program from its description, which it owns. PythonError where that is not one.
void read_description(Program* self, PyObject* description);

}  // namespace extensor::recorder
