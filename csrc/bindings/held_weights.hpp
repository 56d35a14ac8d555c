// Weights that stay as they are over several passes, those over the shards of one step: what a convolution makes of one of
// them is kept for the next call.
#pragma once

#include <memory>

#include "bindings/ref.hpp"
#include "kernels/conv/conv.hpp"
#include "kernels/conv/maps.hpp"

namespace extensor {

// What a convolution of this shape, or its gradient of the input, has made of an array that this thread holds, or room for it;
// nullptr if it does not hold it. Needs the interpreter lock.
std::shared_ptr<KeptWeight> held_weight(PyObject* array, const ConvShape& shape, bool backwards);

// hold_weights(arrays): from now on this thread holds these arrays, and no others.
PyObject* hold_weights(PyObject*, PyObject* arrays);

}  // namespace extensor
