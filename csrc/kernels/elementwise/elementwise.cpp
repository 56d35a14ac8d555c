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
// A result much larger than the caches is written past them.
constexpr int64_t streamed_bytes = int64_t{16} << 20;
// Shorter rows are collected into blocks first.
constexpr int64_t direct_row = 64;

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

  int64_t input_size(int i) const { return kernel.mask_inputs >> i & 1 ? 1 : static_cast<int64_t>(item_size(dtype)); }
  int64_t output_size() const { return kernel.mask_output ? 1 : static_cast<int64_t>(item_size(dtype)); }
  bool is_half() const { return dtype == DType::float16 || dtype == DType::bfloat16; }
  double cost_ns() const {
    // Memory-bound formulas cost at least what their bytes cost.
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
      if (call.kernel.mask_inputs >> i & 1) continue;
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

void run_streamed(const Call& call, int64_t n, const Run& run) {
  alignas(64) char out[max_elementwise_outputs][block * 8];
  const int64_t per_block = block * 8 / static_cast<int64_t>(item_size(call.dtype));
  for (int64_t done = 0; done < n; done += per_block) {
    const int64_t count = std::min(per_block, n - done);
    Run staged = run;
    for (int i = 0; i < call.kernel.inputs; ++i) staged.in[i] += done * run.steps[i] * call.input_size(i);
    for (int i = 0; i < call.kernel.outputs; ++i) staged.out[i] = out[i];
    call_block(call, count, staged);
    for (int i = 0; i < call.kernel.outputs; ++i) {
      table().stream(out[i], run.out[i] + done * call.output_size(), count * call.output_size());
    }
  }
}

void run_direct(const Call& call, int64_t n, const Run& run) {
  if (call.is_half()) run_half(call, n, run);
  else call_block(call, n, run);
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
                                const bool* is_scalar, void* const* out, const double* scalars) {
  const Call call{kernel, dtype, scalars};
  Run whole;
  for (int i = 0; i < kernel.inputs; ++i) {
    whole.in[i] = static_cast<const char*>(in[i]);
    whole.steps[i] = is_scalar[i] ? 0 : 1;
  }
  for (int i = 0; i < kernel.outputs; ++i) whole.out[i] = static_cast<char*>(out[i]);
  const Chunks chunks = plan_chunks(n, call.cost_ns());
  if (chunks.count == 1) return run_direct(call, n, whole);

  const bool streamed = n * call.output_size() >= streamed_bytes && !call.is_half();
  parallel_chunks(n, chunks, [&](int64_t begin, int64_t end) {
    Run part = whole;
    for (int i = 0; i < kernel.inputs; ++i) part.in[i] += begin * whole.steps[i] * call.input_size(i);
    for (int i = 0; i < kernel.outputs; ++i) part.out[i] += begin * call.output_size();
    if (streamed) run_streamed(call, end - begin, part);
    else run_direct(call, end - begin, part);
  });
}

}  // namespace extensor
