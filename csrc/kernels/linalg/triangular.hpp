// Triangular systems with few right sides: the matrix is read once, row by row.
#pragma once

#include <cstdint>

#include "core/isa.hpp"

namespace extensor {

constexpr int64_t few_sides = 8;

// a: (count, n, n), of which one triangle is read; b and out: (count, n, k), k <= few_sides. Computed in double; false if there is a
// zero on a diagonal.
struct TriangularTable {
  bool (*solve32)(const float* a, const float* b, float* out, int64_t count, int64_t n, int64_t k, bool upper, bool unit_diagonal);
  bool (*solve64)(const double* a, const double* b, double* out, int64_t count, int64_t n, int64_t k, bool upper, bool unit_diagonal);
};
EXTENSOR_PER_ISA(const TriangularTable& triangular_table())

}  // namespace extensor
