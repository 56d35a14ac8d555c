// Attention, a block of queries at a time: memory is linear in the lengths of the sequences.
#pragma once

#include "core/isa.hpp"
#include "kernels/attention/operands.hpp"

namespace extensor {

struct AttentionTable {
  AttentionFunctions<float> float32;
  AttentionFunctions<double> float64;
};
EXTENSOR_PER_ISA(const AttentionTable& attention_table())

template <class T>
const AttentionFunctions<T>& attention_functions() {
  const AttentionTable& table = EXTENSOR_SELECT(attention_table)();
  if constexpr (sizeof(T) == 4) return table.float32;
  else return table.float64;
}

}  // namespace extensor
