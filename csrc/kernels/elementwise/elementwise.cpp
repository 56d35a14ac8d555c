// The drivers: tensors of any layout, cut into blocks and shared between threads.
#include "kernels/elementwise/elementwise.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <unordered_map>

#include "core/threads.hpp"
#include "kernels/elementwise/collect.hpp"

namespace extensor {
namespace {

// Elements that are staged at a time in buffers on the stack: few enough for all of them to stay in
// the first level cache.
constexpr int64_t block = 512;
// Shorter rows are collected into blocks first, at about this cost per element and input; of formulas so short that
// the collecting would cost more than the lanes it fills, only much shorter ones.
constexpr int64_t direct_row = 64, direct_short_row = 12;
constexpr double short_formula_ns = 0.2;
constexpr double gather_ns = 0.5;
// Inputs that are dense along another axis than the result are collected in tiles: rows enough to read whole lines of
// the cache (and more than one from a page), but not more than stay in it.
constexpr int64_t tile_rows = 32, tile_bytes = 1024;

const ElementwiseTable& table() {
  static const ElementwiseTable& active = EXTENSOR_SELECT(elementwise_table)();
  return active;
}

// Where a run of elements lies: for every input the address of its first element and its step.
struct Run {
  const char* in[max_elementwise_inputs];
  int64_t steps[max_elementwise_inputs];
  char* out[max_elementwise_outputs];
};

// What the drivers need to know about one call.
struct Call {
  const ElementwiseKernel& kernel;
  DType dtype;
  const double* scalars;
  unsigned wide;

  int64_t input_size(int i) const { return kernel.mask_inputs >> i & 1 ? 1 : static_cast<int64_t>(item_size(dtype)); }
  int64_t output_size() const { return kernel.mask_output ? 1 : static_cast<int64_t>(item_size(dtype)); }
  bool is_half() const { return dtype == DType::float16 || dtype == DType::bfloat16; }
  double cost_ns() const {
    const double computing = dtype == DType::float64 ? 2 * kernel.cost_ns : kernel.cost_ns;
    if (!is_half()) return computing;
    const bool in_blocks = (dtype == DType::float16 ? kernel.float16 : kernel.bfloat16) == nullptr;
    return computing + (in_blocks ? 0.2 : 0.04) * (kernel.inputs + kernel.outputs);
  }
};

void run_function(BlockFunction function, const Call& call, int64_t n, const Run& run, int64_t rows = 1, const int64_t* row_strides = nullptr) {
  function(n, reinterpret_cast<const void* const*>(run.in), run.steps, reinterpret_cast<void* const*>(run.out), call.scalars,
           rows, row_strides);
}

void call_block(const Call& call, int64_t n, const Run& run, int64_t rows = 1, const int64_t* row_strides = nullptr) {
  run_function(call.dtype == DType::float64 ? call.kernel.float64 : call.kernel.float32, call, n, run, rows, row_strides);
}

// float16 and bfloat16: converted to float32, computed, rounded once.
void run_half(const Call& call, int64_t n, const Run& run) {
  const bool brain = call.dtype == DType::bfloat16;
  const auto widen = brain ? table().widen_bfloat16 : table().widen_float16;
  const auto narrow = brain ? table().narrow_bfloat16 : table().narrow_float16;
  if (const BlockFunction function = brain ? call.kernel.bfloat16 : call.kernel.float16) {
    float single[max_elementwise_inputs];
    Run with_single = run;
    for (int i = 0; i < call.kernel.inputs; ++i) {
      if (run.steps[i] != 0 || ((call.kernel.mask_inputs | call.wide) >> i & 1)) continue;
      widen(run.in[i], &single[i], 1);
      with_single.in[i] = reinterpret_cast<const char*>(&single[i]);
    }
    return run_function(function, call, n, with_single);
  }
  alignas(64) float in[max_elementwise_inputs][block];
  alignas(64) float out[max_elementwise_outputs][block];
  for (int64_t done = 0; done < n; done += block) {
    const int64_t count = std::min(block, n - done);
    Run wide = run;
    for (int i = 0; i < call.kernel.inputs; ++i) {
      wide.in[i] += done * run.steps[i] * call.input_size(i);
      if ((call.kernel.mask_inputs | call.wide) >> i & 1) continue;
      widen(wide.in[i], in[i], run.steps[i] == 0 ? 1 : count);
      wide.in[i] = reinterpret_cast<const char*>(in[i]);
    }
    for (int i = 0; i < call.kernel.outputs; ++i) {
      if (call.kernel.mask_output) wide.out[i] += done;
      else wide.out[i] = reinterpret_cast<char*>(out[i]);
    }
    call_block(call, count, wide);
    if (call.kernel.mask_output) continue;
    for (int i = 0; i < call.kernel.outputs; ++i) narrow(out[i], run.out[i] + done * 2, count);
  }
}

void run_direct(const Call& call, int64_t n, const Run& run) {
  if (call.is_half()) run_half(call, n, run);
  else call_block(call, n, run);
}

// Several rows of n elements; the strides are those of the inputs, then that of the outputs.
void run_direct_rows(const Call& call, int64_t n, Run run, int64_t rows, const int64_t* row_strides) {
  if (!call.is_half()) return call_block(call, n, run, rows, row_strides);
  for (int64_t row = 0; row < rows; ++row) {
    run_half(call, n, run);
    for (int i = 0; i < call.kernel.inputs; ++i) run.in[i] += row_strides[i];
    for (int i = 0; i < call.kernel.outputs; ++i) run.out[i] += row_strides[call.kernel.inputs];
  }
}

Run advanced(const Call& call, const Run& run, int64_t elements) {
  Run later = run;
  for (int i = 0; i < call.kernel.inputs; ++i) later.in[i] += elements * run.steps[i] * call.input_size(i);
  for (int i = 0; i < call.kernel.outputs; ++i) later.out[i] += elements * call.output_size();
  return later;
}

// A layout with as few axes as possible: axes of length 1 are gone, and axes that every input walks
// through as if they were one are one.
struct Layout {
  int ndim = 0;
  int64_t size = 1;
  int64_t shape[max_elementwise_dims];
  int64_t strides[max_elementwise_inputs][max_elementwise_dims];
  bool rows_are_direct = true;  // along the last axis every input is contiguous or one element
};

Layout simplified(const Call& call, int ndim, const int64_t* shape, const int64_t* const* in_strides) {
  Layout layout;
  const int inputs = call.kernel.inputs;
  for (int axis = 0; axis < ndim; ++axis) {
    layout.size *= shape[axis];
    if (shape[axis] == 1) continue;
    const int last = layout.ndim - 1;
    bool merges = last >= 0;
    for (int i = 0; i < inputs && merges; ++i) merges = layout.strides[i][last] == in_strides[i][axis] * shape[axis];
    const int target = merges ? last : layout.ndim++;
    layout.shape[target] = merges ? layout.shape[last] * shape[axis] : shape[axis];
    for (int i = 0; i < inputs; ++i) layout.strides[i][target] = in_strides[i][axis];
  }
  for (int i = 0; i < inputs && layout.ndim > 0; ++i) {
    const int64_t stride = layout.strides[i][layout.ndim - 1];
    layout.rows_are_direct = layout.rows_are_direct && (stride == 0 || stride == call.input_size(i));
  }
  return layout;
}

// Walks over the rows of a layout (its last axis) in order, starting anywhere in the first one.
class Rows {
 public:
  Rows(const Layout& layout, int64_t flat) : layout_(layout), last_(layout.ndim - 1) {
    for (int axis = last_; axis >= 0; --axis) {
      at_[axis] = flat % layout.shape[axis];
      flat /= layout.shape[axis];
    }
  }
  int64_t left_in_row() const { return layout_.shape[last_] - at_[last_]; }
  int64_t offset(int input) const {
    int64_t bytes = 0;
    for (int axis = 0; axis <= last_; ++axis) bytes += at_[axis] * layout_.strides[input][axis];
    return bytes;
  }
  // Of the axis before the last, which there must be.
  int64_t rows_left() const { return layout_.shape[last_ - 1] - at_[last_ - 1]; }
  void advance_rows(int64_t rows) {
    if (rows > 0) at_[last_ - 1] += rows;
  }
  // Moves by at most the rest of the row.
  void advance(int64_t elements) {
    at_[last_] += elements;
    for (int axis = last_; axis > 0 && at_[axis] == layout_.shape[axis]; --axis) {
      at_[axis] = 0;
      ++at_[axis - 1];
    }
  }

 private:
  const Layout& layout_;
  int last_;
  int64_t at_[max_elementwise_dims];
};

// Elements [begin, end) of the result, row by row.
void run_rows(const Call& call, const Layout& layout, int64_t begin, int64_t end, Run part) {
  const Run origin = part;
  const int last = layout.ndim - 1, inputs = call.kernel.inputs;
  const int64_t length = layout.shape[last];
  Rows rows(layout, begin);
  int64_t row_strides[max_elementwise_inputs + 1];
  for (int i = 0; i < inputs; ++i) {
    part.steps[i] = layout.strides[i][last] == 0 ? 0 : 1;
    row_strides[i] = layout.strides[i][last - 1];
  }
  row_strides[inputs] = length * call.output_size();
  for (int64_t left = end - begin; left > 0;) {
    // The rest of a row, or all whole rows up to the end of the axis before it.
    const int64_t count = std::min(left, rows.left_in_row());
    const int64_t whole = count == length ? std::min(left / length, rows.rows_left()) : 1;
    for (int i = 0; i < inputs; ++i) part.in[i] = origin.in[i] + rows.offset(i);
    run_direct_rows(call, count, part, whole, row_strides);
    for (int i = 0; i < call.kernel.outputs; ++i) part.out[i] += whole * count * call.output_size();
    rows.advance_rows(whole - 1);
    rows.advance(count);
    left -= whole * count;
  }
}

void gather(const Layout& layout, int input, int64_t begin, int64_t count, int64_t size, const char* from, char* to) {
  const int last = layout.ndim - 1;
  const int64_t stride = layout.strides[input][last], length = layout.shape[last];
  const int64_t row_stride = last > 0 ? layout.strides[input][last - 1] : 0;
  Rows rows(layout, begin);
  while (count > 0) {
    // The rest of a row, or all whole rows up to the end of the axis before it.
    int64_t columns = std::min(count, rows.left_in_row()), whole = 1;
    if (last > 0 && columns == length) whole = std::min(count / length, rows.rows_left());
    for_item_size(size, [&](auto* type) {
      collect_rows(from + rows.offset(input), row_stride, stride, whole, columns, reinterpret_cast<decltype(type)>(to));
    });
    to += whole * columns * size;
    count -= whole * columns;
    rows.advance_rows(whole - 1);
    rows.advance(columns);
  }
}

// How the elements of an input follow those of the result.
enum class Lie { still, dense, repeating, scattered };

Lie lie_of(const Layout& layout, int input, int64_t size) {
  const int64_t* strides = layout.strides[input];
  bool still = true, dense = true, repeating = true;
  int64_t next = size;
  for (int axis = layout.ndim - 1; axis >= 0; --axis) {
    still = still && strides[axis] == 0;
    dense = dense && strides[axis] == next;
    repeating = repeating && (axis == layout.ndim - 1 || strides[axis] == 0);
    next *= layout.shape[axis];
  }
  return still ? Lie::still : dense ? Lie::dense : repeating ? Lie::repeating : Lie::scattered;
}

// Elements [begin, end) of the result, in blocks: inputs whose elements do not lie one after another
// are collected first.
void run_gathered(const Call& call, const Layout& layout, int64_t begin, int64_t end, Run part) {
  alignas(64) char staged[max_elementwise_inputs][block * 8];
  // In blocks of whole rows a row that is the same for all is collected once.
  const int64_t row = layout.shape[layout.ndim - 1], length = row < block ? block - block % row : block;
  Lie lies[max_elementwise_inputs];
  for (int i = 0; i < call.kernel.inputs; ++i) {
    lies[i] = lie_of(layout, i, call.input_size(i));
    if (lies[i] == Lie::repeating && row > block) lies[i] = Lie::scattered;
    part.steps[i] = lies[i] == Lie::still ? 0 : 1;
    if (lies[i] == Lie::repeating) gather(layout, i, begin, std::min(length, end - begin), call.input_size(i), part.in[i], staged[i]);
  }
  for (int64_t at = begin; at < end; at += length) {
    const int64_t count = std::min(length, end - at);
    Run run = part;
    for (int i = 0; i < call.kernel.inputs; ++i) {
      if (lies[i] == Lie::still) continue;
      const int64_t size = call.input_size(i);
      if (lies[i] == Lie::dense) {
        run.in[i] += at * size;
        continue;
      }
      if (lies[i] == Lie::scattered) gather(layout, i, at, count, size, part.in[i], staged[i]);
      run.in[i] = staged[i];
    }
    run_direct(call, count, run);
    for (int i = 0; i < call.kernel.outputs; ++i) part.out[i] += count * call.output_size();
  }
}

// Shorter rows are better collected.
int64_t shortest_direct_row(const Call& call, const Layout& layout) {
  if (call.kernel.cost_ns >= short_formula_ns || call.is_half()) return direct_row;
  // What is collected once costs nothing.
  for (int i = 0; i < call.kernel.inputs; ++i)
    if (lie_of(layout, i, call.input_size(i)) == Lie::scattered) return direct_short_row;
  return direct_row;
}

// An axis before the last along which an input is dense that is not dense along the last; -1 if there is none.
int tiled_axis(const Call& call, const Layout& layout) {
  const int last = layout.ndim - 1;
  if (layout.shape[last] < direct_row / 2) return -1;
  for (int i = 0; i < call.kernel.inputs; ++i) {
    const int64_t size = call.input_size(i), stride = layout.strides[i][last];
    if (stride == 0 || stride == size) continue;
    for (int axis = 0; axis < last; ++axis)
      if (layout.strides[i][axis] == size && layout.shape[axis] >= 4) return axis;
  }
  return -1;
}

// Bands of rows along `axis`, each over the whole of the last axis; bands [begin, end) of all there are.
void run_tiles(const Call& call, const Layout& layout, int axis, int64_t begin, int64_t end, const Run& whole) {
  alignas(64) char staged[max_elementwise_inputs][tile_rows * tile_bytes];
  const int last = layout.ndim - 1;
  const int64_t columns = layout.shape[last], bands = (layout.shape[axis] + tile_rows - 1) / tile_rows;
  const int64_t tile_columns = tile_bytes / int64_t(item_size(call.dtype));
  int64_t out_strides[max_elementwise_dims];
  for (int64_t a = last, next = call.output_size(); a >= 0; next *= layout.shape[a--]) out_strides[a] = next;

  for (int64_t band = begin; band < end; ++band) {
    int64_t at[max_elementwise_dims] = {};
    at[axis] = band % bands * tile_rows;
    int64_t rest = band / bands;
    for (int a = last - 1; a >= 0; --a) {
      if (a == axis) continue;
      at[a] = rest % layout.shape[a];
      rest /= layout.shape[a];
    }
    const int64_t rows = std::min(tile_rows, layout.shape[axis] - at[axis]);
    Run corner = whole;
    for (int a = 0; a < last; ++a) {
      for (int i = 0; i < call.kernel.inputs; ++i) corner.in[i] += at[a] * layout.strides[i][a];
      for (int i = 0; i < call.kernel.outputs; ++i) corner.out[i] += at[a] * out_strides[a];
    }
    for (int64_t done = 0; done < columns; done += tile_columns) {
      const int64_t count = std::min(tile_columns, columns - done);
      Run tile = corner;
      int64_t row_strides[max_elementwise_inputs + 1];
      for (int i = 0; i < call.kernel.inputs; ++i) {
        const int64_t size = call.input_size(i), stride = layout.strides[i][last], row_stride = layout.strides[i][axis];
        const char* const from = corner.in[i] + done * stride;
        tile.in[i] = from;
        tile.steps[i] = stride == 0 ? 0 : 1;
        row_strides[i] = row_stride;
        if (stride == 0 || stride == size) continue;
        for_item_size(size, [&](auto* type) {
          auto* const to = reinterpret_cast<decltype(type)>(staged[i]);
          if (row_stride == size) collect_columns(from, stride, rows, count, to, count);
          else collect_rows(from, row_stride, stride, rows, count, to);
        });
        tile.in[i] = staged[i];
        row_strides[i] = count * size;
      }
      row_strides[call.kernel.inputs] = out_strides[axis];
      for (int i = 0; i < call.kernel.outputs; ++i) tile.out[i] += done * call.output_size();
      run_direct_rows(call, count, tile, rows, row_strides);
    }
  }
}

}  // namespace

const ElementwiseKernel* find_elementwise(const char* name) {
  static const auto& by_name = *[] {
    auto* map = new std::unordered_map<std::string_view, const ElementwiseKernel*>;
    for (int i = 0; i < table().count; ++i) map->emplace(table().kernels[i].name, &table().kernels[i]);
    return map;
  }();
  const auto found = by_name.find(name);
  return found == by_name.end() ? nullptr : found->second;
}

// So few elements are never shared between threads, whatever the function.
constexpr int64_t one_chunk = 256;

void run_elementwise_contiguous(const ElementwiseKernel& kernel, DType dtype, int64_t n, const void* const* in,
                                const bool* is_scalar, void* const* out, const double* scalars, unsigned wide) {
  const Call call{kernel, dtype, scalars, wide};
  Run whole;
  for (int i = 0; i < kernel.inputs; ++i) {
    whole.in[i] = static_cast<const char*>(in[i]);
    whole.steps[i] = is_scalar[i] ? 0 : 1;
  }
  for (int i = 0; i < kernel.outputs; ++i) whole.out[i] = static_cast<char*>(out[i]);
  if (n <= one_chunk) return run_direct(call, n, whole);  // a small call is mostly what surrounds it
  const Chunks chunks = plan_chunks(n, call.cost_ns());
  parallel_chunks(n, chunks, [&](int64_t begin, int64_t end) {
    run_direct(call, end - begin, advanced(call, whole, begin));
  });
}

void run_elementwise_strided(const ElementwiseKernel& kernel, DType dtype, int ndim, const int64_t* shape,
                             const void* const* in, const int64_t* const* in_strides, void* const* out,
                             const double* scalars, unsigned wide) {
  const Call call{kernel, dtype, scalars, wide};
  const Layout layout = simplified(call, ndim, shape, in_strides);
  if (layout.size == 0) return;
  if (layout.ndim <= 1 && layout.rows_are_direct) {
    bool is_scalar[max_elementwise_inputs];
    for (int i = 0; i < kernel.inputs; ++i) is_scalar[i] = layout.ndim == 0 || layout.strides[i][0] == 0;
    return run_elementwise_contiguous(kernel, dtype, layout.size, in, is_scalar, out, scalars, wide);
  }
  Run whole;
  for (int i = 0; i < kernel.inputs; ++i) whole.in[i] = static_cast<const char*>(in[i]);
  for (int i = 0; i < kernel.outputs; ++i) whole.out[i] = static_cast<char*>(out[i]);
  const int64_t row = layout.shape[layout.ndim - 1];
  const bool direct = layout.rows_are_direct && row >= direct_short_row && row >= shortest_direct_row(call, layout);
  const double cost = call.cost_ns() + (direct ? 0.0 : gather_ns * kernel.inputs);
  const int axis = direct ? -1 : tiled_axis(call, layout);
  if (axis >= 0) {
    const int64_t columns = layout.shape[layout.ndim - 1], rows = layout.shape[axis], bands = (rows + tile_rows - 1) / tile_rows;
    const int64_t count = layout.size / (columns * rows) * bands;
    return parallel_for(count, cost * double(layout.size) / double(count),
                        [&](int64_t begin, int64_t end) { run_tiles(call, layout, axis, begin, end, whole); });
  }
  const auto run_part = [&](int64_t begin, int64_t end) {
    Run part = whole;
    for (int i = 0; i < kernel.outputs; ++i) part.out[i] += begin * call.output_size();
    if (direct) run_rows(call, layout, begin, end, part);
    else run_gathered(call, layout, begin, end, part);
  };
  if (layout.size <= one_chunk) return run_part(0, layout.size);
  parallel_for(layout.size, cost, run_part);
}

}  // namespace extensor
