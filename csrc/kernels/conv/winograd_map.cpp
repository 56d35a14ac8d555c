// Convolution by Winograd's method, from a source to an output: the forward pass and the gradient of the input.
//
//   1. transform the weight: for each of 36 points a matrix [inputs, outputs], in panels in the order in which 2b reads them
//   2. for each block of tiles (winograd_tiles.hpp):
//      a. copy what its units see, channels into lanes; transform it: for each point a matrix [tiles, inputs]
//      b. for each point: products[tiles, outputs] = tiles @ weight
//      c. transform the products to outputs, add the bias; copy them, after relu, to where they belong, pixels into lanes
//   3. images with a result that is not finite, or with pixels of very different sizes, are convolved again, directly
//
// An element of the output is always the same chain of operations, so the bits do not depend on how the work is cut.
// Compiled once per instruction set.
#include <initializer_list>

#include "core/threads.hpp"
#include "kernels/conv/winograd.hpp"
#include "kernels/conv/winograd_guard.hpp"
#include "kernels/conv/winograd_products.hpp"
#include "kernels/conv/winograd_tiles.hpp"
#include "kernels/conv/winograd_weight.hpp"

namespace extensor::EXTENSOR_ISA {
namespace {

// Tiles that one pass over the transformed weight is to serve.
constexpr int64_t least_tiles = 24;
// Longer sums over channels are made of pieces.
constexpr int64_t longest_chain = 32;

// nine[element][lane]: the kernels of one input, a lane for each of `count` outputs, zeros beyond.
EXTENSOR_INLINE void load_kernels(const float* from, int64_t output, int64_t count, Mask<float> existing, Floats (&nine)[9]) {
  constexpr int lanes = Floats::lanes, strip = part_lanes<float>;
  const float* rows[lanes];
  for (int i = 0; i < lanes; ++i) rows[i] = from + (i < count ? i : 0) * output;
  Floats columns[strip];
  for (const int first : {0, strip, 9 - strip}) {  // the last strip overlaps: nothing beyond a kernel is read
    load_transposed(rows, first, columns);
    for (int i = 0; i < strip; ++i) nine[first + i] = keep(existing, columns[i]);
  }
}

// How many channels a piece of a sum has.
inline int64_t chain_depth(int64_t inputs) { return ceil_div(inputs, ceil_div(inputs, longest_chain)); }

// weight[point, input, output], each piece of the inputs in panels of outputs; computed in float64 and rounded once. Whether the
// method suits their sizes.
bool transform_weight(const ConvMap<float>& m, int64_t outputs, int64_t distance, float* to) {
  constexpr int lanes = Floats::lanes, half = Doubles::lanes;
  const int64_t first_row = least_shift(m.rows), first_column = least_shift(m.columns);
  Spread spread;
  Workspace<double> sizes(9 * outputs);
  std::memset(sizes.data(), 0, size_t(9 * outputs) * sizeof(double));
  const int64_t depth = chain_depth(m.inputs);
  for (int64_t c = 0; c < m.inputs; ++c) {  // 36 places are written to at a time: each is to go forward steadily
    const int64_t piece = c / depth * depth, rows = min_of(depth, m.inputs - piece);
    for (int64_t o = 0; o < outputs; o += lanes) {
      const int64_t count = min_of(lanes, m.outputs - o);
      const Mask<float> existing = lanes_below<float>(int(count));
      Spread::Part sizes_of_part(spread, o);
      Floats nine[9];
      load_kernels(m.weight + o * m.weight_output + c * m.weight_input, m.weight_output, count, existing, nine);
      Doubles taps[2][3][3];
      for (int64_t p = 0; p < 3; ++p) {
        for (int64_t q = 0; q < 3; ++q) {
          const Floats tap = nine[m.rows.element[p] * 3 + m.columns.element[q]];
          sizes_of_part.add(tap, existing);
          const int64_t row = m.rows.shift[p] - first_row, column = m.columns.shift[q] - first_column;
          add_to_sums(sizes.data() + (row * 3 + column) * outputs + o, abs(tap));
          taps[0][row][column] = widen_low(tap);
          taps[1][row][column] = widen_high(tap);
        }
      }
      for (int part = 0; part < 2; ++part) {
        Doubles points[winograd_points][winograd_points];
        transform_square(taps[part], points, TapTransform());
        float* target = to + piece * outputs + point_panel(rows, outputs, c - piece, o) + part * half;
        for (int i = 0; i < winograd_points; ++i)
          for (int j = 0; j < winograd_points; ++j, target += distance)
            store_as(target, points[i][j] * (point_factors[i] * point_factors[j]));
      }
    }
  }
  return !spread.is_wide() && are_seen_enough(m.rows, m.columns, sizes.data(), outputs);
}

// pixels[vector of outputs, row, column, lane] of a unit, from the products of its tiles. Whether all are finite.
bool transform_back(const TilePlan& plan, const float* products, int64_t outputs, int64_t distance, const float* bias, float* pixels) {
  constexpr int lanes = Floats::lanes;
  const int64_t width = plan.across * winograd_outputs;
  Floats suspicion(0.0);
  for (int64_t o = 0; o < outputs; o += lanes) {
    const Floats added = load(bias + o);
    for (int64_t tile = 0; tile < plan.unit_tiles; ++tile) {
      Floats points[winograd_points][winograd_points], square[winograd_outputs][winograd_outputs];
      const float* from = products + tile * outputs + o;
      for (int i = 0; i < winograd_points; ++i)
        for (int j = 0; j < winograd_points; ++j, from += distance) points[i][j] = load(from);
      transform_square(points, square, ProductTransform());
      float* to = pixels + (tile / plan.across * winograd_outputs * width + tile % plan.across * winograd_outputs) * lanes;
      for (int i = 0; i < winograd_outputs; ++i) {
        for (int j = 0; j < winograd_outputs; ++j) {
          const Floats pixel = square[i][j] + added;
          suspicion = add_suspicion(suspicion, pixel);
          store(to + (i * width + j) * lanes, pixel);
        }
      }
    }
    pixels += plan.unit_tiles * winograd_outputs * winograd_outputs * lanes;
  }
  return !any(isnan(suspicion));
}

// The pixels of a unit to out[output, first_row.., :].
void store_unit(const TilePlan& plan, int64_t unit, const float* pixels, int64_t outputs, float* out, int64_t plane, bool relu) {
  constexpr int lanes = Floats::lanes, strip = part_lanes<float>;
  const int64_t width = plan.across * winograd_outputs;
  const bool whole = width == plan.columns;  // rows without a rest are one long row
  const int64_t lines = whole ? 1 : plan.unit_rows(unit), length = whole ? plan.unit_rows(unit) * width : plan.columns;
  for (int64_t o = 0; o < outputs; ++o) {
    if (o > 0 && o % lanes == 0) pixels += plan.unit_tiles * winograd_outputs * winograd_outputs * lanes;
    if (o % strip != 0) continue;
    const int channels = int(min_of(strip, outputs - o));
    for (int64_t line = 0; line < lines; ++line) {
      float* to = out + o * plane + (plan.first_row(unit) + line) * plan.columns;
      for (int64_t x = 0; x < length; x += lanes) {
        const int count = int(min_of(lanes, length - x));
        const float* rows[lanes];
        for (int i = 0; i < lanes; ++i) rows[i] = pixels + (line * width + x + (i < count ? i : 0)) * lanes;
        Floats strips[strip];
        load_transposed(rows, o % lanes, strips);
        for (int i = 0; i < channels; ++i) store_first(to + i * plane + x, relu_if(relu, strips[i]), count);
      }
    }
  }
}

bool winograd_map(const ConvMap<float>& m) {
  if (!winograd_pays(m) || (m.kept != nullptr && m.kept->is_filled && !m.kept->suits_winograd)) return false;
  const int64_t inputs = whole_vectors<float>(m.inputs), outputs = whole_vectors<float>(m.outputs);
  const TilePlan plan(m.images, m.rows.count, m.columns.count, whole_wides<float>(m.inputs) + whole_wides<float>(m.outputs), least_tiles);
  const int64_t weight_distance = point_distance(m.inputs, outputs);
  WeightRoom<float> weight(m.kept, winograd_products * weight_distance);
  if (!weight.is_filled()) {
    if (!transform_weight(m, outputs, weight_distance, weight.data())) return false;
    if (m.kept != nullptr) m.kept->suits_winograd = true;
    weight.set_filled();
  }
  Workspace<float> bias(outputs);
  for (int64_t o = 0; o < outputs; ++o) bias.data()[o] = m.bias && o < m.outputs ? m.bias[o] : 0;

  const int64_t tiles = ceil_div(plan.together * plan.unit_tiles, 4) * 4;
  const int64_t seen_distance = point_distance(tiles, inputs), product_distance = point_distance(tiles, outputs);
  Region region{0, least_shift(m.columns), plan.band * winograd_outputs + 2, plan.across * winograd_outputs + 2};
  const int64_t unit_pixels = plan.unit_tiles * winograd_outputs * winograd_outputs;
  const int64_t room = max_of(region.rows * region.columns * inputs, unit_pixels * outputs);
  const int64_t source_image = m.inputs * m.rows.source * m.columns.source, plane = m.out_height * m.out_width;

  const int64_t depth = chain_depth(m.inputs);
  Workspace<uint8_t> fine(plan.units);
  const double ns = 500 + winograd_ns(m.inputs, m.outputs) * double(plan.together * plan.unit_tiles);
  parallel_for(plan.blocks, ns, [&](int64_t begin, int64_t end) {
    Workspace<float> pixels(room), seen(winograd_products * seen_distance), products(winograd_products * product_distance);
    for (int64_t block = begin; block < end; ++block) {
      const int64_t first = block * plan.together, stop = min_of(plan.units, first + plan.together);
      for (int64_t unit = first; unit < stop; ++unit) {
        Region part = region;
        part.first_row = plan.first_row(unit) + least_shift(m.rows);
        fine.data()[unit] = !copy_region(m.source + plan.image(unit) * source_image, m.inputs, m.rows.source, m.columns.source,
                                         part, pixels.data()).is_wide();
        transform_tiles<6>(plan, region, inputs, pixels.data(), seen_distance,
                           seen.data() + (unit - first) * plan.unit_tiles * inputs, InputTransform());
      }
      for (int point = 0; point < winograd_products; ++point) {
        float* to = products.data() + point * product_distance;
        for (int64_t c = 0; c < m.inputs; c += depth) {
          const PointProduct product{min_of(depth, m.inputs - c), seen.data() + point * seen_distance + c, inputs, 1,
                                     weight.data() + point * weight_distance + c * outputs, 0, true};
          multiply_point<false>(product, (stop - first) * plan.unit_tiles, outputs,
                         [&](int64_t row, int64_t column, Floats sums) EXTENSOR_INLINE_LAMBDA {
                           float* at = to + row * outputs + column;
                           store(at, c == 0 ? sums : load(at) + sums);
                         });
        }
      }
      for (int64_t unit = first; unit < stop; ++unit) {
        fine.data()[unit] &= transform_back(plan, products.data() + (unit - first) * plan.unit_tiles * outputs, outputs,
                                           product_distance, bias.data(), pixels.data());
        store_unit(plan, unit, pixels.data(), m.outputs, m.out + plan.image(unit) * m.outputs * plane, plane, m.relu);
      }
    }
  });
  for (int64_t unit = 0; unit < plan.units; ++unit) {
    if (fine.data()[unit]) continue;
    ConvMap<float> image = m;
    image.images = 1;
    image.kept = nullptr;  // which is for this way
    image.source += plan.image(unit) * source_image;
    image.out += plan.image(unit) * m.outputs * plane;
    conv_table().map32(image);
    unit = (plan.image(unit) + 1) * plan.bands - 1;  // on with the next image
  }
  return true;
}

}  // namespace

const WinogradTable& winograd_table() {
  static constexpr WinogradTable table = {winograd_pays<ConvMap<float>>, winograd_map, winograd_weight_gradient};
  return table;
}

}  // namespace extensor::EXTENSOR_ISA
