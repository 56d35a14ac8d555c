// Linear algebra of small square matrices, one after the other: what a call of LAPACK costs more than the arithmetic for. float32 is
// computed in double and rounded once. Each function returns false where a matrix cannot be handled (singular, not positive
// definite, not finite); the outputs are undefined then.
#pragma once

#include <cstdint>

#include "core/dtype.hpp"

namespace extensor {

constexpr int64_t small_matrix = 32;  // the largest n

// x: (count, n, n); out alike
bool small_inverse(DType dtype, const void* x, void* out, int64_t count, int64_t n);
// x: (count, n, n); out: (count,). A singular matrix has the determinant 0.
bool small_determinant(DType dtype, const void* x, void* out, int64_t count, int64_t n);
// a: (count, n, n), b and out: (count, n, k)
bool small_solve(DType dtype, const void* a, const void* b, void* out, int64_t count, int64_t n, int64_t k);
// The same for a triangle of a; with unit_diagonal its diagonal counts as ones.
bool small_triangular_solve(DType dtype, const void* a, const void* b, void* out, int64_t count, int64_t n, int64_t k, bool upper,
                            bool unit_diagonal);
// The triangular factor of the symmetric part of x.
bool small_cholesky(DType dtype, const void* x, void* out, int64_t count, int64_t n, bool upper);

}  // namespace extensor
