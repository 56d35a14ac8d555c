// Every elementwise function and gradient of one variable on every finite float32, beside float64 (reference.cpp).
//
//   every_float32 [--stride N] [--between LOW HIGH] [name...]
//
// prints a line per function and instruction set: name, set, largest error in ulp of the exact value, where, what was computed,
// what is exact, and how many results were nan or infinite where they should not be, or the other way round.
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

constexpr int64_t block = 4096;
float low = -INFINITY, high = INFINITY;  // where to look

struct Set {
  const char* name;
  const ElementwiseTable& (*table)();
};
const Set sets[] = {{"avx2", extensor::avx2::elementwise_table}, {"avx512", extensor::avx512::elementwise_table}};
constexpr int set_count = 2;

struct Worst {
  double error = 0;
  float x = 0, got = 0;
  double exact = 0;
  long long wrong = 0;   // special values
  float wrong_x = 0;
};

// Errors in ulp: the distance from the exact value in units of the last place that float32 has there. Beyond the largest
// number infinity is right where rounding gives it. Special values have the error 0 if they are equal, and -1 if not.
void errors(const float* __restrict got, const double* __restrict exact, double* __restrict out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const double e = exact[i], a = std::fabs(e);
    const float rounded = float(e);
    uint64_t bits;
    std::memcpy(&bits, &a, sizeof bits);
    const uint64_t exponent = bits & 0x7ff0000000000000u, least = uint64_t(1023 - 126) << 52;
    const uint64_t unit_bits = exponent < least ? least : exponent;
    const uint64_t inverse_bits = 0x7fe0000000000000u - unit_bits;  // of a power of two
    double inverse;
    std::memcpy(&inverse, &inverse_bits, sizeof inverse);
    const double error = std::fabs(double(got[i]) - e) * inverse * 0x1p23;
    const bool special = !(std::fabs(rounded) <= 3.4028234663852886e38f) || !(std::fabs(got[i]) <= 3.4028234663852886e38f);
    const bool same = got[i] == rounded || (got[i] != got[i] && rounded != rounded);
    // One float below infinity and infinity are neighbours.
    const bool beside = std::fabs(double(got[i])) >= 3.4028234663852886e38 && a >= 3.4028233e38 && a < 3.4028239e38 && (got[i] > 0) == (e > 0);
    out[i] = special ? (same || beside ? 0.0 : -1.0) : error;
  }
}

BlockFunction find(const ElementwiseTable& table, const char* name) {
  for (int i = 0; i < table.count; ++i)
    if (std::strcmp(table.kernels[i].name, name) == 0) return table.kernels[i].float32;
  std::fprintf(stderr, "no kernel %s\n", name);
  std::exit(1);
}

void try_block(const Reference& reference, const BlockFunction* kernels, uint64_t begin, uint64_t stride, Worst* worst) {
  const auto number = [](uint64_t pattern) {
    float value;
    const uint32_t low_bits = uint32_t(pattern);
    std::memcpy(&value, &low_bits, sizeof value);
    return value;
  };
  const float first = number(begin), last = number(begin + (block - 1) * stride);
  if ((first < low && last < low) || (first > high && last > high)) return;  // numbers rise or fall with their patterns
  alignas(64) float x[block], got[block];
  alignas(64) double wide[block], exact[block], error[block];
  for (int64_t i = 0; i < block; ++i) {
    uint32_t pattern = uint32_t(begin + uint64_t(i) * stride);
    if ((pattern & 0x7f800000u) == 0x7f800000u) pattern = 0;  // infinities and nan stand in the table of edges
    std::memcpy(&x[i], &pattern, sizeof pattern);
    x[i] = x[i] >= low && x[i] <= high ? x[i] : 1.0f;
  }
  for (int64_t i = 0; i < block; ++i) wide[i] = x[i];
  reference.values(wide, exact, block);
  const float upstream = float(reference.upstream);
  for (int set = 0; set < set_count; ++set) {
    const void* two[] = {&upstream, x};
    const int64_t steps[] = {0, 1};
    void* out[] = {got};
    const int64_t strides[] = {0, 0, 0};
    const bool gradient = reference.inputs == 2;
    kernels[set](block, gradient ? two : two + 1, gradient ? steps : steps + 1, out, reference.scalars, 1, strides);
    errors(got, exact, error, block);
    double largest = 0, smallest = 0;
    for (int64_t i = 0; i < block; ++i) {
      largest = error[i] > largest ? error[i] : largest;
      smallest = error[i] < smallest ? error[i] : smallest;
    }
    Worst& mine = worst[set];
    if (largest <= mine.error && smallest >= 0) continue;
    for (int64_t i = 0; i < block; ++i) {
      if (error[i] < 0) {
        if (mine.wrong++ == 0) mine.wrong_x = x[i];
      } else if (error[i] > mine.error) {
        mine.error = error[i], mine.x = x[i], mine.got = got[i], mine.exact = exact[i];
      }
    }
  }
}

void measure(const Reference& reference, uint64_t stride) {
  BlockFunction kernels[set_count];
  for (int set = 0; set < set_count; ++set) kernels[set] = find(sets[set].table(), reference.name);
  Worst total[set_count];
  std::mutex mutex;
  std::atomic<uint64_t> next{0};
  const uint64_t piece = uint64_t(block) * 256 * stride, all = uint64_t(1) << 32;
  const auto work = [&] {
    Worst mine[set_count];
    for (;;) {
      const uint64_t begin = next.fetch_add(piece);
      if (begin >= all) break;
      for (uint64_t at = begin; at < begin + piece && at < all; at += uint64_t(block) * stride) try_block(reference, kernels, at, stride, mine);
    }
    const std::lock_guard<std::mutex> guard(mutex);
    for (int set = 0; set < set_count; ++set) {
      const long long wrong = total[set].wrong + mine[set].wrong;
      const float wrong_x = total[set].wrong > 0 ? total[set].wrong_x : mine[set].wrong_x;
      if (mine[set].error > total[set].error) total[set] = mine[set];
      total[set].wrong = wrong, total[set].wrong_x = wrong_x;
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < std::thread::hardware_concurrency(); ++i) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  for (int set = 0; set < set_count; ++set) {
    const Worst& w = total[set];
    std::printf("%s %s %.4f %.9g %.9g %.17g %lld %.9g\n", reference.name, sets[set].name, w.error, double(w.x), double(w.got), w.exact, w.wrong,
                double(w.wrong_x));
  }
  std::fflush(stdout);
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
  for (int i = 0; i < reference_count; ++i) {
    bool chosen = wanted.empty();
    for (const std::string& name : wanted) chosen |= name == references[i].name;
    if (chosen) measure(references[i], stride == 0 ? 1 : stride);
  }
}
