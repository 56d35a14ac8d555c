// Numbers of NumPy's default generator (PCG64: a 128-bit linear congruence, xor-shift-low, random rotation), in its order.
#pragma once

#include <cstdint>

namespace extensor {

// The low and the high half of the state and of the increment.
struct Pcg64 {
  uint64_t state[2], increment[2];
};

// kept[i] = whether the i-th next double of the stream, in [0, 1), is at least p.
void doubles_at_least(const Pcg64& stream, double p, unsigned char* kept, int64_t count);

}  // namespace extensor
