#include "kernels/copy/copy.hpp"

#include <cstring>

#include "core/threads.hpp"
#include "kernels/copy/transpose.hpp"

namespace extensor {
namespace {

constexpr int most_axes = 32;
constexpr double byte_ns = 0.1;

struct Axis {
  int64_t length, from, to;  // strides in items
};

// Axes of length 1 go, and axes that follow each other in x as they do in the result become one.
int merged_axes(int ndim, const int64_t* shape, const int64_t* strides, size_t item, Axis* axes) {
  int64_t to = 1;
  int64_t steps[most_axes];
  for (int i = ndim - 1; i >= 0; --i) {
    steps[i] = to;
    to *= shape[i];
  }
  int count = 0;
  for (int i = 0; i < ndim; ++i) {
    if (shape[i] == 1) continue;
    const int64_t from = strides[i] / int64_t(item);
    if (count > 0 && axes[count - 1].from == from * shape[i]) {
      axes[count - 1] = {axes[count - 1].length * shape[i], from, steps[i]};
    } else {
      axes[count++] = {shape[i], from, steps[i]};
    }
  }
  return count;
}

// A matrix: rows dense in the result, columns (nearly) dense in x. Tiles keep both sides' cache lines alive.
template <class Item>
void copy_matrix(const Axis& rows, const Axis& columns, const Item* x, Item* out) {
  constexpr int64_t tile = 32;
  for (int64_t i = 0; i < rows.length; i += tile) {
    const int64_t i_end = rows.length - i < tile ? rows.length : i + tile;
    for (int64_t j = 0; j < columns.length; j += tile) {
      const int64_t j_end = columns.length - j < tile ? columns.length : j + tile;
      for (int64_t r = i; r < i_end; ++r)
        for (int64_t c = j; c < j_end; ++c) out[r * rows.to + c * columns.to] = x[r * rows.from + c * columns.from];
    }
  }
}

// A row from its end to its beginning.
template <class Item>
void copy_reversed(int64_t n, const Item* __restrict x, Item* __restrict out) {
  for (int64_t i = 0; i < n; ++i) out[i] = x[-i];
}

template <class Item>
void copy_items(Axis* axes, int count, const Item* x, Item* out) {
  if (count == 0) {
    *out = *x;
    return;
  }
  // The last axis is dense in the result; beside it goes the axis with the smallest step in x.
  Axis columns = axes[--count];
  Axis rows = {1, 0, 0};
  if (count > 0) {
    int nearest = 0;
    for (int i = 1; i < count; ++i) {
      const auto size = [](int64_t step) { return step < 0 ? -step : step; };
      if (size(axes[i].from) <= size(axes[nearest].from)) nearest = i;
    }
    rows = axes[nearest];
    for (int i = nearest; i + 1 < count; ++i) axes[i] = axes[i + 1];
    --count;
  }
  int64_t matrices = 1;
  for (int i = 0; i < count; ++i) matrices *= axes[i].length;
  // Few large matrices are shared by their rows, many small ones one by one.
  const int64_t stripes = matrices > 64 ? 1 : (rows.length + 31) / 32;
  const double ns = double(rows.length) * double(columns.length) * sizeof(Item) * byte_ns / double(stripes) + 10;
  parallel_for(matrices * stripes, ns, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      int64_t rest = task / stripes, from = 0, to = 0;
      for (int i = count - 1; i >= 0; --i) {
        from += rest % axes[i].length * axes[i].from;
        to += rest % axes[i].length * axes[i].to;
        rest /= axes[i].length;
      }
      Axis part = rows;
      if (stripes > 1) {
        const int64_t first = task % stripes * 32;
        part.length = rows.length - first < 32 ? rows.length - first : 32;
        from += first * rows.from, to += first * rows.to;
      }
      if (columns.from == 1) {
        for (int64_t r = 0; r < part.length; ++r)
          std::memcpy(out + to + r * part.to, x + from + r * part.from, size_t(columns.length) * sizeof(Item));
      } else if (columns.from == -1) {
        for (int64_t r = 0; r < part.length; ++r) copy_reversed(columns.length, x + from + r * part.from, out + to + r * part.to);
      } else if (sizeof(Item) >= 4 && part.from == 1) {
        EXTENSOR_SELECT(transpose)(sizeof(Item), part.length, columns.length, x + from, columns.from, out + to, part.to);
      } else {
        copy_matrix(part, columns, x + from, out + to);
      }
    }
  });
}

template <class Item>
void fill(Item* to, int64_t n, Item value) {
  for (int64_t i = 0; i < n; ++i) to[i] = value;
}

// Row by row of the result: those around x are filled, those through it take a row of x between two margins.
template <class Item>
void pad_items(int ndim, const int64_t* shape, const int64_t (*widths)[2], const void* value, const Item* x, Item* out) {
  Item filling;
  std::memcpy(&filling, value, sizeof filling);
  int last = ndim - 1;  // the axes behind the last margin go with it
  int64_t inner = 1;
  while (last > 0 && widths[last][0] == 0 && widths[last][1] == 0) inner *= shape[last--];
  const int64_t row = shape[last] * inner, before = widths[last][0] * inner, after = widths[last][1] * inner;
  int64_t lengths[most_axes], rows = 1;
  for (int i = 0; i < last; ++i) {
    lengths[i] = widths[i][0] + shape[i] + widths[i][1];
    rows *= lengths[i];
  }
  const int64_t width = before + row + after;
  parallel_for(rows, double(width) * sizeof(Item) * byte_ns + 5, [&](int64_t begin, int64_t end) {
    int64_t place[most_axes], rest = begin;
    for (int i = last - 1; i >= 0; --i) place[i] = rest % lengths[i], rest /= lengths[i];
    for (int64_t r = begin; r < end; ++r) {
      bool through = true;
      int64_t source = 0;
      for (int i = 0; i < last; ++i) {
        const int64_t at = place[i] - widths[i][0];
        through &= at >= 0 && at < shape[i];
        source = source * shape[i] + at;
      }
      Item* to = out + r * width;
      if (through) {
        fill(to, before, filling);
        if (row > 0) std::memcpy(to + before, x + source * row, size_t(row) * sizeof(Item));
        fill(to + before + row, after, filling);
      } else {
        fill(to, width, filling);
      }
      for (int i = last - 1; i >= 0 && ++place[i] == lengths[i]; --i) place[i] = 0;
    }
  });
}

// One long stretch, shared.
void copy_bytes(const void* from, char* to, size_t bytes) {
  constexpr size_t block = 64 << 10;
  parallel_for(int64_t((bytes + block - 1) / block), double(bytes < block ? bytes : block) * byte_ns, [&](int64_t begin, int64_t end) {
    const size_t first = size_t(begin) * block, last = size_t(end) * block < bytes ? size_t(end) * block : bytes;
    std::memcpy(to + first, static_cast<const char*>(from) + first, last - first);
  });
}

}  // namespace

void copy_to_dense(int ndim, const int64_t* shape, const int64_t* strides, size_t item, const void* x, void* out) {
  Axis axes[most_axes];
  const int count = merged_axes(ndim, shape, strides, item, axes);
  switch (item) {
    case 1: return copy_items(axes, count, static_cast<const uint8_t*>(x), static_cast<uint8_t*>(out));
    case 2: return copy_items(axes, count, static_cast<const uint16_t*>(x), static_cast<uint16_t*>(out));
    case 4: return copy_items(axes, count, static_cast<const uint32_t*>(x), static_cast<uint32_t*>(out));
    default: return copy_items(axes, count, static_cast<const uint64_t*>(x), static_cast<uint64_t*>(out));
  }
}

void join(int64_t outer, int64_t count, const Part* parts, void* out) {
  size_t bytes = 0;
  for (int64_t i = 0; i < count; ++i) bytes += parts[i].bytes;
  if (outer == 1) {  // few long stretches
    char* to = static_cast<char*>(out);
    for (int64_t i = 0; i < count; to += parts[i++].bytes) copy_bytes(parts[i].data, to, parts[i].bytes);
    return;
  }
  parallel_for(outer, double(bytes) * byte_ns, [&](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; ++o) {
      char* to = static_cast<char*>(out) + size_t(o) * bytes;
      for (int64_t i = 0; i < count; ++i) {
        std::memcpy(to, static_cast<const char*>(parts[i].data) + size_t(o) * parts[i].bytes, parts[i].bytes);
        to += parts[i].bytes;
      }
    }
  });
}

void roll(int64_t outer, size_t bytes, size_t shift, const void* x, void* out) {
  parallel_for(outer, double(bytes) * byte_ns, [&](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; ++o) {
      const char* from = static_cast<const char*>(x) + size_t(o) * bytes;
      char* to = static_cast<char*>(out) + size_t(o) * bytes;
      std::memcpy(to, from + bytes - shift, shift);
      std::memcpy(to + shift, from, bytes - shift);
    }
  });
}

void pad(int ndim, const int64_t* shape, const int64_t (*widths)[2], size_t item, const void* value, const void* x, void* out) {
  switch (item) {
    case 1: return pad_items(ndim, shape, widths, value, static_cast<const uint8_t*>(x), static_cast<uint8_t*>(out));
    case 2: return pad_items(ndim, shape, widths, value, static_cast<const uint16_t*>(x), static_cast<uint16_t*>(out));
    case 4: return pad_items(ndim, shape, widths, value, static_cast<const uint32_t*>(x), static_cast<uint32_t*>(out));
    default: return pad_items(ndim, shape, widths, value, static_cast<const uint64_t*>(x), static_cast<uint64_t*>(out));
  }
}

}  // namespace extensor
