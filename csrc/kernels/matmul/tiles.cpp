// Compiled once per instruction set.
#include "kernels/matmul/tiles.hpp"

#include <utility>

namespace extensor::EXTENSOR_ISA {
namespace {

template <class T, int Vectors, bool PackedA, int... Index>
const TileFunction<T>* table_of(std::integer_sequence<int, Index...>) {
  static constexpr TileFunction<T> of_rows[] = {nullptr, multiply_tile<T, Index + 1, Vectors, PackedA>...};
  return of_rows;
}

}  // namespace

template <class T>
const TileFunction<T>* tiles_for(int columns, bool packed_a) {
  constexpr auto all = std::make_integer_sequence<int, max_rows>();
  if (columns <= Vec<T>::lanes) return packed_a ? table_of<T, 1, true>(all) : table_of<T, 1, false>(all);
  return packed_a ? table_of<T, 2, true>(all) : table_of<T, 2, false>(all);
}

template const TileFunction<float>* tiles_for(int, bool);
template const TileFunction<double>* tiles_for(int, bool);

}  // namespace extensor::EXTENSOR_ISA
