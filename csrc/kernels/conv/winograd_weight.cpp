// The gradient of the weight by Winograd's method.
//
//   weight[o, c, 3, 3] = sum over tiles of  grad[o, 4 x 4] correlated with seen[c, 6 x 6]
//
//   1. the blocks of tiles (winograd_tiles.hpp) are cut into slices; each slice has sums of its own, in float64 if it has
//      several blocks: the products of one are float32
//   2. for each block: copy the gradients and what they see, channels into lanes; transform both; for each point
//        sums[outputs, inputs] += grad[tiles, outputs].T @ seen[tiles, inputs]
//   3. the slices are added in order, and transformed to the elements of the kernel
//   4. if one of these is not finite, or an image has pixels of very different sizes, the direct method computes them all
//
// Where the cuts are depends on the sizes alone, so the bits do not depend on the threads.
// Compiled once per instruction set.
#include "kernels/conv/winograd_weight.hpp"

#include "core/threads.hpp"
#include "kernels/conv/winograd_products.hpp"
#include "kernels/conv/winograd_tiles.hpp"

namespace extensor::EXTENSOR_ISA {
namespace {

// A slice has work enough to outweigh its sums, and all sums together stay small beside the images.
constexpr int64_t most_slices = 8, slice_tiles = 128, sums_bytes = 64 << 20;
// Tiles that one pass over the sums is to serve.
constexpr int64_t least_tiles = 64;

EXTENSOR_INLINE void store_sums(float* to, Floats value) { store(to, value); }
EXTENSOR_INLINE void store_sums(double* to, Floats value) {
  store(to, widen_low(value));
  store(to + Doubles::lanes, widen_high(value));
}

bool are_finite(const float* values, int64_t count) {
  Floats suspicion(0.0);
  for (int64_t i = 0; i < count; i += Floats::lanes) suspicion = add_suspicion(suspicion, load_first(values + i, count - i));
  return !any(isnan(suspicion));
}

// out[o, c, 3, 3] for a vector of inputs, from the sums of all slices.
template <class Sum>
void transform_sums(const Sum* sums, int64_t slices, int64_t slice_size, int64_t distance, int64_t count, float* out) {
  constexpr int lanes = Doubles::lanes;
  Doubles points[winograd_points][winograd_points], taps[3][3];
  for (int i = 0; i < winograd_points; ++i) {
    for (int j = 0; j < winograd_points; ++j, sums += distance) {
      points[i][j] = load_as<double>(sums);
      for (int64_t s = 1; s < slices; ++s) points[i][j] = points[i][j] + load_as<double>(sums + s * slice_size);
      points[i][j] = points[i][j] * (point_factors[i] * point_factors[j]);
    }
  }
  transform_square(points, taps, ProductTransform());
  for (int p = 0; p < 3; ++p) {
    for (int q = 0; q < 3; ++q) {
      double lane[lanes];
      store(lane, taps[p][q]);
      for (int64_t c = 0; c < count; ++c) out[c * 9 + p * 3 + q] = float(lane[c]);
    }
  }
}

// The gradient from slices of so many blocks, whose sums are of a type that holds them.
template <class Sum>
bool add_slices(const ConvWeightMap<float>& m, const TilePlan& plan, int64_t slice_blocks) {
  const int64_t inputs = whole_vectors<float>(m.inputs), outputs = whole_vectors<float>(m.outputs);
  const int64_t tiles = plan.together * plan.unit_tiles;
  const int64_t seen_distance = point_distance(tiles, inputs), grad_distance = point_distance(tiles, outputs);
  const Region seen_region{0, m.columns.shift[0], plan.band * winograd_outputs + 2, plan.across * winograd_outputs + 2};
  const Region grad_region{0, 0, plan.band * winograd_outputs, plan.across * winograd_outputs};
  const int64_t room = max_of(seen_region.rows * seen_region.columns * inputs, grad_region.rows * grad_region.columns * outputs);
  const int64_t source_image = m.inputs * m.rows.source * m.columns.source, grad_image = m.outputs * plan.rows * plan.columns;

  const int64_t distance = point_distance(m.outputs, inputs), size = winograd_products * distance;
  const int64_t slices = ceil_div(plan.blocks, slice_blocks);
  Workspace<Sum> sums(slices * size);
  Workspace<uint8_t> fine(slices);
  if (sums.data() == nullptr) return false;
  const double ns = winograd_ns(m.inputs, m.outputs) * double(tiles * slice_blocks);
  parallel_for(slices, ns, [&](int64_t begin, int64_t end) {
    Workspace<float> pixels(room), seen(winograd_products * seen_distance), grad(winograd_products * grad_distance);
    for (int64_t slice = begin; slice < end; ++slice) {
      Sum* const total = sums.data() + slice * size;
      bool all_fine = true;
      const int64_t first_block = slice * slice_blocks, last_block = min_of(plan.blocks, first_block + slice_blocks);
      for (int64_t block = first_block; block < last_block; ++block) {
        const int64_t first = block * plan.together, stop = min_of(plan.units, first + plan.together);
        for (int64_t unit = first; unit < stop; ++unit) {
          const int64_t tile = (unit - first) * plan.unit_tiles;
          Region part = seen_region;
          part.first_row = plan.first_row(unit) + m.rows.shift[0];
          all_fine &= !copy_region(m.source + plan.image(unit) * source_image, m.inputs, m.rows.source, m.columns.source, part,
                                   pixels.data()).is_wide();
          transform_tiles<6>(plan, part, inputs, pixels.data(), seen_distance, seen.data() + tile * inputs, InputTransform());
          part = grad_region;
          part.first_row = plan.first_row(unit);
          all_fine &= !copy_region(m.grad + plan.image(unit) * grad_image, m.outputs, plan.rows, plan.columns, part,
                                   pixels.data()).is_wide();
          transform_tiles<4>(plan, part, outputs, pixels.data(), grad_distance, grad.data() + tile * outputs, TapTransform());
        }
        for (int point = 0; point < winograd_products; ++point) {
          Sum* to = total + point * distance;
          const PointProduct product{(stop - first) * plan.unit_tiles, grad.data() + point * grad_distance, 1, outputs,
                                     seen.data() + point * seen_distance, inputs};
          multiply_point<true>(product, m.outputs, inputs, [&](int64_t row, int64_t column, Floats added) EXTENSOR_INLINE_LAMBDA {
            if (row >= m.outputs) return;
            Sum* const at = to + row * inputs + column;
            if (sizeof(Sum) == sizeof(float) || block == first_block) store_sums(at, added);
            else if constexpr (sizeof(Sum) == sizeof(double)) add_to_sums(at, added);
          });
        }
      }
      fine.data()[slice] = all_fine;
    }
  });
  for (int64_t slice = 0; slice < slices; ++slice)
    if (!fine.data()[slice]) return false;

  constexpr int lanes = Doubles::lanes;
  parallel_for(m.outputs, 10.0 * double(inputs), [&](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; ++o)
      for (int64_t c = 0; c < m.inputs; c += lanes)
        transform_sums(sums.data() + o * inputs + c, slices, size, distance, min_of(lanes, m.inputs - c), m.out + (o * m.inputs + c) * 9);
  });
  return are_finite(m.out, m.outputs * m.inputs * 9);
}

}  // namespace

bool winograd_weight_gradient(const ConvWeightMap<float>& m) {
  if (!winograd_pays(m)) return false;
  const TilePlan plan(m.images, m.rows.count, m.columns.count, whole_wides<float>(m.inputs) + whole_wides<float>(m.outputs), least_tiles);
  const int64_t wanted = max_of(1, min_of(min_of(most_slices, plan.units * plan.unit_tiles / slice_tiles),
                                          sums_bytes / (winograd_products * m.outputs * whole_wides<float>(m.inputs) * int64_t(sizeof(double)))));
  const int64_t slice_blocks = ceil_div(plan.blocks, min_of(wanted, plan.blocks));
  return slice_blocks == 1 ? add_slices<float>(m, plan, 1) : add_slices<double>(m, plan, slice_blocks);
}

}  // namespace extensor::EXTENSOR_ISA
