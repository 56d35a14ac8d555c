// The formulas as functions over blocks of elements. Compiled once per instruction set.
#include <utility>

#include "core/partial.hpp"
#include "core/simd.hpp"
#include "kernels/elementwise/convert.hpp"
#include "kernels/elementwise/elementwise.hpp"
#include "kernels/elementwise/losses.hpp"
#include "kernels/elementwise/updates.hpp"
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

// Where the results of a block go. Their elements are of type S, which may be narrower than the T they are computed in.
struct Targets {
  char* out[max_elementwise_outputs];
};
template <class S, class T> EXTENSOR_INLINE void put_vector(const Targets& to, int output, int64_t at, Vec<T> value) {
  S* const place = reinterpret_cast<S*>(to.out[output]) + at;
  if constexpr (std::is_same_v<S, T>) store(place, value);
  else store_narrowed(place, value);
}
template <class S, class T> EXTENSOR_INLINE void put(const Targets& to, int64_t at, Vec<T> value) { put_vector<S>(to, 0, at, value); }
template <class S, class T> EXTENSOR_INLINE void put(const Targets& to, int64_t at, Mask<T> value) {
  store_mask(reinterpret_cast<uint8_t*>(to.out[0]) + at, value);
}
template <class S, class T> EXTENSOR_INLINE void put(const Targets& to, int64_t at, Pair<T> value) {
  put_vector<S>(to, 0, at, value.first);
  put_vector<S>(to, 1, at, value.second);
}
template <class S, class T> EXTENSOR_INLINE void put(const Targets& to, int64_t at, Triple<T> value) {
  put_vector<S>(to, 0, at, value.first);
  put_vector<S>(to, 1, at, value.second);
  put_vector<S>(to, 2, at, value.third);
}
// The first `count` elements of a vector of results.
template <class T> EXTENSOR_INLINE void put_part(const Targets& to, int64_t at, int64_t count, Vec<T> value) {
  store_first(reinterpret_cast<T*>(to.out[0]) + at, value, count);
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

// A vector of an input whose one element stands for all. Apart from the addresses of the inputs: the compiler holds
// those in registers only as long as nothing points at them.
template <int index, class T, bool is_mask> struct Same {
  alignas(vector_bytes) std::conditional_t<is_mask, uint8_t, T> same[Vec<T>::lanes];
};

// Elements of one or two bytes that do not fill a vector: `count` of them, and copies of the first up to a vector; or `count` alone.
// Functions of their own where there are no instructions for it: there are hundreds of formulas.
#if defined(__AVX512BW__)
template <int lanes, class Element> EXTENSOR_INLINE void copy_padded(const Element* from, int64_t count, Element* to) {
  const __mmask16 there = __mmask16((1u << count) - 1);
  if constexpr (sizeof(Element) == 2) {
    int16_t first;
    std::memcpy(&first, from, sizeof first);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm256_mask_loadu_epi16(_mm256_set1_epi16(first), there, from));
  } else {
    const __m128i all = _mm_mask_loadu_epi8(_mm_set1_epi8(char(*from)), there, from);
    std::memcpy(to, &all, lanes);
  }
}
template <int size> EXTENSOR_INLINE void copy_some(const char* from, int64_t count, char* to) {
  const __mmask16 there = __mmask16((1u << count) - 1);
  if constexpr (size == 2) _mm256_mask_storeu_epi16(to, there, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
  else _mm_mask_storeu_epi8(to, there, _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}
#else
template <int lanes, class Element> __attribute__((noinline)) void copy_padded(const Element* from, int64_t count, Element* to) {
  for (int lane = 0; lane < lanes; ++lane) to[lane] = from[lane < count ? lane : 0];
}
template <int size> EXTENSOR_INLINE void copy_some(const char* from, int64_t count, char* to) { std::memcpy(to, from, size_t(size * count)); }
#endif

// Input number `index` of a block: a vector of elements at a time, or the same vector again and again. Its elements are
// of type S, or bytes for a mask; one that stands for all is given in T.
template <int index, class T, class S, bool is_mask> struct Input {
  using Element = std::conditional_t<is_mask, uint8_t, S>;
  static constexpr int lanes = Vec<T>::lanes;
  static constexpr bool is_narrow = !is_mask && !std::is_same_v<S, T>;
  const Element* at;
  const T* one;  // what stands for all, if one element does
  int64_t step;  // 0 if it does

  EXTENSOR_INLINE void open(const void* data, int64_t elements, Same<index, T, is_mask>& vector) {
    at = static_cast<const Element*>(data);
    step = elements * lanes;
    one = nullptr;
    if (elements != 0) return;
    if constexpr (is_mask) {
      std::memset(vector.same, *at, sizeof vector.same);
      at = vector.same;
    } else {
      store(vector.same, Vec<T>(double(*static_cast<const T*>(data))));
      one = vector.same;
      at = reinterpret_cast<const Element*>(vector.same);
    }
  }
  static EXTENSOR_INLINE auto read(const Element* from) {
    if constexpr (is_mask) return load_mask<T>(from);
    else if constexpr (is_narrow) return load_widened(from);
    else return load(from);
  }
  EXTENSOR_INLINE auto get(int vector) const { return read(at + vector * step); }
  // The same where elements are narrow, and one that stands for all is not: `all` is that one.
  EXTENSOR_INLINE auto get(int vector, Vec<T> all) const {
    if constexpr (is_narrow) return step == 0 ? all : get(vector);
    else return get(vector);
  }
  EXTENSOR_INLINE bool is_single() const { return is_narrow && one != nullptr; }
  EXTENSOR_INLINE Vec<T> single() const { return is_single() ? load(one) : Vec<T>(0.0); }
  EXTENSOR_INLINE void advance(int vectors) { at += vectors * step; }
  EXTENSOR_INLINE void skip(int64_t elements) { at += step == 0 ? 0 : elements; }
  // Fewer elements than a vector, padded with copies of the first of them.
  EXTENSOR_INLINE auto get_part(int64_t count) const {
    if (step == 0) return get(0, single());
    if constexpr (is_mask || is_narrow) {
      Element padded[lanes];
      copy_padded<lanes>(at, count, padded);
      return read(padded);
    } else {
      return load_first(at, count, *at);
    }
  }
};

// All inputs and scalars of one formula, and the loop over a block.
template <class T, class S, const auto& formula, unsigned masks, int unroll, class InputIndices, class ScalarIndices>
struct Block;

template <class T, class S, const auto& formula, unsigned masks, int unroll, int... input, int... scalar>
struct Block<T, S, formula, masks, unroll, std::integer_sequence<int, input...>, std::integer_sequence<int, scalar...>>
    : Input<input, T, S, (masks >> input) & 1>... {
  static constexpr int lanes = Vec<T>::lanes;
  template <int index> using At = Input<index, T, S, (masks >> index) & 1>;
  struct Sames : Same<input, T, (masks >> input) & 1>... {};
  using Result = decltype(formula(At<input>().get(0)..., (static_cast<void>(scalar), Vec<T>())...));

  static constexpr int64_t item = Outputs<Result>::is_mask ? 1 : sizeof(S);
  static constexpr bool is_narrow = !std::is_same_v<S, T>;

  // `count` elements from element `at` on, fewer than a vector.
  static __attribute__((noinline)) void run_part(const Block& block, const Vec<T>* constants, int64_t at, int64_t count,
                                                 const Targets& to) {
    (void)constants;
    const Result result = formula(block.At<input>::get_part(count)..., constants[scalar]...);
    if constexpr (std::is_same_v<S, T> && !Outputs<Result>::is_mask) {
      put_part(to, at, count, result);
    } else {
      alignas(vector_bytes) char padded[max_elementwise_outputs][vector_bytes];
      put<S>(Targets{{padded[0], padded[1], padded[2]}}, 0, result);
      for (int i = 0; i < Outputs<Result>::count; ++i) {
        copy_some<item>(padded[i], count, to.out[i] + item * at);
      }
    }
  }

  static void run(int64_t n, const void* const* in, const int64_t* steps, void* const* out, const double* scalars,
                  int64_t rows, const int64_t* row_strides) {
    const Vec<T> constants[sizeof...(scalar) + 1] = {Vec<T>(scalars[scalar])..., Vec<T>(0.0)};
    const char* from[] = {static_cast<const char*>(in[input])...};
    Targets to;
    for (int i = 0; i < Outputs<Result>::count; ++i) to.out[i] = static_cast<char*>(out[i]);
    for (;;) {
      Block block;
      Sames sames;
      (block.At<input>::open(from[input], steps[input], sames), ...);
      run_row(n, block, constants, to);
      if (--rows == 0) return;
      ((from[input] += row_strides[input]), ...);
      for (int i = 0; i < Outputs<Result>::count; ++i) to.out[i] += row_strides[sizeof...(input)];
    }
  }

  // As many groups of `together` vectors as there are from element i on; returns the element behind them.
  template <int together, bool may_be_single = false>
  static EXTENSOR_INLINE int64_t run_vectors(int64_t i, int64_t n, Block& block, const Vec<T>* constants, const Targets& to) {
    (void)constants;
    const Vec<T> all[] = {may_be_single ? block.At<input>::single() : Vec<T>(0.0)...};
    for (; i + together * lanes <= n; i += together * lanes) {
#pragma GCC unroll 4
      for (int vector = 0; vector < together; ++vector) {
        if constexpr (may_be_single) put<S>(to, i + vector * lanes, formula(block.At<input>::get(vector, all[input])..., constants[scalar]...));
        else put<S>(to, i + vector * lanes, formula(block.At<input>::get(vector)..., constants[scalar]...));
      }
      (block.At<input>::advance(together), ...);
    }
    return i;
  }

  static EXTENSOR_INLINE void run_row(int64_t n, Block& block, const Vec<T>* constants, const Targets& to) {
    (void)constants;
    int64_t i = 0;
    // Stores that straddle cache lines are slow: a long block first runs up to a boundary.
    const int64_t lead = static_cast<int64_t>(-reinterpret_cast<uintptr_t>(to.out[0]) % (lanes * item)) / item;
    if (!Outputs<Result>::is_mask && n >= 64 * lanes && lead > 0) {
      const Block copy = block;
      run_part(copy, constants, 0, lead, Targets(to));
      (block.At<input>::skip(lead), ...);
      i = lead;
    }
    if ((block.At<input>::is_single() || ...)) i = run_vectors<2, true>(i, n, block, constants, to);
    else i = run_vectors<unroll>(i, n, block, constants, to);
    // Another copy of the formula for the vectors that are left pays if they may be several, and it is short.
    if constexpr (unroll > 2 || is_narrow) {
      i = run_vectors<1, is_narrow>(i, n, block, constants, to);
    } else if constexpr (unroll == 2) {
      if (i + lanes <= n) {
        const Block copy = block;
        run_part(copy, constants, i, lanes, Targets(to));
        (block.At<input>::advance(1), ...);
        i += lanes;
      }
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

template <class T, class S, const auto& formula, int inputs, int scalars, unsigned masks, int unroll>
using BlockOf = Block<T, S, formula, masks, unroll, std::make_integer_sequence<int, inputs>, std::make_integer_sequence<int, scalars>>;

// Blocks of 16-bit elements, for formulas so short that to convert whole blocks before and after would cost more.
template <class S, const auto& formula, int inputs, int scalars, unsigned masks, int unroll>
constexpr BlockFunction half_block() {
  if constexpr (converts_halves && unroll == 4 && scalars <= 2) return BlockOf<float, S, formula, inputs, scalars, masks, unroll>::run;
  else return nullptr;
}

template <const auto& formula, int inputs, int scalars, unsigned masks, int unroll>
constexpr ElementwiseKernel describe(const char* name, double cost, bool part) {
  using Single = BlockOf<float, float, formula, inputs, scalars, masks, unroll>;
  using Double = BlockOf<double, double, formula, inputs, scalars, masks, unroll>;
  using Result = Outputs<typename Single::Result>;
  return {name,        inputs,      Result::count, scalars, cost, masks, Result::is_mask, part,
          Single::run, Double::run, half_block<Float16, formula, inputs, scalars, masks, unroll>(),
          half_block<BFloat16, formula, inputs, scalars, masks, unroll>()};
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
