// The step of an optimiser, group by group, without the interpreter where its options are as they were.
#pragma once

#include <vector>

#include "bindings/recorder/objects.hpp"

namespace extensor::recorder {

// Moves the parameters of one group. False where Python must: see extensor.optim.optimizer.
bool update_group(PyObject* params, PyObject* state, PyObject* layout, PyObject* kernel, PyObject* tail);

// How the groups of one optimiser are stepped. What an optimiser says of a group (Optimizer._call_of) follows from the options
// in it alone, so it is asked again only where one of them was replaced.
class GroupCalls {
 public:
  // One step of all groups, each as Optimizer._step_groups makes it; `parts` are the optimiser and its methods _call_of and
  // _step_group_of.
  void step(PyObject* parts);

 private:
  struct Call {
    Ref<> group;
    std::vector<Ref<>> options;  // keys and values; empty where one of them may change without being replaced
    Ref<> told;                  // layout, kernel, tail; None where the rule has no native step
    bool holds_for(PyObject* now) const;
  };
  void ask(size_t place, PyObject* group, PyObject* call_of);
  std::vector<Call> calls_;
};

}  // namespace extensor::recorder
