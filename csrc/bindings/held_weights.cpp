#include "bindings/held_weights.hpp"

#include <cstring>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bindings/exceptions.hpp"

namespace extensor {
namespace {

struct Use {
  ConvShape shape;
  bool backwards;
  std::shared_ptr<KeptWeight> kept;
};

struct HeldWeight {
  Ref<> array;  // held, so that nobody writes to it
  std::vector<Use> uses;
};

using HeldWeights = std::unordered_map<PyObject*, HeldWeight>;

// Of each thread its own: a kept weight is filled without the interpreter lock. A plain pointer, for a thread may end without it.
thread_local HeldWeights* held = nullptr;

}  // namespace

std::shared_ptr<KeptWeight> held_weight(PyObject* array, const ConvShape& shape, bool backwards) {
  if (held == nullptr) return nullptr;
  const auto found = held->find(array);
  if (found == held->end()) return nullptr;
  std::vector<Use>& uses = found->second.uses;
  for (const Use& use : uses)
    if (use.backwards == backwards && std::memcmp(&use.shape, &shape, sizeof(shape)) == 0) return use.kept;
  uses.push_back({shape, backwards, std::make_shared<KeptWeight>()});
  return uses.back().kept;
}

PyObject* hold_weights(PyObject*, PyObject* arrays) {
  return guarded([&] {
    const Ref<> list = owned(PySequence_Fast(arrays, "[hold_weights] arrays must be a sequence"));
    const Py_ssize_t count = PySequence_Fast_GET_SIZE(list.get());
    std::unique_ptr<HeldWeights> next = count > 0 ? std::make_unique<HeldWeights>() : nullptr;
    for (Py_ssize_t i = 0; i < count; ++i) {
      PyObject* array = PySequence_Fast_GET_ITEM(list.get(), i);
      (*next)[array].array = shared(array);
    }
    const std::unique_ptr<HeldWeights> last(std::exchange(held, next.release()));
    return Py_NewRef(Py_None);
  });
}

}  // namespace extensor
