// When the rounding errors of Winograd's method stay small beside a result: the sizes of what it multiplies.
//
// The bound. An output of a tile is y = A ((G g) * (B d)) in each of two dimensions (winograd_transforms.hpp), added up over the
// channels. Each of the operations on the way errs by at most u = 2^-24 of what the same operations give with all signs
// positive. With |d| <= x, that is per channel at most
//
//   sum over taps p of  gamma_p |g_p| x,      gamma_p = sum over points k of |A_k| |G_kp| sum over l of |B_kl| <= 14.32
//
// in one dimension, and with 14.32^2 < 206 in two. A product passes 4 roundings in B, 1 in G (done in float64), at most
// 32 + ceil(channels / 32) in the sum over channels, 6 in A and 1 for the bias. So, to first order in u,
//
//   |error of y|  <=  206 (44 + channels / 32) u  max|x|  S,         S = sum over channels and all taps of |g|.
//
// A direct sum errs by a multiple of the taps it sees, S_seen, and at the edge of an image these may be few: there the others
// meet zeros, whose products cancel only up to rounding. The guard asks for S <= 16 S_seen at every place, for every output:
//
//   |error of y|  <=  3296 (44 + channels / 32) u  max|x|  S_seen
//
// which is below 1 % up to 32 channels, in the worst case that nothing cancels; what one sees is a thousandth of it.
#pragma once

#include "kernels/conv/window.hpp"
#include "kernels/conv/winograd_transforms.hpp"

namespace extensor::EXTENSOR_ISA {

constexpr double most_unseen = 16;  // S over S_seen

// Which of the three taps of an axis lie inside of the source together, for any output: bit t is the tap with the t-th least
// shift, element s of the result whether there is an output that sees the set s.
struct SeenTaps {
  bool sets[8] = {};

  explicit SeenTaps(const ConvAxis& axis) {
    const int64_t least = least_shift(axis);
    for (int64_t i = 0; i < axis.count; ++i) {
      int set = 0;
      for (int t = 0; t < winograd_taps; ++t) {
        const int64_t place = i + least + t;
        if (place >= 0 && place < axis.source) set |= 1 << t;
      }
      sets[set] = true;
    }
  }
};

// Whether at every place the taps seen are not dwarfed by the others. sums[row * 3 + column][output]: those of their sizes.
inline bool are_seen_enough(const ConvAxis& rows, const ConvAxis& columns, const double* sums, int64_t outputs) {
  const SeenTaps seen_rows(rows), seen_columns(columns);
  for (int64_t o = 0; o < outputs; ++o) {
    double all = 0;
    for (int tap = 0; tap < winograd_taps * winograd_taps; ++tap) all += sums[tap * outputs + o];
    for (int row_set = 0; row_set < 8; ++row_set) {
      for (int column_set = 0; column_set < 8; ++column_set) {
        if (!seen_rows.sets[row_set] || !seen_columns.sets[column_set]) continue;
        double seen = 0;
        for (int tap = 0; tap < winograd_taps * winograd_taps; ++tap)
          if (row_set >> tap / 3 & column_set >> tap % 3 & 1) seen += sums[tap * outputs + o];
        if (all > most_unseen * seen) return false;
      }
    }
  }
  return true;
}

}  // namespace extensor::EXTENSOR_ISA
