// Elements become unsigned keys in their order; keys with their places are sorted digit by digit, or, where only a few are wanted,
// kept in a short sorted list.
#include "kernels/sort/sort.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/threads.hpp"

namespace extensor {
namespace {

constexpr int digit_bits = 11;
constexpr size_t digits = size_t(1) << digit_bits;
constexpr int64_t few = 64;          // so many of a row are found by insertion
constexpr int64_t short_row = 200;   // rows that are not worth counting digits for

template <class T> using Key = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;

template <class T>
Key<T> key_of(T value) {
  constexpr Key<T> top = Key<T>(1) << (sizeof(T) * 8 - 1);
  Key<T> bits;
  std::memcpy(&bits, &value, sizeof bits);
  if constexpr (std::is_integral_v<T>) {
    return bits ^ top;
  } else {
    if (std::isnan(value)) return ~Key<T>(0);
    if (value == T(0)) return top;  // -0 is 0
    return bits & top ? ~bits : bits | top;
  }
}

template <class K>
struct Entry {
  K key;
  uint32_t place;
};

// By the digits of the keys, the last first; places of equal keys stay in order. `other` has as much room.
template <class K>
void sort_entries(std::vector<Entry<K>>& entries, std::vector<Entry<K>>& other) {
  const size_t n = entries.size();
  if (int64_t(n) < short_row) {
    std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.key != b.key ? a.key < b.key : a.place < b.place; });
    return;
  }
  for (int shift = 0; shift < int(sizeof(K) * 8); shift += digit_bits) {
    uint32_t counts[digits] = {};
    for (const auto& entry : entries) ++counts[entry.key >> shift & (digits - 1)];
    if (counts[entries[0].key >> shift & (digits - 1)] == n) continue;
    uint32_t sum = 0;
    for (uint32_t& count : counts) sum += std::exchange(count, sum);
    for (const auto& entry : entries) other[counts[entry.key >> shift & (digits - 1)]++] = entry;
    entries.swap(other);
  }
}

// The k smallest keys, by insertion.
template <class K>
void first_entries(const Entry<K>* entries, size_t n, Entry<K>* kept, size_t k) {
  size_t found = 0;
  for (size_t i = 0; i < n; ++i) {
    if (found == k && entries[i].key >= kept[k - 1].key) continue;
    size_t at = found < k ? found++ : k - 1;
    for (; at > 0 && kept[at - 1].key > entries[i].key; --at) kept[at] = kept[at - 1];
    kept[at] = entries[i];
  }
}

template <class T>
void order_typed(const T* x, int64_t* order, int64_t rows, int64_t n, int64_t k, bool largest_first) {
  using K = Key<T>;
  parallel_for(rows, 50 + double(n) * (k < n && k <= few ? 2.0 : 15.0), [&](int64_t begin, int64_t end) {
    std::vector<Entry<K>> entries(static_cast<size_t>(n)), other(static_cast<size_t>(n));
    for (int64_t row = begin; row < end; ++row) {
      for (int64_t i = 0; i < n; ++i) {
        const K key = key_of(x[row * n + i]);
        entries[size_t(i)] = {largest_first ? K(~key) : key, uint32_t(i)};
      }
      int64_t* to = order + row * k;
      if (k < n && k <= few) first_entries(entries.data(), size_t(n), other.data(), size_t(k));
      else sort_entries(entries, other);
      const Entry<K>* found = k < n && k <= few ? other.data() : entries.data();
      for (int64_t i = 0; i < k; ++i) to[i] = found[i].place;
    }
  });
}

}  // namespace

bool sort_covers(DType dtype) {
  return dtype == DType::float32 || dtype == DType::float64 || dtype == DType::int32 || dtype == DType::int64;
}

void order_rows(DType dtype, const void* x, int64_t* order, int64_t rows, int64_t n, int64_t k, bool largest_first) {
  if (dtype == DType::float32) order_typed(static_cast<const float*>(x), order, rows, n, k, largest_first);
  else if (dtype == DType::float64) order_typed(static_cast<const double*>(x), order, rows, n, k, largest_first);
  else if (dtype == DType::int32) order_typed(static_cast<const int32_t*>(x), order, rows, n, k, largest_first);
  else order_typed(static_cast<const int64_t*>(x), order, rows, n, k, largest_first);
}

}  // namespace extensor
