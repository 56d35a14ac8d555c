#include "kernels/optim/norm.hpp"

#include <vector>

#include "core/threads.hpp"

namespace extensor {
namespace {

constexpr int64_t block = 4096;
constexpr int lanes = 8;

template <class T>
double squares_of_block(const T* x, int64_t n) {
  double sums[lanes] = {};
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    for (int k = 0; k < lanes; ++k) sums[k] += double(x[i + k]) * double(x[i + k]);
  for (; i < n; ++i) sums[i % lanes] += double(x[i]) * double(x[i]);
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

template <class T>
double squares_of(const T* x, int64_t n) {
  if (n <= block) return squares_of_block(x, n);
  std::vector<double> parts(size_t((n + block - 1) / block));
  parallel_for(int64_t(parts.size()), double(block) * 0.2, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) {
      const int64_t at = part * block;
      parts[size_t(part)] = squares_of_block(x + at, at + block < n ? block : n - at);
    }
  });
  double total = 0;
  for (const double part : parts) total += part;
  return total;
}

template <class T>
void scale_each(const T* from, T* to, int64_t n, T factor) {
  parallel_for((n + block - 1) / block, double(block) * 0.2, [&](int64_t begin, int64_t end) {
    const int64_t last = end * block < n ? end * block : n;
    for (int64_t i = begin * block; i < last; ++i) to[i] = from[i] * factor;
  });
}

}  // namespace

double sum_of_squares(DType dtype, const void* x, int64_t n) {
  return dtype == DType::float32 ? squares_of(static_cast<const float*>(x), n) : squares_of(static_cast<const double*>(x), n);
}

void scale_by(DType dtype, const void* from, void* to, int64_t n, double factor) {
  if (dtype == DType::float32) scale_each(static_cast<const float*>(from), static_cast<float*>(to), n, float(factor));
  else scale_each(static_cast<const double*>(from), static_cast<double*>(to), n, factor);
}

}  // namespace extensor
