// Every elementwise function and gradient of one variable on every finite float32, beside float64 (reference.cpp).
//
//   every_float32 [--stride N] [--between LOW HIGH] [name...]
//
// prints a line per function and instruction set: name, set, largest error in ulp of the exact value, where, what was computed,
// what is exact, and how many results were nan or infinite where they should not be, or the other way round.
#include <array>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "kernels/elementwise/elementwise.hpp"
#include "reference.hpp"

using extensor::BlockFunction;
using extensor::ElementwiseTable;

namespace {

float low = 0, high = INFINITY;  // the sizes to look at

struct Set {
  const char* name;
  const ElementwiseTable& (*table)();
};
const Set sets[] = {{"avx2", extensor::avx2::elementwise_table}, {"avx512", extensor::avx512::elementwise_table}};
constexpr int most_sets = 2;
// Those that this processor can run; the kernels of a wider one give the same bits (tests/kernels/test_isa_bits.py).
const int set_count = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                              __builtin_cpu_supports("avx512vl")
                          ? 2
                          : 1;

struct Worst {
  double error = 0;
  float x = 0, got = 0;
  double exact = 0;
  long long wrong = 0;   // special values
  float wrong_x = 0;
};
using Worsts = std::array<Worst, most_sets>;

constexpr double largest_float = 3.4028234663852886e38;

// One over the unit of the last place that float32 has at e, in float64.
inline double per_ulp(double e) {
  int64_t bits;
  std::memcpy(&bits, &e, sizeof bits);
  const int64_t exponent = bits & 0x7ff0000000000000, least = int64_t(1023 - 126) << 52;
  const int64_t inverse_bits = 0x7fe0000000000000 - (exponent < least ? least : exponent);  // of a power of two
  double inverse;
  std::memcpy(&inverse, &inverse_bits, sizeof inverse);
  return inverse * 0x1p23;
}

// The largest error in ulp: the distance from the exact value in units of the last place that float32 has there. -1 if there
// are infinities or nan.
double largest_error(const float* __restrict got, const double* __restrict exact) {
  double largest = 0, special = 0;
#pragma omp simd reduction(max : largest, special)
  for (int64_t i = 0; i < block; ++i) {
    const double e = exact[i], y = double(got[i]);
    const double error = std::fabs(y - e) * per_ulp(e);
    largest = error > largest ? error : largest;
    const double odd = std::fabs(e) <= largest_float && std::fabs(y) <= largest_float ? 0.0 : 1.0;
    special = odd > special ? odd : special;
  }
  return special > 0 ? -1 : largest;
}

// The same of one number. Beyond the largest number infinity is right where rounding gives it, and one float below infinity
// and infinity are neighbours. Special values have the error 0 if they are equal, and -1 if not.
double error_of(float got, double exact) {
  const float rounded = float(exact);
  const double size = std::fabs(exact);
  if (std::fabs(rounded) <= largest_float && std::fabs(got) <= largest_float) return std::fabs(double(got) - exact) * per_ulp(exact);
  if (got == rounded || (got != got && rounded != rounded)) return 0;
  const bool beside = std::fabs(double(got)) >= largest_float && size >= 3.4028233e38 && size < 3.4028239e38 && (got > 0) == (exact > 0);
  return beside ? 0 : -1;
}

BlockFunction find(const ElementwiseTable& table, const char* name) {
  for (int i = 0; i < table.count; ++i)
    if (std::strcmp(table.kernels[i].name, name) == 0) return table.kernels[i].float32;
  std::fprintf(stderr, "no kernel %s\n", name);
  std::exit(1);
}

struct Subject {
  const Reference* reference;
  BlockFunction kernels[most_sets];
};

void compare(const Subject& subject, const float* x, const double* exact, Worst* worst) {
  alignas(64) float got[block];
  const float upstream = float(subject.reference->upstream);
  for (int set = 0; set < set_count; ++set) {
    const void* two[] = {&upstream, x};
    const int64_t steps[] = {0, 1};
    void* out[] = {got};
    const int64_t strides[] = {0, 0, 0};
    const int skipped = subject.reference->inputs == 2 ? 0 : 1;
    subject.kernels[set](block, two + skipped, steps + skipped, out, subject.reference->scalars, 1, strides);
    Worst& mine = worst[set];
    const double largest = largest_error(got, exact);
    if (largest >= 0 && largest <= mine.error) continue;
    for (int64_t i = 0; i < block; ++i) {
      const double error = error_of(got[i], exact[i]);
      if (error < 0) {
        if (mine.wrong++ == 0) mine.wrong_x = x[i];
      } else if (error > mine.error) {
        mine.error = error, mine.x = x[i], mine.got = got[i], mine.exact = exact[i];
      }
    }
  }
}

// The numbers of `block` patterns from `begin` on, and those with the other sign.
void try_block(const std::vector<Subject>& subjects, uint64_t begin, uint64_t stride, Worsts* worst) {
  alignas(64) float x[block], minus_x[block];
  alignas(64) double exact[block];
  static thread_local Block plus, minus;
  bool nothing = true;
  for (int64_t i = 0; i < block; ++i) {
    const uint64_t pattern = begin + uint64_t(i) * stride;
    const uint32_t bits = pattern < 0x7f800000u ? uint32_t(pattern) : 0;  // infinities and nan stand in the table of edges
    std::memcpy(&x[i], &bits, sizeof bits);
    const bool within = x[i] >= low && x[i] <= high;
    nothing &= !within;
    x[i] = within ? x[i] : low;
    minus_x[i] = -x[i];
    plus.x[i] = x[i], minus.x[i] = minus_x[i];
  }
  if (nothing) return;
  fill(plus), fill(minus);
  for (size_t which = 0; which < subjects.size(); ++which) {
    const Subject& subject = subjects[which];
    const Parity parity = subject.reference->parity;
    subject.reference->values(plus, exact);
    compare(subject, x, exact, worst[which].data());
    if (parity == Parity::none) subject.reference->values(minus, exact);
    else if (parity == Parity::odd)
      for (double& value : exact) value = -value;
    compare(subject, minus_x, exact, worst[which].data());
  }
}

void measure(const std::vector<Subject>& subjects, uint64_t stride) {
  std::vector<Worsts> total(subjects.size());
  std::mutex mutex;
  std::atomic<uint64_t> next{0};
  const uint64_t piece = uint64_t(block) * 1024 * stride, all = 0x7f800000u;
  const auto work = [&] {
    std::vector<Worsts> mine(subjects.size());
    for (;;) {
      const uint64_t begin = next.fetch_add(piece);
      if (begin >= all) break;
      if (begin / piece % 32 == 0) std::fprintf(stderr, "  %3.0f %%\n", 100.0 * double(begin) / double(all));
      for (uint64_t at = begin; at < begin + piece && at < all; at += uint64_t(block) * stride) try_block(subjects, at, stride, mine.data());
    }
    const std::lock_guard<std::mutex> guard(mutex);
    for (size_t which = 0; which < subjects.size(); ++which)
      for (int set = 0; set < set_count; ++set) {
        Worst& sum = total[which][size_t(set)];
        const Worst& part = mine[which][size_t(set)];
        const long long wrong = sum.wrong + part.wrong;
        const float wrong_x = sum.wrong > 0 ? sum.wrong_x : part.wrong_x;
        if (part.error > sum.error) sum = part;
        sum.wrong = wrong, sum.wrong_x = wrong_x;
      }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < std::thread::hardware_concurrency(); ++i) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  for (size_t which = 0; which < subjects.size(); ++which)
    for (int set = 0; set < set_count; ++set) {
      const Worst& w = total[which][size_t(set)];
      std::printf("%s %s %.4f %.9g %.9g %.17g %lld %.9g\n", subjects[which].reference->name, sets[set].name, w.error, double(w.x), double(w.got),
                  w.exact, w.wrong, double(w.wrong_x));
    }
}

}  // namespace

int main(int count, char** arguments) {
  uint64_t stride = 1;
  std::vector<std::string> wanted;
  for (int i = 1; i < count; ++i) {
    if (std::strcmp(arguments[i], "--stride") == 0 && i + 1 < count) stride = std::strtoull(arguments[++i], nullptr, 10);
    else if (std::strcmp(arguments[i], "--between") == 0 && i + 2 < count) low = std::strtof(arguments[++i], nullptr), high = std::strtof(arguments[++i], nullptr);
    else wanted.emplace_back(arguments[i]);
  }
  std::vector<Subject> subjects;
  for (int i = 0; i < reference_count; ++i) {
    bool chosen = wanted.empty();
    for (const std::string& name : wanted) chosen |= name == references[i].name;
    if (!chosen) continue;
    Subject subject{&references[i], {}};
    for (int set = 0; set < set_count; ++set) subject.kernels[set] = find(sets[set].table(), references[i].name);
    subjects.push_back(subject);
  }
  measure(subjects, stride == 0 ? 1 : stride);
}
