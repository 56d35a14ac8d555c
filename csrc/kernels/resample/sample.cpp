// See sample.hpp. Compiled once per instruction set.
#include "kernels/resample/sample.hpp"

#include "core/simd.hpp"
#include "core/threads.hpp"
#include "core/workspace.hpp"

namespace extensor::EXTENSOR_ISA {
namespace {

// `count` channels of one image, whose pixels and points lie behind each other. Outside is the first pixel, by 0. Where that is no
// number the product is none either: true if there are points with a tap outside, which are done once more.
template <int taps, int count, class T>
EXTENSOR_INLINE bool sample_channels(const Samples& s, const int64_t* positions, const T* weights, const T* pixels, T* y) {
  const int64_t all = s.batch * s.points;
  bool partial = false;
  for (int64_t i = 0; i < s.points; ++i) {
    T sums[count];
    for (int k = 0; k < taps; ++k) {
      const int64_t position = positions[k * all + i];
      const bool outside = position < 0;
      const T* at = pixels + (outside ? 0 : position);
      const T weight = outside ? T(0) : weights[k * all + i];
      for (int c = 0; c < count; ++c) sums[c] = k == 0 ? at[c * s.pixels] * weight : sums[c] + at[c * s.pixels] * weight;
      partial |= outside;
    }
    for (int c = 0; c < count; ++c) y[c * s.points + i] = sums[c];
  }
  return partial;
}

// The points of one channel that have a tap outside.
template <int taps, class T>
void sample_partial(const Samples& s, const int64_t* positions, const T* weights, const T* pixels, T* y) {
  const int64_t all = s.batch * s.points;
  for (int64_t i = 0; i < s.points; ++i) {
    int64_t signs = 0;
    for (int k = 0; k < taps; ++k) signs |= positions[k * all + i];
    if (signs >= 0) continue;
    T sum = T(0);
    for (int k = 0; k < taps; ++k) {
      const int64_t position = positions[k * all + i];
      const T part = position < 0 ? T(0) : pixels[position] * weights[k * all + i];
      sum = k == 0 ? part : sum + part;
    }
    y[i] = sum;
  }
}

template <int taps, class T>
void sample_taps(const Samples& s, const T* image, const T* weights, T* y) {
  constexpr int together = 4;
  const int64_t blocks = (s.channels + together - 1) / together;
  parallel_for(s.batch * blocks, together * sample_ns(s), [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t n = task / blocks, channel = task % blocks * together;
      const int64_t* positions = s.positions + n * s.points;
      const T* by = weights + n * s.points;
      const T* pixels = image + (n * s.channels + channel) * s.pixels;
      T* to = y + (n * s.channels + channel) * s.points;
      const int64_t count = s.channels - channel < together ? s.channels - channel : together;
      bool partial = false;
      if (count == together) partial = sample_channels<taps, together>(s, positions, by, pixels, to);
      else
        for (int64_t c = 0; c < count; ++c) partial = sample_channels<taps, 1>(s, positions, by, pixels + c * s.pixels, to + c * s.points);
      for (int64_t c = 0; partial && c < count; ++c)
        if (!(pixels[c * s.pixels] * T(0) == T(0))) sample_partial<taps>(s, positions, by, pixels + c * s.pixels, to + c * s.points);
    }
  });
}

// The nearest pixel, or the neighbours in two and in three directions.
template <class T>
void sample(const Samples& s, const T* image, const T* weights, T* y) {
  if (s.taps == 1) sample_taps<1>(s, image, weights, y);
  else if (s.taps == 4) sample_taps<4>(s, image, weights, y);
  else sample_taps<8>(s, image, weights, y);
}

template <class T>
void sample_image(const Samples& s, const T* g, const T* weights, T* grad) {
  const int64_t tap = s.batch * s.points;
  parallel_for(s.batch * s.channels, 1.5 * sample_ns(s), [&](int64_t begin, int64_t end) {
    Workspace<double> sums(s.pixels);
    double* const sum = sums.data();
    for (int64_t row = begin; row < end; ++row) {
      const int64_t first = row / s.channels * s.points;
      const T* from = g + row * s.points;
      for (int64_t i = 0; i < s.pixels; ++i) sum[i] = 0;
      for (int64_t k = 0; k < s.taps; ++k) {
        const int64_t* positions = s.positions + k * tap + first;
        const T* weight = weights + k * tap + first;
        for (int64_t i = 0; i < s.points; ++i)
          if (positions[i] >= 0) sum[positions[i]] += double(from[i] * weight[i]);
      }
      T* to = grad + row * s.pixels;
      for (int64_t i = 0; i < s.pixels; ++i) to[i] = T(sum[i]);
    }
  });
}

template <class T>
void sample_weights(const Samples& s, const T* g, const T* image, T* grad) {
  parallel_for(s.taps * s.batch, double(s.points * s.channels), [&](int64_t begin, int64_t end) {
    Workspace<double> sums(s.points);
    double* const sum = sums.data();
    for (int64_t row = begin; row < end; ++row) {
      const int64_t n = row % s.batch;
      const int64_t* positions = s.positions + row * s.points;
      for (int64_t i = 0; i < s.points; ++i) sum[i] = 0;
      for (int64_t c = n * s.channels; c < (n + 1) * s.channels; ++c) {
        const T *from = g + c * s.points, *pixels = image + c * s.pixels;
        for (int64_t i = 0; i < s.points; ++i) sum[i] += double(from[i] * pixels[positions[i] < 0 ? 0 : positions[i]]);
      }
      T* to = grad + row * s.points;
      for (int64_t i = 0; i < s.points; ++i) to[i] = positions[i] < 0 ? T(0) : T(sum[i]);
    }
  });
}

template <class T>
constexpr SampleFunctions<T> functions = {sample<T>, sample_image<T>, sample_weights<T>};

}  // namespace

const SampleTable& sample_table() {
  static constexpr SampleTable table = {functions<float>, functions<double>};
  return table;
}

}  // namespace extensor::EXTENSOR_ISA
