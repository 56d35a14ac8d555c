// Normalisation over rows (layer, RMS), over channels (batch) and over groups of channels, and the gradients.
#pragma once

#include <cstdint>

#include "core/dtype.hpp"
#include "core/isa.hpp"

namespace extensor {

// Rows of n neighbours. `centre` is false for the RMS norm, which keeps the mean. Absent operands are nullptr. x, y and their gradients
// are `stored` as T, or as halves if T is float.
template <class T>
struct RowNorm {
  int64_t rows, n;
  DType stored;
  const void* x;
  const T* weight;
  const T* bias;
  double eps;
  bool centre;
};

// Channels of a dense [batch, channels, inner] tensor. Without training, mean and variance are given.
template <class T>
struct ChannelNorm {
  int64_t batch, channels, inner;
  const T* x;
  const T* weight;
  const T* bias;
  const T* running_mean;
  const T* running_var;
  bool training;
  double momentum, eps;
  const T* added = nullptr;  // a tensor like x that is added to the result,
  bool relu = false;         // and what follows that
};

// The gradient that arrives at such channels: g, or what a relu behind them, and a sum behind that, make of it on the way back.
template <class T>
struct ChannelGradient {
  const T* g;
  const T* passed = nullptr;  // what relu returned: the gradient is 0 where that is not above 0,
  const T* added = nullptr;   // and the sum of g and this one elsewhere;
  T* made = nullptr;          // it is left here, which may be where the gradient of x comes
};

// Groups of neighbouring channels of a dense [batch, channels, inner] tensor.
template <class T>
struct GroupNorm {
  int64_t batch, channels, inner, groups;
  const T* x;
  const T* weight;
  const T* bias;
  double eps;
};

template <class T>
struct NormFunctions {
  void (*rows)(const RowNorm<T>&, void* y);
  // grad_x may be nullptr; so may grad_weight and grad_bias (n values each).
  void (*rows_backward)(const RowNorm<T>&, const void* g, void* grad_x, T* grad_weight, T* grad_bias);
  // new_mean and new_var (one value per channel) may be nullptr.
  void (*channels)(const ChannelNorm<T>&, T* y, T* new_mean, T* new_var);
  // g_mean and g_var, of the new statistics, are nullptr for zeros.
  void (*channels_backward)(const ChannelNorm<T>&, const ChannelGradient<T>& g, const T* g_mean, const T* g_var, T* grad_x,
                            T* grad_weight, T* grad_bias);
};

struct NormTable {
  NormFunctions<float> float32;
  NormFunctions<double> float64;
};
EXTENSOR_PER_ISA(const NormTable& norm_table())

template <class T>
struct GroupNormFunctions {
  void (*forward)(const GroupNorm<T>&, T* y);
  // Gradients that are not wanted are nullptr. `sums` has room for 2 values per element of the batch and channel.
  void (*backward)(const GroupNorm<T>&, const T* g, double* sums, T* grad_x, T* grad_weight, T* grad_bias);
};

struct GroupNormTable {
  GroupNormFunctions<float> float32;
  GroupNormFunctions<double> float64;
};
EXTENSOR_PER_ISA(const GroupNormTable& group_norm_table())

template <class T>
const NormFunctions<T>& norm_functions() {
  const NormTable& table = EXTENSOR_SELECT(norm_table)();
  if constexpr (sizeof(T) == 4) return table.float32;
  else return table.float64;
}

template <class T>
const GroupNormFunctions<T>& group_norm_functions() {
  const GroupNormTable& table = EXTENSOR_SELECT(group_norm_table)();
  if constexpr (sizeof(T) == 4) return table.float32;
  else return table.float64;
}

// Rough time of one element, forward and back.
constexpr double norm_ns = 0.5;

}  // namespace extensor
