// The formulas as functions over blocks of elements. Compiled once per instruction set.
#include <utility>

#include "core/simd.hpp"
#include "kernels/elementwise/convert.hpp"
#include "kernels/elementwise/elementwise.hpp"
#include "kernels/elementwise/slopes.hpp"

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

template <class T> EXTENSOR_INLINE void put(void* first, void*, int64_t at, Vec<T> value) {
  store(static_cast<T*>(first) + at, value);
}
template <class T> EXTENSOR_INLINE void put(void* first, void*, int64_t at, Mask<T> value) {
  store_mask(static_cast<uint8_t*>(first) + at, value);
}
template <class T> EXTENSOR_INLINE void put(void* first, void* second, int64_t at, Pair<T> value) {
  store(static_cast<T*>(first) + at, value.first);
  store(static_cast<T*>(second) + at, value.second);
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
    Element padded[lanes];
    for (int lane = 0; lane < lanes; ++lane) padded[lane] = at[lane < count ? lane : 0];
    return read<T>(padded);
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

  // `count` elements, fewer than a vector, through padded copies.
  static __attribute__((noinline)) void run_part(const Block& block, const Vec<T>* constants, int64_t count, char* first,
                                                 char* second) {
    alignas(vector_bytes) char padded[2][vector_bytes];
    (void)constants;
    put(padded[0], padded[1], 0, formula(block.At<input>::get_part(count)..., constants[scalar]...));
    std::memcpy(first, padded[0], static_cast<size_t>(item * count));
    if (second != nullptr) std::memcpy(second, padded[1], static_cast<size_t>(item * count));
  }

  static void run(int64_t n, const void* const* in, const int64_t* steps, void* const* out, const double* scalars) {
    Block block;
    (block.At<input>::open(in[input], steps[input]), ...);
    const Vec<T> constants[sizeof...(scalar) + 1] = {Vec<T>(scalars[scalar])..., Vec<T>(0.0)};
    char* const first = static_cast<char*>(out[0]);
    char* const second = Outputs<Result>::count > 1 ? static_cast<char*>(out[1]) : nullptr;

    int64_t i = 0;
    // Stores that straddle cache lines are slow: a long block first runs up to a boundary.
    const int64_t lead = static_cast<int64_t>(-reinterpret_cast<uintptr_t>(first) % vector_bytes) / item;
    if (!Outputs<Result>::is_mask && n >= 32 * lanes && lead > 0) {
      const Block copy = block;
      run_part(copy, constants, lead, first, second);
      (block.At<input>::skip(lead), ...);
      i = lead;
    }
    for (; i + unroll * lanes <= n; i += unroll * lanes) {
      for (int vector = 0; vector < unroll; ++vector) {
        put(first, second, i + vector * lanes, formula(block.At<input>::get(vector)..., constants[scalar]...));
      }
      (block.At<input>::advance(unroll), ...);
    }
    for (; i + lanes <= n; i += lanes) {
      put(first, second, i, formula(block.At<input>::get(0)..., constants[scalar]...));
      (block.At<input>::advance(1), ...);
    }
    if (i == n) return;
    const Block copy = block;
    run_part(copy, constants, n - i, first + item * i, second == nullptr ? nullptr : second + item * i);
  }
};

#define MASKED(name, inputs, scalars, masks, cost, parameters, ...) \
  constexpr auto name##_formula = [] parameters { return __VA_ARGS__; };
#include "kernels/elementwise/formulas.inc"
#undef MASKED

template <class T, const auto& formula, int inputs, int scalars, unsigned masks, int unroll>
using BlockOf = Block<T, formula, masks, unroll, std::make_integer_sequence<int, inputs>, std::make_integer_sequence<int, scalars>>;

template <const auto& formula, int inputs, int scalars, unsigned masks, int unroll>
constexpr ElementwiseKernel describe(const char* name, double cost) {
  using Single = BlockOf<float, formula, inputs, scalars, masks, unroll>;
  using Double = BlockOf<double, formula, inputs, scalars, masks, unroll>;
  using Result = Outputs<typename Single::Result>;
  return {name, inputs, Result::count, scalars, cost, masks, Result::is_mask, Single::run, Double::run};
}

// Long formulas overlap by themselves; the longest gain from two at a time, which the compiler interleaves.
#define MASKED(name, inputs, scalars, masks, cost, parameters, ...) \
  describe<name##_formula, inputs, scalars, masks, (cost < 0.2 ? 4 : cost < 1.0 ? 1 : cost < 2.0 ? 2 : 1)>(#name, cost),
constexpr ElementwiseKernel kernels[] = {
#include "kernels/elementwise/formulas.inc"
};
#undef MASKED

}  // namespace

const ElementwiseTable& elementwise_table() {
  static constexpr ElementwiseTable table = {kernels,        sizeof kernels / sizeof kernels[0],
                                             widen_float16,  widen_bfloat16,
                                             narrow_float16, narrow_bfloat16};
  return table;
}

}  // namespace extensor::EXTENSOR_ISA
