#include "kernels/optim/unscale.hpp"

#include <atomic>
#include <limits>

#include "core/threads.hpp"
#include "kernels/convert/convert.hpp"

namespace extensor {
namespace {

constexpr int64_t block = 1024;
constexpr double element_ns = 0.15;

// The results of a block, which is in the cache, are tested without a branch.
template <class T>
bool divide(const T* from, T* to, int64_t n, T scale) {
  constexpr T most = std::numeric_limits<T>::max();
  for (int64_t i = 0; i < n; ++i) to[i] = from[i] / scale;
  unsigned char bad = 0;
  for (int64_t i = 0; i < n; ++i) bad = static_cast<unsigned char>(bad | !((to[i] < 0 ? -to[i] : to[i]) <= most));
  return bad == 0;
}

template <class Run>
bool all_blocks(int64_t n, const Run& run) {
  std::atomic<bool> finite{true};
  parallel_for((n + block - 1) / block, double(block) * element_ns, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin * block; at < end * block && at < n; at += block)
      if (!run(at, at + block < n ? block : n - at)) finite.store(false, std::memory_order_relaxed);
  });
  return finite;
}

}  // namespace

bool unscale(DType from_dtype, const void* from, void* to, int64_t n, double scale) {
  if (from_dtype == DType::float64) {
    return all_blocks(n, [&](int64_t at, int64_t length) {
      return divide(static_cast<const double*>(from) + at, static_cast<double*>(to) + at, length, scale);
    });
  }
  float* out = static_cast<float*>(to);
  if (from_dtype == DType::float32) {
    return all_blocks(
        n, [&](int64_t at, int64_t length) { return divide(static_cast<const float*>(from) + at, out + at, length, float(scale)); });
  }
  const ConvertFunction widen = EXTENSOR_SELECT(find_conversion)(from_dtype, DType::float32);
  return all_blocks(n, [&](int64_t at, int64_t length) {
    widen(static_cast<const uint16_t*>(from) + at, out + at, length);
    return divide(out + at, out + at, length, float(scale));
  });
}

}  // namespace extensor
