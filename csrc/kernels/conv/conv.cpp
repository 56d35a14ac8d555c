// What each convolution asks of the two kernels. Compiled once.
#include "kernels/conv/conv.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/bf16_unit.hpp"
#include "core/dtype.hpp"
#include "core/memory.hpp"
#include "core/threads.hpp"
#include "kernels/conv/half.hpp"
#include "kernels/conv/maps.hpp"
#include "kernels/conv/winograd.hpp"
#include "kernels/convert/convert.hpp"
#include "kernels/matmul/half.hpp"
#include "kernels/matmul/matmul.hpp"

namespace extensor {
namespace {

// An axis together with the memory of its taps.
struct Direction {
  std::vector<int64_t> shift, element;
  ConvAxis axis;

  ConvAxis ready() {
    axis.taps = int64_t(shift.size()), axis.shift = shift.data(), axis.element = element.data();
    return axis;
  }
};

Direction forward_direction(const ConvShape& s, int d) {
  Direction out;
  for (int64_t p = 0; p < s.kernel[d]; ++p) {
    out.shift.push_back(p * s.dilation[d] - s.padding[d]);
    out.element.push_back(p);
  }
  out.axis = {s.x[d], s.y[d], s.y[d] > 1 ? s.stride[d] : 1, 0, 1, 0, nullptr, nullptr};  // one output takes no step
  return out;
}

// Backwards, the positions i of x with the same phase = (i + padding) % stride see the same elements p of the kernel,
// those with p * dilation % stride == phase, each one step apart: y[(i + padding - p * dilation) / stride]. One direction for
// each phase that sees any: at most as many as the kernel has elements, however large the stride is.
std::vector<Direction> backward_directions(const ConvShape& s, int d) {
  const int64_t stride = s.stride[d], padding = s.padding[d];
  std::vector<int64_t> elements;
  for (int64_t p = 0; p < s.kernel[d]; ++p) elements.push_back(p);
  const auto phase_of = [&](int64_t p) { return p * s.dilation[d] % stride; };
  std::stable_sort(elements.begin(), elements.end(), [&](int64_t p, int64_t q) { return phase_of(p) < phase_of(q); });
  std::vector<Direction> out;
  for (size_t e = 0; e < elements.size();) {
    const int64_t phase = phase_of(elements[e]);
    const int64_t first = phase >= padding ? 0 : (padding - phase + stride - 1) / stride;
    const int64_t start = first * stride + phase - padding;
    Direction direction;
    for (; e < elements.size() && phase_of(elements[e]) == phase; ++e) {
      direction.shift.push_back(first - (elements[e] * s.dilation[d] - phase) / stride);
      direction.element.push_back(elements[e]);
    }
    if (start >= s.x[d]) continue;
    direction.axis = {s.y[d], (s.x[d] - start + stride - 1) / stride, 1, start, stride, 0, nullptr, nullptr};
    out.push_back(std::move(direction));
  }
  return out;
}

// Whether the kernels would copy much that nobody sees: outputs a large step apart, or taps a large dilation.
bool is_sparse(const Direction& direction) {
  constexpr int64_t worth_gathering = 8;
  const auto [least, most] = std::minmax_element(direction.shift.begin(), direction.shift.end());
  const int64_t extent = (direction.axis.count - 1) * direction.axis.step + *most - *least + 1;
  return extent > worth_gathering * direction.axis.count * int64_t(direction.shift.size());
}

// What each element of a sparse axis of the source becomes when only what is seen is kept, -1 for zeros: what output i sees
// through tap t is then element i * taps + t. An axis that is not sparse stays as it is.
std::vector<int64_t> gather_axis(Direction& direction) {
  ConvAxis& axis = direction.axis;
  std::vector<int64_t> places;
  if (!is_sparse(direction)) {
    for (int64_t i = 0; i < axis.source; ++i) places.push_back(i);
    return places;
  }
  for (int64_t i = 0; i < axis.count; ++i)
    for (const int64_t shift : direction.shift) {
      const int64_t place = i * axis.step + shift;
      places.push_back(place >= 0 && place < axis.source ? place : -1);
    }
  axis.source = int64_t(places.size()), axis.step = int64_t(direction.shift.size());
  for (size_t t = 0; t < direction.shift.size(); ++t) direction.shift[t] = int64_t(t);
  return places;
}

// The source of a map, or if an axis is sparse what is seen of it, which `room` then holds; the axes change with it.
template <class T>
const T* seen_source(const T* source, int64_t planes, Direction& rows, Direction& columns, std::vector<T>& room) {
  if (!is_sparse(rows) && !is_sparse(columns)) return source;
  const int64_t height = rows.axis.source, width = columns.axis.source;
  const std::vector<int64_t> row_places = gather_axis(rows), column_places = gather_axis(columns);
  room.assign(size_t(planes) * row_places.size() * column_places.size(), T(0));
  T* to = room.data();
  for (int64_t plane = 0; plane < planes; ++plane, source += height * width)
    for (const int64_t row : row_places)
      for (const int64_t column : column_places) {
        if (row >= 0 && column >= 0) *to = source[row * width + column];
        ++to;
      }
  return room.data();
}

void run(const ConvMap<float>& map) {
  if (!EXTENSOR_SELECT(winograd_table)().map(map)) EXTENSOR_SELECT(conv_table)().map32(map);
}
void run(const ConvMap<double>& map) { EXTENSOR_SELECT(conv_table)().map64(map); }
bool run(const ConvWeightMap<float>& map) {
  if (!EXTENSOR_SELECT(winograd_table)().weight_map(map)) EXTENSOR_SELECT(conv_weight_table)().map32(map);
  return true;
}
bool run(const ConvWeightMap<double>& map) {
  EXTENSOR_SELECT(conv_weight_table)().map64(map);
  return true;
}
#ifdef EXTENSOR_BUILT_AVX512BF16
void run(const ConvMap<uint16_t>& map) { avx512bf16::convolve_halves(map); }
bool run(const ConvWeightMap<uint16_t>& map) { return avx512bf16::half_weight_gradient(map); }
#else
void run(const ConvMap<uint16_t>&) {}
bool run(const ConvWeightMap<uint16_t>&) { return false; }
#endif

// A product for every image, the bias along the rows.
template <class T>
void multiply_images(int64_t images, Product<T> product, const T* bias) {
  const int64_t pixels = product.n;
  if constexpr (sizeof(T) == 2) {
    std::vector<float> wide(bias == nullptr ? 0 : size_t(product.m));
    if (bias != nullptr) EXTENSOR_SELECT(find_conversion)(DType::bfloat16, DType::float32)(bias, wide.data(), product.m);
    HalfProduct halves{product.m, pixels, product.k, product.a, product.a_row, product.a_col, product.b, product.b_row, 1, product.c, pixels};
    halves.row_bias = bias == nullptr ? nullptr : wide.data();
    half_matmul(DType::bfloat16, halves, HalfBatch{images, 0, product.k * pixels, product.m * pixels});
  } else {
    product.row_bias = bias;
    matmul(product, Batch<T>{images, 0, product.k * pixels, product.m * pixels});
  }
}

// How many positions belong to the phases of these directions.
int64_t positions_of(const std::vector<Direction>& directions) {
  int64_t count = 0;
  for (const Direction& direction : directions) count += direction.axis.count;
  return count;
}

// What the positions that see nothing are.
template <class T>
void fill_with_bias(const ConvShape& s, const T* bias, T* x) {
  const int64_t pixels = s.x[0] * s.x[1], channels = s.groups * s.inputs;
  parallel_for(s.images * channels, 0.1 * double(pixels), [&](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane)
      std::fill_n(x + plane * pixels, pixels, bias == nullptr ? T(0) : bias[plane % channels]);
  });
}

// A kernel of one element that looks at every pixel once: a plain matrix product for every image.
bool is_pointwise(const ConvShape& s) {
  for (int d = 0; d < 2; ++d)
    if (s.kernel[d] != 1 || s.stride[d] != 1 || s.padding[d] != 0 || s.x[d] != s.y[d]) return false;
  return s.groups == 1;
}

}  // namespace

KeptWeight::~KeptWeight() {
  if (data != nullptr) recycle_buffer(data, bytes);
}

double conv_ns(const ConvShape& s, int item_size) {
  const double taps = double(s.kernel[0] * s.kernel[1]) * double(s.y[0] * s.y[1]);
  const double pixels = double(s.x[0]) * double(s.x[1]);  // all written on the way back, however few are seen
  return 100 + double(s.images * s.groups) * double(s.inputs) * (double(s.outputs) * taps / 150.0 + pixels / 50.0) * item_size;
}

template <class T>
void conv_forward(const ConvShape& s, const T* x, const T* weight, const T* bias, T* y, KeptWeight* kept, bool relu) {
  if (is_pointwise(s)) {
    const int64_t pixels = s.x[0] * s.x[1];
    Product<T> product{s.outputs, pixels, s.inputs, weight, s.inputs, 1, x, pixels, 1, y, pixels};
    if (relu) product.activation = Activation::relu;
    return multiply_images(s.images, product, bias);
  }
  Direction rows = forward_direction(s, 0), columns = forward_direction(s, 1);
  std::vector<T> room;
  x = seen_source(x, s.images * s.groups * s.inputs, rows, columns, room);
  const int64_t kernel = s.kernel[0] * s.kernel[1], input = s.inputs * kernel;
  run(ConvMap<T>{s.images, s.groups, s.inputs, s.outputs, rows.ready(), columns.ready(), x, weight, s.outputs * input,
                 input, kernel, s.kernel[1], bias, y, s.y[0], s.y[1], kept, relu});
}

template <class T>
void conv_transposed(const ConvShape& s, const T* y, const T* weight, const T* bias, T* x, KeptWeight* kept) {
  if (is_pointwise(s)) {
    const int64_t pixels = s.x[0] * s.x[1];
    return multiply_images(s.images, Product<T>{s.inputs, pixels, s.outputs, weight, 1, s.inputs, y, pixels, 1, x, pixels}, bias);
  }
  if (s.images * s.groups * s.inputs * s.x[0] * s.x[1] == 0) return;
  const std::vector<Direction> all_rows = backward_directions(s, 0), all_columns = backward_directions(s, 1);
  if (positions_of(all_rows) != s.x[0] || positions_of(all_columns) != s.x[1]) fill_with_bias(s, bias, x);
  if (all_rows.size() * all_columns.size() != 1) kept = nullptr;  // there is room for what one map makes of the weight
  const int64_t kernel = s.kernel[0] * s.kernel[1], input = s.inputs * kernel;
  std::vector<T> room;
  for (const Direction& of_rows : all_rows) {
    for (const Direction& of_columns : all_columns) {
      Direction rows = of_rows, columns = of_columns;
      const T* source = seen_source(y, s.images * s.groups * s.outputs, rows, columns, room);
      run(ConvMap<T>{s.images, s.groups, s.outputs, s.inputs, rows.ready(), columns.ready(), source, weight,
                     s.outputs * input, kernel, input, s.kernel[1], bias, x, s.x[0], s.x[1], kept});
    }
  }
}

template <class T>
bool conv_weight_gradient(const ConvShape& s, const T* y, const T* x, T* weight) {
  Direction rows = forward_direction(s, 0), columns = forward_direction(s, 1);
  std::vector<T> room;
  x = seen_source(x, s.images * s.groups * s.inputs, rows, columns, room);
  return run(ConvWeightMap<T>{s.images, s.groups, s.inputs, s.outputs, rows.ready(), columns.ready(), x, y, weight});
}

template void conv_forward(const ConvShape&, const float*, const float*, const float*, float*, KeptWeight*, bool);
template void conv_forward(const ConvShape&, const double*, const double*, const double*, double*, KeptWeight*, bool);
template void conv_transposed(const ConvShape&, const float*, const float*, const float*, float*, KeptWeight*);
template void conv_transposed(const ConvShape&, const double*, const double*, const double*, double*, KeptWeight*);
template bool conv_weight_gradient(const ConvShape&, const float*, const float*, float*);
template bool conv_weight_gradient(const ConvShape&, const double*, const double*, double*);
template void conv_forward(const ConvShape&, const uint16_t*, const uint16_t*, const uint16_t*, uint16_t*, KeptWeight*, bool);
template void conv_transposed(const ConvShape&, const uint16_t*, const uint16_t*, const uint16_t*, uint16_t*, KeptWeight*);
template bool conv_weight_gradient(const ConvShape&, const uint16_t*, const uint16_t*, uint16_t*);

bool is_better_widened(const ConvShape& s) {
  if (s.inputs == 1 || s.outputs == 1) return true;  // half of every pair would be empty
  constexpr double unit_ns = 0.085;  // of the scale of winograd_ns, by which the products of float32 take 0.22
  Direction rows = forward_direction(s, 0), columns = forward_direction(s, 1);
  ConvMap<float> map{};
  map.images = s.images, map.groups = s.groups, map.inputs = s.inputs, map.outputs = s.outputs;
  map.rows = rows.ready(), map.columns = columns.ready();
  return EXTENSOR_SELECT(winograd_table)().pays(map, unit_ns);
}

bool has_half_conv(DType dtype) { return dtype == DType::bfloat16 && has_bf16_unit(); }

}  // namespace extensor
