// The formulas as functions over blocks of elements. Compiled once per instruction set.
#include <utility>

#include "core/partial.hpp"
#include "core/simd.hpp"
#include "kernels/elementwise/convert.hpp"
#include "kernels/elementwise/elementwise.hpp"
#include "kernels/elementwise/losses.hpp"
#include "kernels/elementwise/powers.hpp"

namespace extensor::EXTENSOR_ISA {
namespace {

template <class Result> struct Outputs;
template <class T> struct Outputs<Vec<T>> {
  static constexpr int count = 1;
  static constexpr bool is_mask = false;
};
template <class T> struct Outputs<Mask<T>> {
  static constexpr int count = 1;
  static constexpr bool is_mask = true;
};
template <class T> struct Outputs<Pair<T>> {
  static constexpr int count = 2;
  static constexpr bool is_mask = false;
};
template <class T> struct Outputs<Triple<T>> {
  static constexpr int count = 3;
  static constexpr bool is_mask = false;
};

// Where the results of a block go.
struct Targets {
  char* out[max_elementwise_outputs];
};
template <class T> EXTENSOR_INLINE void put(const Targets& to, int64_t at, Vec<T> value) {
  store(reinterpret_cast<T*>(to.out[0]) + at, value);
}
template <class T> EXTENSOR_INLINE void put(const Targets& to, int64_t at, Mask<T> value) {
  store_mask(reinterpret_cast<uint8_t*>(to.out[0]) + at, value);
}
template <class T> EXTENSOR_INLINE void put(const Targets& to, int64_t at, Pair<T> value) {
  store(reinterpret_cast<T*>(to.out[0]) + at, value.first);
  store(reinterpret_cast<T*>(to.out[1]) + at, value.second);
}
template <class T> EXTENSOR_INLINE void put(const Targets& to, int64_t at, Triple<T> value) {
  store(reinterpret_cast<T*>(to.out[0]) + at, value.first);
  store(reinterpret_cast<T*>(to.out[1]) + at, value.second);
  store(reinterpret_cast<T*>(to.out[2]) + at, value.third);
}

// The first `count` elements of a vector of results.
template <class T> EXTENSOR_INLINE void put_part(const Targets& to, int64_t at, int64_t count, Vec<T> value) {
  store_first(reinterpret_cast<T*>(to.out[0]) + at, value, count);
}
template <class T> EXTENSOR_INLINE void put_part(const Targets& to, int64_t at, int64_t count, Mask<T> value) {
  uint8_t padded[Vec<T>::lanes];
  store_mask(padded, value);
  std::memcpy(to.out[0] + at, padded, static_cast<size_t>(count));
}
template <class T> EXTENSOR_INLINE void put_part(const Targets& to, int64_t at, int64_t count, Pair<T> value) {
  store_first(reinterpret_cast<T*>(to.out[0]) + at, value.first, count);
  store_first(reinterpret_cast<T*>(to.out[1]) + at, value.second, count);
}
template <class T> EXTENSOR_INLINE void put_part(const Targets& to, int64_t at, int64_t count, Triple<T> value) {
  store_first(reinterpret_cast<T*>(to.out[0]) + at, value.first, count);
  store_first(reinterpret_cast<T*>(to.out[1]) + at, value.second, count);
  store_first(reinterpret_cast<T*>(to.out[2]) + at, value.third, count);
}

template <class T> EXTENSOR_INLINE Vec<T> read(const T* from) { return load(from); }
template <class T> EXTENSOR_INLINE Mask<T> read(const uint8_t* from) { return load_mask<T>(from); }

// Input number `index` of a block: a vector of elements at a time, or the same vector again and again.
// Its elements are of type T, or bytes for a mask.
template <int index, class T, bool is_mask> struct Input {
  using Element = std::conditional_t<is_mask, uint8_t, T>;
  static constexpr int lanes = Vec<T>::lanes;
  Element same[lanes];
  const Element* at;
  int64_t step;

  EXTENSOR_INLINE void open(const void* data, int64_t elements) {
    at = static_cast<const Element*>(data);
    step = elements * lanes;
    if (elements != 0) return;
    for (int lane = 0; lane < lanes; ++lane) same[lane] = *at;
    at = same;
  }
  EXTENSOR_INLINE auto get(int vector) const { return read<T>(at + vector * step); }
  EXTENSOR_INLINE void advance(int vectors) { at += vectors * step; }
  EXTENSOR_INLINE void skip(int64_t elements) { at += step == 0 ? 0 : elements; }
  // Fewer elements than a vector, padded with copies of the first of them.
  EXTENSOR_INLINE auto get_part(int64_t count) const {
    if (step == 0) return read<T>(at);
    if constexpr (is_mask) {
      Element padded[lanes];
      for (int lane = 0; lane < lanes; ++lane) padded[lane] = at[lane < count ? lane : 0];
      return read<T>(padded);
    } else {
      return load_first(at, count, *at);
    }
  }
};

// All inputs and scalars of one formula, and the loop over a block.
template <class T, const auto& formula, unsigned masks, int unroll, class InputIndices, class ScalarIndices>
struct Block;

template <class T, const auto& formula, unsigned masks, int unroll, int... input, int... scalar>
struct Block<T, formula, masks, unroll, std::integer_sequence<int, input...>, std::integer_sequence<int, scalar...>>
    : Input<input, T, (masks >> input) & 1>... {
  static constexpr int lanes = Vec<T>::lanes;
  template <int index> using At = Input<index, T, (masks >> index) & 1>;
  using Result = decltype(formula(At<input>().get(0)..., (static_cast<void>(scalar), Vec<T>())...));

  static constexpr int64_t item = Outputs<Result>::is_mask ? 1 : sizeof(T);

  // `count` elements from element `at` on, fewer than a vector.
  static __attribute__((noinline)) void run_part(const Block& block, const Vec<T>* constants, int64_t at, int64_t count,
                                                 const Targets& to) {
    (void)constants;
    put_part(to, at, count, formula(block.At<input>::get_part(count)..., constants[scalar]...));
  }

  static void run(int64_t n, const void* const* in, const int64_t* steps, void* const* out, const double* scalars) {
    Block block;
    (block.At<input>::open(in[input], steps[input]), ...);
    const Vec<T> constants[sizeof...(scalar) + 1] = {Vec<T>(scalars[scalar])..., Vec<T>(0.0)};
    Targets to;
    for (int i = 0; i < Outputs<Result>::count; ++i) to.out[i] = static_cast<char*>(out[i]);

    int64_t i = 0;
    // Stores that straddle cache lines are slow: a long block first runs up to a boundary.
    const int64_t lead = static_cast<int64_t>(-reinterpret_cast<uintptr_t>(to.out[0]) % vector_bytes) / item;
    if (!Outputs<Result>::is_mask && n >= 32 * lanes && lead > 0) {
      const Block copy = block;
      run_part(copy, constants, 0, lead, Targets(to));
      (block.At<input>::skip(lead), ...);
      i = lead;
    }
    for (; i + unroll * lanes <= n; i += unroll * lanes) {
      for (int vector = 0; vector < unroll; ++vector) {
        put(to, i + vector * lanes, formula(block.At<input>::get(vector)..., constants[scalar]...));
      }
      (block.At<input>::advance(unroll), ...);
    }
    for (; i + lanes <= n; i += lanes) {
      put(to, i, formula(block.At<input>::get(0)..., constants[scalar]...));
      (block.At<input>::advance(1), ...);
    }
    if (i == n) return;
    const Block copy = block;
    run_part(copy, constants, i, n - i, Targets(to));
  }
};

#define ENTRY(name, part, inputs, scalars, masks, cost, parameters, ...) \
  constexpr auto name##_formula = [] parameters { return __VA_ARGS__; };
#include "kernels/elementwise/formulas.inc"
#undef ENTRY

template <class T, const auto& formula, int inputs, int scalars, unsigned masks, int unroll>
using BlockOf = Block<T, formula, masks, unroll, std::make_integer_sequence<int, inputs>, std::make_integer_sequence<int, scalars>>;

template <const auto& formula, int inputs, int scalars, unsigned masks, int unroll>
constexpr ElementwiseKernel describe(const char* name, double cost, bool part) {
  using Single = BlockOf<float, formula, inputs, scalars, masks, unroll>;
  using Double = BlockOf<double, formula, inputs, scalars, masks, unroll>;
  using Result = Outputs<typename Single::Result>;
  return {name, inputs, Result::count, scalars, cost, masks, Result::is_mask, part, Single::run, Double::run};
}

// Long formulas overlap by themselves; the longest gain from two at a time, which the compiler interleaves.
#define ENTRY(name, part, inputs, scalars, masks, cost, parameters, ...) \
  describe<name##_formula, inputs, scalars, masks, (cost < 0.2 ? 4 : cost < 1.0 ? 1 : cost < 2.0 ? 2 : 1)>(#name, cost, part),
constexpr ElementwiseKernel kernels[] = {
#include "kernels/elementwise/formulas.inc"
};
#undef ENTRY

}  // namespace

const ElementwiseTable& elementwise_table() {
  static constexpr ElementwiseTable table = {kernels,        sizeof kernels / sizeof kernels[0],
                                             widen_float16,  widen_bfloat16,
                                             narrow_float16, narrow_bfloat16};
  return table;
}

}  // namespace extensor::EXTENSOR_ISA
