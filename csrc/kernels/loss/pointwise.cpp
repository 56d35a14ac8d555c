// Block by block: the domains are checked, the formula is computed and the losses are added up while the elements are
// in the cache. Blocks depend on the size alone, so that any number of threads gives the same bits. Compiled once per
// instruction set.
#include "kernels/loss/pointwise.hpp"

#include <algorithm>
#include <atomic>
#include <vector>

#include "core/threads.hpp"
#include "kernels/convert/stored_rows.hpp"
#include "kernels/reduce/fold.hpp"

namespace extensor::EXTENSOR_ISA {
namespace {

// Short, so that what the processor fetches ahead while it computes is a good part of the next one.
constexpr int64_t block = 512;

template <class T, class Outside>
EXTENSOR_INLINE bool none_of(const T* x, int64_t n, Outside outside) {
  constexpr int lanes = Vec<T>::lanes;
  Mask<T> found = Vec<T>(0.0) != 0.0;
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) found = found || outside(load(x + i));
  if (i < n) found = found || outside(load_first(x + i, n - i, T(1)));  // 1 lies in every domain
  return !any(found);
}

template <class T>
bool all_lie_in(Domain domain, const T* x, int64_t n) {
  switch (domain) {
    case Domain::all: return true;
    case Domain::probabilities: return none_of(x, n, [](Vec<T> v) EXTENSOR_INLINE_LAMBDA { return v < 0.0 || v > 1.0; });
    case Domain::not_negative: return none_of(x, n, [](Vec<T> v) EXTENSOR_INLINE_LAMBDA { return v < 0.0; });
    case Domain::signs: return none_of(x, n, [](Vec<T> v) EXTENSOR_INLINE_LAMBDA { return abs(v) != 1.0; });
  }
  return false;
}

// place(first element, buffer) says where the results of a block go; use(block, results, count) sees them there.
template <class T, class Place, class Use>
bool run_blocks(const PointwiseLoss& loss, Place place, Use use) {
  const ElementwiseKernel& formula = *loss.formula;
  const BlockFunction function = sizeof(T) == 4 ? formula.float32 : formula.float64;
  const int predictions = formula.inputs - 2, targets = formula.inputs - 1;
  std::atomic<bool> inside{true};
  const double block_ns = double(std::min(block, loss.size)) * formula.cost_ns * (sizeof(T) / 4.0);
  parallel_for((loss.size + block - 1) / block, block_ns, [&](int64_t begin, int64_t end) {
    alignas(64) T buffer[block];
    alignas(64) T widened[3][block];
    for (int64_t k = begin; k < end; ++k) {
      const int64_t start = k * block, count = std::min(block, loss.size - start);
      const void* in[3];
      for (int i = 0; i < formula.inputs; ++i) {
        in[i] = static_cast<const T*>(loss.in[i]) + start * loss.steps[i];
        if constexpr (sizeof(T) == 4) {
          if (!is_half(loss.stored) || loss.steps[i] == 0) continue;
          widen_from(loss.stored, static_cast<const uint16_t*>(loss.in[i]) + start, widened[i], count);
          in[i] = widened[i];
        }
      }
      if (!all_lie_in(loss.predictions, static_cast<const T*>(in[predictions]), count) ||
          !all_lie_in(loss.targets, static_cast<const T*>(in[targets]), count)) {
        inside.store(false, std::memory_order_relaxed);
        return;
      }
      T* to = place(start, buffer);
      void* out[] = {to};
      function(count, in, loss.steps, out, loss.scalars, 1, nullptr);
      use(k, to, count);
    }
  });
  return inside.load(std::memory_order_relaxed);
}

template <class T>
bool write(const PointwiseLoss& loss, void* out) {
  const bool narrows = is_half(loss.stored);
  return run_blocks<T>(
      loss, [&](int64_t start, T* buffer) { return narrows ? buffer : static_cast<T*>(out) + start; },
      [&](int64_t k, const T* results, int64_t count) {
        if constexpr (sizeof(T) == 4)
          if (narrows) narrow_to(loss.stored, results, static_cast<uint16_t*>(out) + k * block, count);
      });
}

template <class T>
bool total(const PointwiseLoss& loss, double& total) {
  const int64_t blocks = (loss.size + block - 1) / block;
  double few[16];
  std::vector<double> many(blocks > 16 ? size_t(blocks) : 0);
  double* sums = blocks > 16 ? many.data() : few;
  const bool inside = run_blocks<T>(
      loss, [](int64_t, T* buffer) { return buffer; },
      [&](int64_t k, const T* losses, int64_t count) { sums[k] = fold_row<Add, double>(losses, count); });
  total = 0;
  for (int64_t k = 0; inside && k < blocks; ++k) total += sums[k];
  return inside;
}

}  // namespace

const PointwiseTable& pointwise_table() {
  static constexpr PointwiseTable table = {write<float>, write<double>, total<float>, total<double>};
  return table;
}

}  // namespace extensor::EXTENSOR_ISA
