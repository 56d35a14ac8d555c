#include "kernels/optim/matrices.hpp"

#include <cmath>
#include <vector>

#include "core/dtype.hpp"
#include "core/threads.hpp"
#include "core/workspace.hpp"
#include "kernels/matmul/matmul.hpp"
#include "kernels/optim/norm.hpp"

namespace extensor {
namespace {

constexpr int64_t block = 4096;

template <class T> constexpr DType dtype_of_type = sizeof(T) == 4 ? DType::float32 : DType::float64;

// body(i) for n elements.
template <class Body>
void each_element(int64_t n, double ns, const Body& body) {
  parallel_for((n + block - 1) / block, double(block) * ns, [&](int64_t begin, int64_t end) {
    const int64_t last = end * block < n ? end * block : n;
    for (int64_t i = begin * block; i < last; ++i) body(i);
  });
}

// Means of squares along the rows of a matrix, in float64.
template <class T>
void row_means(int64_t rows, int64_t columns, const T* g, T* means) {
  constexpr int lanes = 8;
  parallel_for(rows, double(columns) * 0.3, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const T* row = g + r * columns;
      double sums[lanes] = {};
      int64_t c = 0;
      for (; c + lanes <= columns; c += lanes)
        for (int k = 0; k < lanes; ++k) sums[k] += double(row[c + k] * row[c + k]);
      for (; c < columns; ++c) sums[c % lanes] += double(row[c] * row[c]);
      const double sum = ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
      means[r] = T(sum / double(columns));
    }
  });
}

// The same along the columns, some of them at a time.
template <class T>
void column_means(int64_t rows, int64_t columns, const T* g, T* means) {
  constexpr int64_t width = 128;
  parallel_for((columns + width - 1) / width, double(rows * width) * 0.3, [&](int64_t begin, int64_t end) {
    for (int64_t strip = begin; strip < end; ++strip) {
      const int64_t first = strip * width, count = columns - first < width ? columns - first : width;
      double sums[width] = {};
      for (int64_t r = 0; r < rows; ++r) {
        const T* row = g + r * columns + first;
        for (int64_t c = 0; c < count; ++c) sums[c] += double(row[c] * row[c]);
      }
      for (int64_t c = 0; c < count; ++c) means[first + c] = T(sums[c] / double(rows));
    }
  });
}

// The averages of one matrix, and its step before it is scaled.
template <class T>
void matrix_step(const Adafactor& s, const T* g, const T* row, const T* column, T* move, T* new_row, T* new_column) {
  const T share = T(s.share), least = T(s.tiny * s.tiny), sign = T(s.sign);
  row_means(s.rows, s.columns, g, new_row);
  column_means(s.rows, s.columns, g, new_column);
  double total = 0;
  for (int64_t r = 0; r < s.rows; ++r) {
    new_row[r] = row[r] + share * (new_row[r] - row[r]);
    total += double(new_row[r]);
  }
  for (int64_t c = 0; c < s.columns; ++c) new_column[c] = column[c] + share * (new_column[c] - column[c]);
  const T mean = T(total / double(s.rows)), divisor = mean < T(s.tiny) ? T(s.tiny) : mean;
  parallel_for(s.rows, double(s.columns) * 2, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const T* from = g + r * s.columns;
      T* to = move + r * s.columns;
      for (int64_t c = 0; c < s.columns; ++c) {
        const T spread = new_row[r] * new_column[c] / divisor;
        to[c] = sign * from[c] / std::sqrt(spread < least ? least : spread);
      }
    }
  });
}

}  // namespace

template <class T>
void adafactor(const Adafactor& s, const T* p, const T* g, const T* row, const T* column, T* new_p, T* new_row, T* new_column) {
  const int64_t matrix = s.rows * s.columns, n = s.batch * (s.rows > 0 ? matrix : s.columns);
  if (s.rows > 0) {
    for (int64_t b = 0; b < s.batch; ++b)
      matrix_step(s, g + b * matrix, row + b * s.rows, column + b * s.columns, new_p + b * matrix, new_row + b * s.rows, new_column + b * s.columns);
  } else {
    const T share = T(s.share), least = T(s.tiny * s.tiny), sign = T(s.sign);
    each_element(n, 2, [&](int64_t i) {
      new_column[i] = column[i] + share * (g[i] * g[i] - column[i]);
      new_p[i] = sign * g[i] / std::sqrt(new_column[i] < least ? least : new_column[i]);
    });
  }
  const double size = std::sqrt(sum_of_squares(dtype_of_type<T>, new_p, n) / double(n > 0 ? n : 1)) / s.clip;
  const T scale = T(s.length / (size > 1.0 ? size : 1.0)), shrink = T(s.shrink);
  each_element(n, 0.3, [&](int64_t i) { new_p[i] = p[i] * shrink - new_p[i] * scale; });
}

template <class T>
void muon(const Muon& s, const T* p, const T* g, const T* buffer, T* new_p, T* new_buffer) {
  const int64_t n = s.rows * s.columns;
  const bool tall = s.rows > s.columns;
  const int64_t small = tall ? s.columns : s.rows;
  Workspace<T> direction(n), product(n), squared(small * small), powers(small * small);
  T *y = direction.data(), *next = product.data(), *gram = squared.data(), *twice = powers.data();

  // 1. What is to be made orthogonal.
  const T keep = T(s.momentum), rest = T(1 - s.momentum), sign = T(s.sign);
  each_element(n, 0.4, [&](int64_t i) {
    new_buffer[i] = keep * buffer[i] + rest * (sign * g[i]);
    y[i] = s.nesterov ? rest * (sign * g[i]) + keep * new_buffer[i] : new_buffer[i];
  });
  const double length = std::sqrt(sum_of_squares(dtype_of_type<T>, y, n));
  const T divisor = T(length > s.eps ? length : s.eps);
  each_element(n, 0.4, [&](int64_t i) { y[i] = y[i] / divisor; });

  // 2. y = a y + (b gram + c gram^2) y, gram = y y^T. Of a tall matrix the same is done with its transpose, which stays where it is.
  const T a = T(s.coefficients[0]), b = T(s.coefficients[1]), c = T(s.coefficients[2]);
  const int64_t large = tall ? s.rows : s.columns;
  const int64_t along = tall ? s.columns : 1, across = tall ? 1 : s.columns;  // from one element of a row of y (or of its transpose) to the next, and between rows
  for (int64_t step = 0; step < s.steps; ++step) {
    matmul(Product<T>{small, small, large, y, across, along, y, along, across, gram, small});
    matmul(Product<T>{small, small, small, gram, small, 1, gram, small, 1, twice, small});
    each_element(small * small, 0.3, [&](int64_t i) { gram[i] = b * gram[i] + c * twice[i]; });
    if (tall) matmul(Product<T>{s.rows, s.columns, small, y, s.columns, 1, gram, 1, small, next, s.columns});
    else matmul(Product<T>{s.rows, s.columns, small, gram, small, 1, y, s.columns, 1, next, s.columns});
    each_element(n, 0.3, [&](int64_t i) { y[i] = a * y[i] + next[i]; });
  }

  // 3. The step.
  const T shrink = T(s.shrink), rate = T(s.rate);
  each_element(n, 0.3, [&](int64_t i) { new_p[i] = p[i] * shrink - rate * y[i]; });
}

template <class T>
void moving_average(int64_t n, double decay, const T* average, const T* value, T* to) {
  const T keep = T(decay), rest = T(1 - decay);
  each_element(n, 0.15, [&](int64_t i) { to[i] = keep * average[i] + rest * value[i]; });
}

template void adafactor(const Adafactor&, const float*, const float*, const float*, const float*, float*, float*, float*);
template void adafactor(const Adafactor&, const double*, const double*, const double*, const double*, double*, double*, double*);
template void muon(const Muon&, const float*, const float*, const float*, float*, float*);
template void muon(const Muon&, const double*, const double*, const double*, double*, double*);
template void moving_average(int64_t, double, const float*, const float*, float*);
template void moving_average(int64_t, double, const double*, const double*, double*);

}  // namespace extensor
