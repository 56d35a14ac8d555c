// Decompositions of small matrices, one after the other: what a call of LAPACK costs more than the arithmetic for. Computed in
// double, float32 rounded once. Each function returns false where a matrix is not finite or an iteration does not end; the
// outputs are undefined then.
#pragma once

#include <cstdint>

#include "core/dtype.hpp"

namespace extensor {

constexpr int64_t small_spectrum = 12;  // the largest number of rotated columns; more are faster by LAPACK
constexpr int64_t small_factor = 32;    // the longest side of a matrix

// Eigenvectors and singular vectors are LAPACK's: another method finds them with other signs, and the same call would have another
// outcome without this core.

// Eigenvalues of the symmetric part of x (count, n, n), ascending.
bool small_eigvalsh(DType dtype, const void* x, void* values, int64_t count, int64_t n);

// The k = min(m, n) singular values of x (count, m, n), descending.
bool small_svdvals(DType dtype, const void* x, void* values, int64_t count, int64_t m, int64_t n);

// x (count, m, n) = q r with k = min(m, n) columns in q; signs as LAPACK has them.
bool small_qr(DType dtype, const void* x, void* q, void* r, int64_t count, int64_t m, int64_t n);

// The sign and the logarithm of the size of the determinants of x (count, n, n); 0 and -inf of a singular matrix.
bool small_slogdet(DType dtype, const void* x, void* sign, void* logarithm, int64_t count, int64_t n);

}  // namespace extensor
