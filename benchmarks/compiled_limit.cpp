// A training step of a small network by hand, as the limit for compiled steps: fixed sizes, no allocation, no checks.
// Sizes are template arguments so that the compiler unrolls; weights are stored as panels of some outputs, (out / panel, in, panel),
// so that the inner loop is over outputs and reads memory in order.
#include <cmath>
#include <cstring>

namespace {

#ifdef __AVX512F__  // 32 registers of 16 floats
constexpr int lanes = 16, tile_rows = 6, tile_vectors = 4;
#else  // 16 registers of 8 floats, as AVX2 has them
constexpr int lanes = 8, tile_rows = 6, tile_vectors = 2;
#endif
using Vector = float __attribute__((vector_size(4 * lanes), aligned(4), may_alias));

// `count` rows of a tile of the product below; all numbers are known to the compiler, so that it stays in registers.
template <int count, int K, int row, int column, int line, int out_row, int vectors>
inline void tile(const float* left, const float* right, const float* start, float* out) {
  Vector acc[count][vectors];
  for (int i = 0; i < count; ++i)
    for (int v = 0; v < vectors; ++v) acc[i][v] = start == nullptr ? Vector{} : reinterpret_cast<const Vector*>(start)[v];
  for (int k = 0; k < K; ++k) {
    const Vector* from = reinterpret_cast<const Vector*>(right + k * line);
#pragma GCC unroll 8
    for (int i = 0; i < count; ++i)
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) acc[i][v] += left[i * row + k * column] * from[v];
  }
  for (int i = 0; i < count; ++i)
    for (int v = 0; v < vectors; ++v) reinterpret_cast<Vector*>(out + i * out_row)[v] = acc[i][v];
}

// How wide the panels of a matrix of N columns are.
template <int N>
constexpr int panel = N / lanes < tile_vectors ? N : tile_vectors * lanes;

// out (R, N) = left (R, K), read as left[r * row + k * column], times right (K, N), plus `start` (N) or nothing; right and out
// are rows, or panels of rows.
template <int R, int K, int N, int row, int column, bool right_in_panels, bool out_in_panels>
void product(const float* left, const float* right, const float* start, float* out) {
  constexpr int wide = panel<N>, line = right_in_panels ? wide : N, out_row = out_in_panels ? wide : N;
  for (int first = 0; first < N; first += wide) {
    const float* from = right + first * (right_in_panels ? K : 1);
    const float* bias = start == nullptr ? nullptr : start + first;
    float* to = out + first * (out_in_panels ? R : 1);
    int r = 0;
    for (; r + tile_rows <= R; r += tile_rows) tile<tile_rows, K, row, column, line, out_row, wide / lanes>(left + r * row, from, bias, to + r * out_row);
    if constexpr (R % tile_rows != 0) tile<R % tile_rows, K, row, column, line, out_row, wide / lanes>(left + r * row, from, bias, to + r * out_row);
  }
}

template <int B, int I, int O>
struct Layer {
  alignas(64) float w[I * O], b[O], gw[I * O], gb[O], wt[O * I];
  alignas(64) float mw[I * O], mb[O], vw[I * O], vb[O];

  void forward(const float* x, float* y) const { product<B, I, O, I, 1, true, false>(x, w, b, y); }

  void backward(const float* x, const float* gy, float* gx) {
    std::memset(gb, 0, sizeof gb);
    for (int r = 0; r < B; ++r)
      for (int o = 0; o < O; ++o) gb[o] += gy[r * O + o];
    product<I, B, O, 1, I, false, true>(x, gy, nullptr, gw);
    if (gx == nullptr) return;
    constexpr int from = panel<O>, to = panel<I>;
    for (int first = 0; first < I; first += to)
      for (int start = 0; start < O; start += from)
        for (int i = 0; i < to; ++i)
          for (int o = 0; o < from; ++o) wt[first * O + (start + o) * to + i] = w[start * I + (first + i) * from + o];
    product<B, O, I, O, 1, true, false>(gy, wt, nullptr, gx);
  }

  static void adam(int n, float* p, const float* g, float* m, float* v, float rate, float root) {
    for (int i = 0; i < n; ++i) {
      m[i] = 0.9f * m[i] + 0.1f * g[i];
      v[i] = 0.999f * v[i] + 0.001f * g[i] * g[i];
      p[i] -= rate * m[i] / (std::sqrt(v[i]) / root + 1e-8f);
    }
  }
  void adam(float rate, float root) {
    adam(I * O, w, gw, mw, vw, rate, root);
    adam(O, b, gb, mb, vb, rate, root);
  }
  void sgd(float lr) {
    for (int i = 0; i < I * O; ++i) w[i] -= lr * gw[i];
    for (int i = 0; i < O; ++i) b[i] -= lr * gb[i];
  }
};

template <int N>
void relu(const float* x, float* y) {
  for (int i = 0; i < N; ++i) y[i] = x[i] > 0 ? x[i] : 0;
}
template <int N>
void relu_backward(const float* x, float* g) {
  for (int i = 0; i < N; ++i) g[i] = x[i] > 0 ? g[i] : 0;
}

// exp(x) for x <= 0, to a few units in the last place; simple enough to become vectors.
inline float exponential(float x) {
  x = x < -87.0f ? -87.0f : x;
  const float n = std::nearbyint(x * 1.44269504f), r = x - n * 0.693147182f + n * 1.90465421e-9f;
  const float p = 1 + r * (1 + r * (0.5f + r * (0.166666667f + r * (0.0416666667f + r * (0.00833333333f + r * 0.00138888889f)))));
  const int bits = (int(n) + 127) << 23;
  float power;
  std::memcpy(&power, &bits, sizeof power);
  return p * power;
}

// The mean loss over the batch; `logits` become their gradient.
template <int B, int C>
float cross_entropy(float* logits, const long long* labels) {
  float total = 0;
  for (int r = 0; r < B; ++r) {
    float* row = logits + r * C;
    float largest = row[0], sum = 0, terms[C];
    for (int c = 1; c < C; ++c) largest = row[c] > largest ? row[c] : largest;
    for (int c = 0; c < C; ++c) terms[c] = exponential(row[c] - largest), sum += terms[c];
    total += std::log(sum) + largest - row[labels[r]];
    for (int c = 0; c < C; ++c) row[c] = (terms[c] / sum - (c == labels[r])) / B;
  }
  return total / B;
}

struct Small {
  static constexpr int B = 32;
  Layer<B, 64, 64> a, b;
  Layer<B, 64, 16> c;  // ten classes, padded to a vector
  alignas(64) float y1[B * 64], h1[B * 64], y2[B * 64], h2[B * 64], y3[B * 16], g2[B * 64], g1[B * 64], logits[B * 10];
  int step = 0;
} small;

struct Large {
  static constexpr int B = 64;
  Layer<B, 784, 128> a;
  Layer<B, 128, 16> b;
  alignas(64) float y1[B * 128], h1[B * 128], y2[B * 16], g1[B * 128], logits[B * 10];
} large;

template <int B>
void squeeze(const float* wide, float* narrow) {
  for (int r = 0; r < B; ++r) std::memcpy(narrow + r * 10, wide + r * 16, 10 * sizeof(float));
}
template <int B>
void spread(const float* narrow, float* wide) {
  std::memset(wide, 0, sizeof(float) * B * 16);
  for (int r = 0; r < B; ++r) std::memcpy(wide + r * 16, narrow + r * 10, 10 * sizeof(float));
}

}  // namespace

extern "C" void set_up() {
  small = Small();
  large = Large();
  unsigned state = 1;
  const auto fill = [&](float* values, int count, float scale) {
    for (int i = 0; i < count; ++i) state = state * 1664525u + 1013904223u, values[i] = scale * (float(state >> 8) / float(1 << 23) - 1);
  };
  fill(small.a.w, 64 * 64, 0.1f), fill(small.b.w, 64 * 64, 0.1f), fill(small.c.w, 64 * 16, 0.1f);
  fill(large.a.w, 784 * 128, 0.03f), fill(large.b.w, 128 * 16, 0.1f);
}

// MLP 64-64-10 with a hidden layer more, batch 32, Adam.
extern "C" float small_step(const float* x, const long long* labels) {
  Small& s = small;
  s.a.forward(x, s.y1), relu<Small::B * 64>(s.y1, s.h1);
  s.b.forward(s.h1, s.y2), relu<Small::B * 64>(s.y2, s.h2);
  s.c.forward(s.h2, s.y3);
  squeeze<Small::B>(s.y3, s.logits);
  const float loss = cross_entropy<Small::B, 10>(s.logits, labels);
  spread<Small::B>(s.logits, s.y3);
  s.c.backward(s.h2, s.y3, s.g2), relu_backward<Small::B * 64>(s.y2, s.g2);
  s.b.backward(s.h1, s.g2, s.g1), relu_backward<Small::B * 64>(s.y1, s.g1);
  s.a.backward(x, s.g1, nullptr);
  ++s.step;
  const float rate = 1e-3f / (1 - std::pow(0.9f, float(s.step))), root = std::sqrt(1 - std::pow(0.999f, float(s.step)));
  s.a.adam(rate, root), s.b.adam(rate, root), s.c.adam(rate, root);
  return loss;
}

// MLP 784-128-10, batch 64, SGD.
extern "C" float large_step(const float* x, const long long* labels) {
  Large& s = large;
  s.a.forward(x, s.y1), relu<Large::B * 128>(s.y1, s.h1);
  s.b.forward(s.h1, s.y2);
  squeeze<Large::B>(s.y2, s.logits);
  const float loss = cross_entropy<Large::B, 10>(s.logits, labels);
  spread<Large::B>(s.logits, s.y2);
  s.b.backward(s.h1, s.y2, s.g1), relu_backward<Large::B * 128>(s.y1, s.g1);
  s.a.backward(x, s.g1, nullptr);
  s.a.sgd(0.1f), s.b.sgd(0.1f);
  return loss;
}
