// Copies: any layout to a dense one, several dense tensors into one, and one into a larger one.
#pragma once

#include <cstddef>
#include <cstdint>

namespace extensor {

// out, dense in C order, = x of any strides (in bytes). Items of 1, 2, 4 or 8 bytes, at most 32 axes.
void copy_to_dense(int ndim, const int64_t* shape, const int64_t* strides, size_t item, const void* x, void* out);

// One of the tensors that are joined: `bytes` of it follow each other for every step of the outer axes.
struct Part {
  const void* data;
  size_t bytes;
};

// out[o] = parts[0][o], parts[1][o], ... one behind the other.
void join(int64_t outer, int64_t count, const Part* parts, void* out);

// Each of `outer` rows of so many bytes, with its last `shift` bytes first.
void roll(int64_t outer, size_t bytes, size_t shift, const void* x, void* out);

// out = x, dense, with so many items before and after each axis, all of them `value`. Items of 1, 2, 4 or 8 bytes.
void pad(int ndim, const int64_t* shape, const int64_t (*widths)[2], size_t item, const void* value, const void* x, void* out);

}  // namespace extensor
