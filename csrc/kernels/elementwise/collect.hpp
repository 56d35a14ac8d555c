// Elements that do not lie one after another, collected so that they do. Strides are in bytes.
#pragma once

#include <cstdint>
#include <cstring>

namespace extensor {

typedef uint16_t Eight __attribute__((vector_size(16)));
typedef uint32_t Four __attribute__((vector_size(16)));
typedef uint64_t Two __attribute__((vector_size(16)));

#if defined(__clang__)
#define EXTENSOR_PICK(a, b, mask, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define EXTENSOR_PICK(a, b, mask, ...) __builtin_shuffle(a, b, mask{__VA_ARGS__})
#endif

template <class Item> inline Item item_at(const char* from) {
  Item item;
  std::memcpy(&item, from, sizeof item);
  return item;
}

// Every second item. Reads between the items, but not behind the last one.
inline int64_t collect_pairs(const char* from, int64_t count, uint32_t* to) {
  int64_t i = 0;
  for (; i + 4 < count; i += 4) {
    const Four low = item_at<Four>(from + i * 8), high = item_at<Four>(from + i * 8 + 16);
    const Four even = EXTENSOR_PICK(low, high, Four, 0, 2, 4, 6);
    std::memcpy(to + i, &even, sizeof even);
  }
  return i;
}
inline int64_t collect_pairs(const char* from, int64_t count, uint64_t* to) {
  int64_t i = 0;
  for (; i + 2 < count; i += 2) {
    const Two low = item_at<Two>(from + i * 16), high = item_at<Two>(from + i * 16 + 16);
    const Two even = EXTENSOR_PICK(low, high, Two, 0, 2);
    std::memcpy(to + i, &even, sizeof even);
  }
  return i;
}

// `rows` rows of `columns` items, to one after another.
template <class Item>
void collect_rows(const char* from, int64_t row_stride, int64_t stride, int64_t rows, int64_t columns, Item* to) {
  constexpr int64_t size = sizeof(Item);
  for (int64_t row = 0; row < rows; ++row, from += row_stride, to += columns) {
    int64_t i = 0;
    if (stride == size && columns >= 16) {
      std::memcpy(to, from, size_t(columns * size));
      continue;
    }
    if (stride == 0) {
      const Item item = item_at<Item>(from);
      for (; i + 8 <= columns; i += 8) {
        const Item items[] = {item, item, item, item, item, item, item, item};
        std::memcpy(to + i, items, sizeof items);
      }
      for (; i < columns; ++i) to[i] = item;
      continue;
    }
    if constexpr (size >= 4) {
      if (stride == 2 * size) i = collect_pairs(from, columns, to);
    }
    for (; i + 4 <= columns; i += 4) {
      const char* const here = from + i * stride;
      const Item items[] = {item_at<Item>(here), item_at<Item>(here + stride), item_at<Item>(here + 2 * stride), item_at<Item>(here + 3 * stride)};
      std::memcpy(to + i, items, sizeof items);
    }
    for (; i < columns; ++i) to[i] = item_at<Item>(from + i * stride);
  }
}

// The items of two vectors in turn: the first halves, the second halves.
inline void interleave(Eight a, Eight b, Eight& low, Eight& high) {
  low = EXTENSOR_PICK(a, b, Eight, 0, 8, 1, 9, 2, 10, 3, 11);
  high = EXTENSOR_PICK(a, b, Eight, 4, 12, 5, 13, 6, 14, 7, 15);
}
inline void interleave(Four a, Four b, Four& low, Four& high) {
  low = EXTENSOR_PICK(a, b, Four, 0, 4, 1, 5);
  high = EXTENSOR_PICK(a, b, Four, 2, 6, 3, 7);
}
inline void interleave(Two a, Two b, Two& low, Two& high) {
  low = EXTENSOR_PICK(a, b, Two, 0, 2);
  high = EXTENSOR_PICK(a, b, Two, 1, 3);
}
template <class Item> struct vector_of { using type = Item; };
template <> struct vector_of<uint16_t> { using type = Eight; };
template <> struct vector_of<uint32_t> { using type = Four; };
template <> struct vector_of<uint64_t> { using type = Two; };

// The same of a matrix whose columns are dense, in squares; its rows go `pitch` items apart.
template <class Item>
void collect_columns(const char* from, int64_t stride, int64_t rows, int64_t columns, Item* to, int64_t pitch) {
  using Vector = typename vector_of<Item>::type;
  constexpr int64_t size = sizeof(Item), side = sizeof(Vector) / size;
  int64_t done_rows = 0, done_columns = 0;
  if constexpr (side > 1) {
    done_rows = rows - rows % side;
    done_columns = columns - columns % side;
    for (int64_t c = 0; c < done_columns; c += side) {
      const char* const column = from + c * stride;
      // Columns far apart are no pattern that the processor would see.
      for (int64_t ahead = 16; ahead < 16 + side; ++ahead)
        for (int64_t line = 0; line < rows * size; line += 64) __builtin_prefetch(column + ahead * stride + line);
      for (int64_t r = 0; r < done_rows; r += side) {
        Vector lines[side], mixed[side];
        for (int i = 0; i < side; ++i) lines[i] = item_at<Vector>(column + i * stride + r * size);
        // Each round doubles how far apart neighbours of a column end up.
        for (int round = 1; round < side; round *= 2) {
          for (int i = 0; i < side / 2; ++i) interleave(lines[i], lines[i + side / 2], mixed[2 * i], mixed[2 * i + 1]);
          for (int i = 0; i < side; ++i) lines[i] = mixed[i];
        }
        for (int i = 0; i < side; ++i) std::memcpy(to + (r + i) * pitch + c, &lines[i], sizeof(Vector));
      }
    }
  }
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = r < done_rows ? done_columns : 0; c < columns; ++c) to[r * pitch + c] = item_at<Item>(from + c * stride + r * size);
  }
}
#undef EXTENSOR_PICK

// Calls `function` with a null pointer to the type of items of `size` bytes.
template <class Function>
void for_item_size(int64_t size, Function&& function) {
  if (size == 4) function(static_cast<uint32_t*>(nullptr));
  else if (size == 8) function(static_cast<uint64_t*>(nullptr));
  else if (size == 2) function(static_cast<uint16_t*>(nullptr));
  else function(static_cast<uint8_t*>(nullptr));
}

}  // namespace extensor
