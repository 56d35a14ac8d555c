// Convolution of images, its transpose, and the gradient of its weight.
//
//   y[n, o, i, j] = bias[o] + sum over c, p, q of  x[n, c, i * stride + p * dilation - padding, ...] * weight[o, c, p, q]
//
// All arrays are dense: images (N, C, H, W), weights (O, C / groups, kh, kw). T is float, double, or uint16_t for the bits of
// bfloat16 where has_half_conv says so (half.hpp).
#pragma once

#include <cstdint>

namespace extensor {

// One convolution. Channels are counted per group; index 0 is the height, 1 the width.
struct ConvShape {
  int64_t images, groups, inputs, outputs;
  int64_t x[2], kernel[2], y[2];
  int64_t stride[2], padding[2], dilation[2];  // the padding before; what is behind follows from the sizes
};

struct KeptWeight;

// y = conv(x, weight) + bias. The bias may be null, and so may be what is kept of a weight for later calls (maps.hpp). relu may
// follow, but not for halves.
template <class T>
void conv_forward(const ConvShape& shape, const T* x, const T* weight, const T* bias, T* y, KeptWeight* kept = nullptr, bool relu = false);

// x = the adjoint of conv, applied to y, + bias: the gradient of the input, and the transposed convolution.
template <class T>
void conv_transposed(const ConvShape& shape, const T* y, const T* weight, const T* bias, T* x, KeptWeight* kept = nullptr);

// weight[o, c, p, q] = sum over n, i, j of  y[n, o, i, j] * x[n, c, i * stride + p * dilation - padding, ...]
// False where it must be computed in another way: see half.hpp.
template <class T>
bool conv_weight_gradient(const ConvShape& shape, const T* y, const T* x, T* weight);

// Rough time of each of them.
double conv_ns(const ConvShape& shape, int item_size);

}  // namespace extensor
