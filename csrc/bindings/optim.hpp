// The step of one parameter in its own memory and in that of its state.
#pragma once

#include "bindings/arrays.hpp"
#include "kernels/elementwise/elementwise.hpp"

namespace extensor {

// The same arithmetic as the kernels sgd_step and adam_step, for arrays that nobody else holds: nothing is allocated.
class StepInPlace {
 public:
  // By the kernel of the rule and the numbers at the end of its arguments.
  StepInPlace(PyObject* kernel, PyObject* tail);

  // Whether there is such a step.
  explicit operator bool() const { return rule_ != Rule::none; }

  // How many arrays it takes: the parameter, the gradient, and what the rule remembers.
  int arrays() const { return rule_ == Rule::adam ? 4 : rule_ == Rule::velocity ? 3 : 2; }

  // False where the arrays are large or of another form.
  bool fits(PyArrayObject* const* arrays) const;

  // For arrays that fit.
  void run(PyArrayObject* const* arrays, double step);

 private:
  const ElementwiseKernel& kernel() const;
  enum class Rule { none, sgd, velocity, adam } rule_ = Rule::none;
  double options_[5];
  bool flags_[2];
  double numbers_[10];  // of the formula, for this step: most parameters of a group have made the same number of steps
  double numbers_step_ = -1;
};

}  // namespace extensor
