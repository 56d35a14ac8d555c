// Whole numbers: parts and bounds. Not those of the standard library, whose inline functions one instruction set would lend to
// another (isa.hpp).
#pragma once

#include <cstdint>

namespace extensor {

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
constexpr int64_t min_of(int64_t a, int64_t b) { return a < b ? a : b; }
constexpr int64_t max_of(int64_t a, int64_t b) { return a > b ? a : b; }

}  // namespace extensor
