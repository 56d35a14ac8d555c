#include "kernels/loss/ctc.hpp"

#include <algorithm>
#include <cmath>

#include "core/threads.hpp"
#include "core/workspace.hpp"

namespace extensor {
namespace {

constexpr double never = -1e30, hardly = -1e29;

// log(exp(a) + exp(b) + exp(c)); nan beside a nan.
double added(double a, double b, double c) {
  const double top = std::max(std::max(a, b), c);
  if (top < hardly && a == a && b == b && c == c) return never;
  return top + std::log(std::exp(a - top) + std::exp(b - top) + std::exp(c - top));
}

// One sequence of a batch.
template <class T>
struct Sequence {
  const CtcPaths& paths;
  int64_t n;
  const T* x;
  const int64_t* labels;
  const unsigned char* jumps;
  int64_t length, count;

  Sequence(const CtcPaths& all, int64_t n, const void* x)
      : paths(all), n(n), x(static_cast<const T*>(x)), labels(all.labels + n * all.states), jumps(all.jumps + n * all.states),
        length(all.lengths[n]), count(all.counts[n]) {}

  double seen(int64_t t, int64_t s) const {
    const double found = double(x[(t * paths.batch + n) * paths.classes + labels[s]]);
    return found < never ? never : found;
  }
  bool is_end(int64_t s) const { return s == 2 * count || s == 2 * count - 1; }

  // The sum over all paths that reach each state at each time of the sequence: (length, states).
  void reach(double* alphas) const {
    const int64_t states = paths.states;
    for (int64_t s = 0; s < states; ++s) alphas[s] = s < std::min<int64_t>(2 * count + 1, 2) ? seen(0, s) : never;
    for (int64_t t = 1; t < length; ++t) {
      const double* before = alphas + (t - 1) * states;
      double* now = alphas + t * states;
      for (int64_t s = 0; s < states; ++s)
        now[s] = added(before[s], s > 0 ? before[s - 1] : never, s > 1 && jumps[s] ? before[s - 2] : never) + seen(t, s);
    }
  }

  double loss(const double* alphas) const {
    if (length == 0) return count > 0 ? -never : 0.0;
    const double* last = alphas + (length - 1) * paths.states;
    const int64_t end = 2 * count;
    return -added(end < paths.states ? last[end] : never, end > 0 ? last[end - 1] : never, never);
  }
};

template <class T>
void losses_of(const CtcPaths& paths, const void* x, double* losses) {
  parallel_for(paths.batch, double(paths.times * paths.states) * 30, [&](int64_t begin, int64_t end) {
    Workspace<double> alphas(std::max<int64_t>(paths.times, 1) * paths.states);
    for (int64_t n = begin; n < end; ++n) {
      const Sequence<T> sequence(paths, n, x);
      if (sequence.length > 0) sequence.reach(alphas.data());
      losses[n] = sequence.loss(alphas.data());
    }
  });
}

template <class T>
void shares_of(const CtcPaths& paths, const double* rates, const void* x, double* out) {
  const int64_t states = paths.states;
  std::fill(out, out + paths.times * paths.batch * paths.classes, 0.0);
  parallel_for(paths.batch, double(paths.times * states) * 70, [&](int64_t begin, int64_t end) {
    Workspace<double> space((paths.times + 3) * states);
    double *alphas = space.data(), *ahead = alphas + paths.times * states, *next = ahead + states, *gone = next + states;
    for (int64_t n = begin; n < end; ++n) {
      const Sequence<T> sequence(paths, n, x);
      if (sequence.length == 0) continue;
      sequence.reach(alphas);
      const double loss = sequence.loss(alphas), level = loss > -hardly ? 0.0 : loss;
      for (int64_t s = 0; s < states; ++s) ahead[s] = sequence.is_end(s) ? 0.0 : never;
      for (int64_t t = sequence.length - 1; t >= 0; --t) {
        if (t + 1 < sequence.length) {
          for (int64_t s = 0; s < states; ++s) gone[s] = ahead[s] + sequence.seen(t + 1, s);
          for (int64_t s = 0; s < states; ++s)
            next[s] = added(gone[s], s + 1 < states ? gone[s + 1] : never, s + 2 < states && sequence.jumps[s + 2] ? gone[s + 2] : never);
          std::swap(ahead, next);
        }
        double* row = out + (t * paths.batch + n) * paths.classes;
        for (int64_t s = 0; s < states; ++s) {
          const double sum = alphas[t * states + s] + ahead[s] + level;
          row[sequence.labels[s]] += -std::exp(sum > 1 ? 1.0 : sum) * rates[n];
        }
      }
    }
  });
}

}  // namespace

void ctc_losses(DType dtype, const CtcPaths& paths, const void* x, double* losses) {
  if (dtype == DType::float32) losses_of<float>(paths, x, losses);
  else losses_of<double>(paths, x, losses);
}

void ctc_shares(DType dtype, const CtcPaths& paths, const double* rates, const void* x, double* out) {
  if (dtype == DType::float32) shares_of<float>(paths, rates, x, out);
  else shares_of<double>(paths, rates, x, out);
}

}  // namespace extensor
