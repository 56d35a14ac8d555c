// Steps of optimisers that take a parameter as a matrix, and the moving average of parameters.
#pragma once

#include <cstdint>

namespace extensor {

// Adafactor of `batch` matrices: the average square of an element is row * column / mean(row). Without a matrix (`rows` is 0) the
// averages are those of the `columns` elements themselves.
struct Adafactor {
  int64_t batch, rows, columns;
  double share;   // of the new squares in the averages
  double tiny;    // the least average; its square, for the average square of an element
  double length;  // of the step, before it is clipped
  double clip;    // the largest root mean square of a step that is not
  double shrink;  // what the parameter is multiplied by first
  double sign;    // of the gradient
};
template <class T>
void adafactor(const Adafactor& s, const T* p, const T* g, const T* row, const T* column, T* new_p, T* new_row, T* new_column);

// Muon: the momentum of a matrix, made near orthogonal by an odd polynomial of its singular values.
struct Muon {
  int64_t rows, columns;
  double momentum, shrink, rate, eps, sign;
  double coefficients[3];
  int64_t steps;
  bool nesterov;
};
template <class T>
void muon(const Muon& s, const T* p, const T* g, const T* buffer, T* new_p, T* new_buffer);

// to = decay * average + (1 - decay) * value
template <class T>
void moving_average(int64_t n, double decay, const T* average, const T* value, T* to);

}  // namespace extensor
