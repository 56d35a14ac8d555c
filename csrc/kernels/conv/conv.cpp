// What each convolution asks of the two kernels. Compiled once.
#include "kernels/conv/conv.hpp"

#include <vector>

#include "core/dtype.hpp"
#include "kernels/conv/maps.hpp"
#include "kernels/conv/winograd.hpp"
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
  out.axis = {s.x[d], s.y[d], s.stride[d], 0, 1, 0, nullptr, nullptr};
  return out;
}

// Backwards, the positions i of x with the same phase = (i + padding) % stride see the same elements p of the kernel,
// those with p * dilation % stride == phase, each one step apart: y[(i + padding - p * dilation) / stride].
Direction backward_direction(const ConvShape& s, int d, int64_t phase) {
  const int64_t stride = s.stride[d], padding = s.padding[d];
  const int64_t first = phase >= padding ? 0 : (padding - phase + stride - 1) / stride;
  Direction out;
  for (int64_t p = 0; p < s.kernel[d]; ++p) {
    const int64_t distance = p * s.dilation[d] - phase;
    if (distance % stride != 0) continue;
    out.shift.push_back(first - distance / stride);
    out.element.push_back(p);
  }
  const int64_t start = first * stride + phase - padding;
  const int64_t count = start >= s.x[d] ? 0 : (s.x[d] - start + stride - 1) / stride;
  out.axis = {s.y[d], count, 1, start, stride, 0, nullptr, nullptr};
  return out;
}

void run(const ConvMap<float>& map) {
  if (!EXTENSOR_SELECT(winograd_table)().map(map)) EXTENSOR_SELECT(conv_table)().map32(map);
}
void run(const ConvMap<double>& map) { EXTENSOR_SELECT(conv_table)().map64(map); }
void run(const ConvWeightMap<float>& map) {
  if (!EXTENSOR_SELECT(winograd_table)().weight_map(map)) EXTENSOR_SELECT(conv_weight_table)().map32(map);
}
void run(const ConvWeightMap<double>& map) { EXTENSOR_SELECT(conv_weight_table)().map64(map); }

// A kernel of one element that looks at every pixel once: a plain matrix product for every image.
bool is_pointwise(const ConvShape& s) {
  for (int d = 0; d < 2; ++d)
    if (s.kernel[d] != 1 || s.stride[d] != 1 || s.padding[d] != 0 || s.x[d] != s.y[d]) return false;
  return s.groups == 1;
}

}  // namespace

double conv_ns(const ConvShape& s, int item_size) {
  const double taps = double(s.kernel[0] * s.kernel[1]) * double(s.y[0] * s.y[1]);
  return 100 + double(s.images * s.groups) * double(s.inputs * s.outputs) * taps * item_size / 150.0;
}

template <class T>
void conv_forward(const ConvShape& s, const T* x, const T* weight, const T* bias, T* y) {
  if (is_pointwise(s)) {
    const int64_t pixels = s.x[0] * s.x[1];
    Product<T> product{s.outputs, pixels, s.inputs, weight, s.inputs, 1, x, pixels, 1, y, pixels};
    product.row_bias = bias;
    return matmul(product, Batch<T>{s.images, 0, s.inputs * pixels, s.outputs * pixels});
  }
  Direction rows = forward_direction(s, 0), columns = forward_direction(s, 1);
  const int64_t kernel = s.kernel[0] * s.kernel[1], input = s.inputs * kernel;
  run(ConvMap<T>{s.images, s.groups, s.inputs, s.outputs, rows.ready(), columns.ready(), x, weight, s.outputs * input,
                 input, kernel, s.kernel[1], bias, y, s.y[0], s.y[1]});
}

template <class T>
void conv_transposed(const ConvShape& s, const T* y, const T* weight, const T* bias, T* x) {
  if (is_pointwise(s)) {
    const int64_t pixels = s.x[0] * s.x[1];
    Product<T> product{s.inputs, pixels, s.outputs, weight, 1, s.inputs, y, pixels, 1, x, pixels};
    product.row_bias = bias;
    return matmul(product, Batch<T>{s.images, 0, s.outputs * pixels, s.inputs * pixels});
  }
  const int64_t kernel = s.kernel[0] * s.kernel[1], input = s.inputs * kernel;
  for (int64_t i = 0; i < s.stride[0]; ++i) {
    for (int64_t j = 0; j < s.stride[1]; ++j) {
      Direction rows = backward_direction(s, 0, i), columns = backward_direction(s, 1, j);
      if (rows.axis.count == 0 || columns.axis.count == 0) continue;
      run(ConvMap<T>{s.images, s.groups, s.outputs, s.inputs, rows.ready(), columns.ready(), y, weight,
                     s.outputs * input, kernel, input, s.kernel[1], bias, x, s.x[0], s.x[1]});
    }
  }
}

template <class T>
void conv_weight_gradient(const ConvShape& s, const T* y, const T* x, T* weight) {
  Direction rows = forward_direction(s, 0), columns = forward_direction(s, 1);
  run(ConvWeightMap<T>{s.images, s.groups, s.inputs, s.outputs, rows.ready(), columns.ready(), x, y, weight});
}

template void conv_forward(const ConvShape&, const float*, const float*, const float*, float*);
template void conv_forward(const ConvShape&, const double*, const double*, const double*, double*);
template void conv_transposed(const ConvShape&, const float*, const float*, const float*, float*);
template void conv_transposed(const ConvShape&, const double*, const double*, const double*, double*);
template void conv_weight_gradient(const ConvShape&, const float*, const float*, float*);
template void conv_weight_gradient(const ConvShape&, const double*, const double*, double*);

}  // namespace extensor
