// A plan: what the readable body of an op decided for one kind of call, as a list of kernel calls. src/extensor/graph/plans.py
// makes it out of what the body did; here it is kept and repeated.
//
// The values of a call are numbered: first its leaves (see key.hpp), then the results of its steps in order; -1, -2, ... are the
// constants of the plan. A step takes some of them and gives more.
#pragma once

#include <memory>
#include <vector>

#include "bindings/recorder/key.hpp"

namespace extensor::recorder {

struct Step {
  enum Kind : char { kernel, guard, tuple, list } kind;
  const NativeKernel* native;  // or nullptr
  PyObject* reference;         // what computes where that answers NotImplemented
  std::vector<int> arguments;
  int results;      // kernel: how many arrays it returns; 1 is not packed in a tuple
  PyObject* known;  // guard: what the body was told; kernel: the shapes of results that it may have looked at, or None
};

class Plan;
struct LetGo {
  inline void operator()(Plan* plan) const;
};
using HeldPlan = std::unique_ptr<Plan, LetGo>;  // one of its owners

class Plan {
 public:
  // A plan from the tuples that graph/plans.py describes, for calls with `key`. None, or more than there is room for: there is
  // nothing to repeat, the body runs as it is written.
  Plan(const Key& key, Ref<> description);

  bool fits(const Key& key) const {  // by a loop: a call of memcmp costs more than a few words
    if (hash_ != key.hash || words_.size() != size_t(key.word_count)) return false;
    for (int i = 0; i < key.word_count; ++i)
      if (words_[size_t(i)] != key.words[i]) return false;
    return true;
  }

  bool runs_body() const { return description_ == Py_None; }

  // The result of the call. nullptr: with a Python error set, or without where a guard has another answer now. Throws where
  // memory runs out.
  PyObject* run(Op* op, const Key& key) const;

  // What the results would be like (graph/plans.py), as a new reference, if the guards answer as they did; else as in `run`.
  PyObject* outcome(const Key& key) const;

  // With one more owner.
  HeldPlan held() {
    ++owners_;
    return HeldPlan(this);
  }

  long long last_used = 0;

 private:
  friend LetGo;
  class Values;
  bool read_steps(PyObject* steps);
  bool take_step(const Step& step, Values& values) const;
  static Ref<> object_of(int at, const Key& key, const Values& values);
  static Ref<> objects_of(const std::vector<int>& places, const Key& key, const Values& values);
  PyObject* made_result(Op* op, const Key& key, const Values& values) const;
  PyObject* made_node(Op* op, const Key& key, const Values& values) const;

  int owners_ = 1;
  uint64_t hash_ = 0;
  std::vector<uint64_t> words_;
  std::vector<Ref<>> held_;  // what words point to
  Ref<> description_;        // owns what the fields below borrow
  PyObject* constants_ = nullptr;
  std::vector<Step> steps_;
  PyObject* container_ = nullptr;  // None for one tensor; else the class of the results
  std::vector<int> results_;
  PyObject* outcome_ = nullptr;
  bool records_ = false;
  std::vector<int> saved_, edges_;
  PyObject *options_ = nullptr, *shape_ = nullptr, *casts_ = nullptr;
};

void LetGo::operator()(Plan* plan) const {
  if (--plan->owners_ == 0) delete plan;
}

}  // namespace extensor::recorder
