// See metric.hpp. Compiled once per instruction set.
#include "kernels/loss/metric.hpp"

#include "core/threads.hpp"
#include "kernels/reduce/row_sums.hpp"

namespace extensor::EXTENSOR_ISA {
namespace {

template <class T>
EXTENSOR_INLINE T larger_than_zero(T x) {
  return x < T(0) ? T(0) : x;  // nan stays
}

// What passes a margin: all of it, nothing, or the nan of a row that has one.
template <class T>
EXTENSOR_INLINE T passed(T upstream, T short_of, T least) {
  return short_of >= least ? upstream : short_of < least ? T(0) : short_of;
}

// |x - y + eps|
template <class T>
T distance(int64_t n, const T* x, const T* y, T eps) {
  const Vec<T> least{double(eps)};
  return T(__builtin_sqrt(double(T(sum_vectors<T>(n, [&](int64_t i, int64_t count) EXTENSOR_INLINE_LAMBDA {
    const Wide<T> d = (load_wide(x + i, count) - load_wide(y + i, count)) + least;
    const Wide<T> squares = d * d;
    if (count == wide_lanes<T>) return squares;
    T lanes[wide_lanes<T>];
    store_wide(lanes, squares, wide_lanes<T>);
    return load_wide(lanes, count);  // without the eps of lanes that do not exist
  })))));
}

// How far a row is from its margin, and how its gradient is shared.
template <class T>
struct Row {
  T near, far, swapped, share, short_of;

  Row(const Triplets& s, const T* anchor, const T* positive, const T* negative) {
    near = distance(s.width, anchor, positive, T(s.eps));
    far = distance(s.width, anchor, negative, T(s.eps));
    swapped = s.swap ? distance(s.width, positive, negative, T(s.eps)) : T(0);
    share = s.swap && swapped < far ? T(1) : s.swap && swapped == far ? T(0.5) : T(0);
    const T least = !s.swap || far != far ? far : swapped != swapped || swapped < far ? swapped : far;
    short_of = T(s.margin) + near - least;
  }
};

template <class T>
void triplet(const Triplets& s, const T* anchor, const T* positive, const T* negative, T* losses) {
  parallel_for(s.rows, double(s.width) * 2 * metric_element_ns + 20, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const int64_t at = r * s.width;
      losses[r] = larger_than_zero(Row<T>(s, anchor + at, positive + at, negative + at).short_of);
    }
  });
}

template <class T>
void triplet_backward(const Triplets& s, const T* upstream, int64_t step, const T* anchor, const T* positive, const T* negative,
                      T* const* grads) {
  parallel_for(s.rows, double(s.width) * 5 * metric_element_ns + 20, [&](int64_t begin, int64_t end) {
    const Vec<T> eps{double(T(s.eps))};
    for (int64_t r = begin; r < end; ++r) {
      const int64_t at = r * s.width;
      const Row<T> row(s, anchor + at, positive + at, negative + at);
      const T each = passed(upstream[r * step], row.short_of, T(0));
      const auto length = [](T found) { return Vec<T>(double(found == T(0) ? T(1) : found)); };
      const Vec<T> near = length(row.near), far = length(row.far), swapped = length(row.swapped);
      const Vec<T> to_near_by{double(each)}, to_far_by{double(each * (T(1) - row.share))}, to_swapped_by{double(each * row.share)};
      for_each_vector<T>(s.width, [&](int64_t i, int64_t count) EXTENSOR_INLINE_LAMBDA {
        const Vec<T> a = load_first(anchor + at + i, count), p = load_first(positive + at + i, count), n = load_first(negative + at + i, count);
        const Vec<T> to_near = to_near_by * (((a - p) + eps) / near), to_far = to_far_by * (((a - n) + eps) / far);
        const Vec<T> to_swapped = s.swap ? to_swapped_by * (((p - n) + eps) / swapped) : Vec<T>(0.0);
        if (grads[0] != nullptr) store_first(grads[0] + at + i, to_near - to_far, count);
        if (grads[1] != nullptr) store_first(grads[1] + at + i, -to_near - to_swapped, count);
        if (grads[2] != nullptr) store_first(grads[2] + at + i, to_far + to_swapped, count);
      });
    }
  });
}

// The cosine of two rows, and what it was divided by: the squared lengths and their geometric mean.
template <class T>
struct Cosine {
  T aa, bb, both, c;

  Cosine(const Cosines& s, const T* a, const T* b) {
    const auto sums = sum_several<T, 3>(s.width, [&](int64_t i, int64_t count, Wide<T>(&values)[3]) EXTENSOR_INLINE_LAMBDA {
      const Wide<T> x = load_wide(a + i, count), y = load_wide(b + i, count);
      values[0] = x * x, values[1] = y * y, values[2] = x * y;
    });
    aa = T(sums.of[0]) + T(s.least), bb = T(sums.of[1]) + T(s.least);
    both = T(__builtin_sqrt(double(T(aa * bb))));
    c = T(sums.of[2]) / both;
  }
};

template <class T>
void cosine(const Cosines& s, const T* a, const T* b, const T* t, T* losses) {
  parallel_for(s.rows, double(s.width) * metric_element_ns + 20, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const T c = Cosine<T>(s, a + r * s.width, b + r * s.width).c;
      losses[r] = t[r] == T(1) ? T(1) - c : larger_than_zero(c - T(s.margin));
    }
  });
}

template <class T>
void cosine_backward(const Cosines& s, const T* upstream, int64_t step, const T* a, const T* b, const T* t, T* const* grads) {
  parallel_for(s.rows, double(s.width) * 3 * metric_element_ns + 20, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const T *x = a + r * s.width, *y = b + r * s.width;
      const Cosine<T> row(s, x, y);
      const T arriving = upstream[r * step];
      const Vec<T> each{double(t[r] == T(1) ? -arriving : passed(arriving, row.c, T(s.margin)))};
      const Vec<T> c{double(row.c)}, aa{double(row.aa)}, bb{double(row.bb)}, both{double(row.both)};
      for_each_vector<T>(s.width, [&](int64_t i, int64_t count) EXTENSOR_INLINE_LAMBDA {
        const Vec<T> u = load_first(x + i, count), v = load_first(y + i, count);
        if (grads[0] != nullptr) store_first(grads[0] + r * s.width + i, each * (v / both - c * u / aa), count);
        if (grads[1] != nullptr) store_first(grads[1] + r * s.width + i, each * (u / both - c * v / bb), count);
      });
    }
  });
}

template <class T>
constexpr MetricFunctions<T> functions = {triplet<T>, triplet_backward<T>, cosine<T>, cosine_backward<T>};

}  // namespace

const MetricTable& metric_table() {
  static constexpr MetricTable table = {functions<float>, functions<double>};
  return table;
}

}  // namespace extensor::EXTENSOR_ISA
