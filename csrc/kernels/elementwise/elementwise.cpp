// The drivers: tensors of any layout, cut into blocks and shared between threads.
#include "kernels/elementwise/elementwise.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <unordered_map>

#include "core/threads.hpp"

namespace extensor {
namespace {

// Elements that are staged at a time in buffers on the stack: few enough for all of them to stay in
// the first level cache.
constexpr int64_t block = 512;
// Shorter rows are collected into blocks first, at about this cost per element and input.
constexpr int64_t direct_row = 64;
constexpr double gather_ns = 0.5;

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
    return is_half() ? computing + 0.2 * (kernel.inputs + kernel.outputs) : computing;
  }
};

void call_block(const Call& call, int64_t n, const Run& run) {
  const BlockFunction function = call.dtype == DType::float64 ? call.kernel.float64 : call.kernel.float32;
  function(n, reinterpret_cast<const void* const*>(run.in), run.steps, reinterpret_cast<void* const*>(run.out), call.scalars);
}

// float16 and bfloat16: converted to float32, computed, rounded once.
void run_half(const Call& call, int64_t n, const Run& run) {
  const bool brain = call.dtype == DType::bfloat16;
  const auto widen = brain ? table().widen_bfloat16 : table().widen_float16;
  const auto narrow = brain ? table().narrow_bfloat16 : table().narrow_float16;
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

// Elements [begin, end) of the result, row by row; every row is one run.
void run_rows(const Call& call, const Layout& layout, int64_t begin, int64_t end, Run part) {
  const Run origin = part;
  Rows rows(layout, begin);
  for (int i = 0; i < call.kernel.inputs; ++i) part.steps[i] = layout.strides[i][layout.ndim - 1] == 0 ? 0 : 1;
  for (int64_t left = end - begin; left > 0;) {
    const int64_t count = std::min(left, rows.left_in_row());
    for (int i = 0; i < call.kernel.inputs; ++i) part.in[i] = origin.in[i] + rows.offset(i);
    run_direct(call, count, part);
    for (int i = 0; i < call.kernel.outputs; ++i) part.out[i] += count * call.output_size();
    rows.advance(count);
    left -= count;
  }
}

template <class Item>
void copy_strided(const char* from, int64_t stride, int64_t count, char* to) {
  Item* items = reinterpret_cast<Item*>(to);
  for (int64_t i = 0; i < count; ++i) std::memcpy(items + i, from + i * stride, sizeof(Item));
}

void copy_run(const char* from, int64_t stride, int64_t size, int64_t count, char* to) {
  if (stride == size) std::memcpy(to, from, static_cast<size_t>(size * count));
  else if (size == 4) copy_strided<uint32_t>(from, stride, count, to);
  else if (size == 8) copy_strided<uint64_t>(from, stride, count, to);
  else if (size == 2) copy_strided<uint16_t>(from, stride, count, to);
  else copy_strided<uint8_t>(from, stride, count, to);
}

void gather(const Layout& layout, int input, int64_t begin, int64_t count, int64_t size, const char* from, char* to) {
  const int64_t stride = layout.strides[input][layout.ndim - 1];
  Rows rows(layout, begin);
  while (count > 0) {
    const int64_t run = std::min(count, rows.left_in_row());
    copy_run(from + rows.offset(input), stride, size, run, to);
    to += run * size;
    count -= run;
    rows.advance(run);
  }
}

// Elements [begin, end) of the result, in blocks: inputs whose elements do not lie one after another
// are collected first.
void run_gathered(const Call& call, const Layout& layout, int64_t begin, int64_t end, Run part) {
  alignas(64) char staged[max_elementwise_inputs][block * 8];
  bool lies_still[max_elementwise_inputs], is_contiguous[max_elementwise_inputs];
  for (int i = 0; i < call.kernel.inputs; ++i) {
    int64_t dense = call.input_size(i);
    lies_still[i] = is_contiguous[i] = true;
    for (int axis = layout.ndim - 1; axis >= 0; --axis) {
      lies_still[i] = lies_still[i] && layout.strides[i][axis] == 0;
      is_contiguous[i] = is_contiguous[i] && layout.strides[i][axis] == dense;
      dense *= layout.shape[axis];
    }
    part.steps[i] = lies_still[i] ? 0 : 1;
  }
  for (int64_t at = begin; at < end; at += block) {
    const int64_t count = std::min(block, end - at);
    Run run = part;
    for (int i = 0; i < call.kernel.inputs; ++i) {
      if (lies_still[i]) continue;
      const int64_t size = call.input_size(i);
      if (is_contiguous[i]) {
        run.in[i] += at * size;
      } else {
        gather(layout, i, at, count, size, part.in[i], staged[i]);
        run.in[i] = staged[i];
      }
    }
    run_direct(call, count, run);
    for (int i = 0; i < call.kernel.outputs; ++i) part.out[i] += count * call.output_size();
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

void run_elementwise_contiguous(const ElementwiseKernel& kernel, DType dtype, int64_t n, const void* const* in,
                                const bool* is_scalar, void* const* out, const double* scalars, unsigned wide) {
  const Call call{kernel, dtype, scalars, wide};
  Run whole;
  for (int i = 0; i < kernel.inputs; ++i) {
    whole.in[i] = static_cast<const char*>(in[i]);
    whole.steps[i] = is_scalar[i] ? 0 : 1;
  }
  for (int i = 0; i < kernel.outputs; ++i) whole.out[i] = static_cast<char*>(out[i]);
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
  const bool direct = layout.rows_are_direct && layout.shape[layout.ndim - 1] >= direct_row;
  const double cost = call.cost_ns() + (direct ? 0.0 : gather_ns * kernel.inputs);
  parallel_for(layout.size, cost, [&](int64_t begin, int64_t end) {
    Run part;
    for (int i = 0; i < kernel.inputs; ++i) part.in[i] = static_cast<const char*>(in[i]);
    for (int i = 0; i < kernel.outputs; ++i) part.out[i] = static_cast<char*>(out[i]) + begin * call.output_size();
    if (direct) run_rows(call, layout, begin, end, part);
    else run_gathered(call, layout, begin, end, part);
  });
}

}  // namespace extensor
