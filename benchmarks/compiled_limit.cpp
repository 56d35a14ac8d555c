// A training step of a small network by hand, as the limit for compiled steps: fixed sizes, no allocation, no checks.
// Sizes are template arguments so that the compiler unrolls; weights are stored (in, out), so that the inner loop is over outputs.
#include <cmath>
#include <cstring>

namespace {

using Vector = float __attribute__((vector_size(64), aligned(4), may_alias));
constexpr int lanes = 16;

// out (R, N) = left (R, K), read as left[r * row + k * column], times right (K, N), plus `start` (N) or nothing; tiles in registers.
template <int R, int K, int N, int row, int column>
void product(const float* left, const float* right, const float* start, float* out) {
  constexpr int wide = N / lanes, rows = wide >= 4 ? 6 : 8;
  for (int r = 0; r < R; r += rows) {
    const int count = R - r < rows ? R - r : rows;
    for (int first = 0; first < wide; first += 4) {
      constexpr int most = wide < 4 ? wide : 4;
      Vector acc[rows][most];
      for (int i = 0; i < rows; ++i)
        for (int v = 0; v < most; ++v) acc[i][v] = start == nullptr ? Vector{} : reinterpret_cast<const Vector*>(start)[first + v];
      if (count == rows) {
        for (int k = 0; k < K; ++k) {
          const Vector* line = reinterpret_cast<const Vector*>(right + k * N) + first;
#pragma GCC unroll 8
          for (int i = 0; i < rows; ++i)
#pragma GCC unroll 4
            for (int v = 0; v < most; ++v) acc[i][v] += left[(r + i) * row + k * column] * line[v];
        }
      } else {
        for (int k = 0; k < K; ++k)
          for (int i = 0; i < count; ++i)
            for (int v = 0; v < most; ++v) acc[i][v] += left[(r + i) * row + k * column] * (reinterpret_cast<const Vector*>(right + k * N) + first)[v];
      }
      for (int i = 0; i < count; ++i)
        for (int v = 0; v < most; ++v) reinterpret_cast<Vector*>(out + (r + i) * N)[first + v] = acc[i][v];
    }
  }
}

template <int B, int I, int O>
struct Layer {
  alignas(64) float w[I * O], b[O], gw[I * O], gb[O], wt[O * I];
  alignas(64) float mw[I * O], mb[O], vw[I * O], vb[O];

  void forward(const float* x, float* y) const { product<B, I, O, I, 1>(x, w, b, y); }

  void backward(const float* x, const float* gy, float* gx) {
    std::memset(gb, 0, sizeof gb);
    for (int r = 0; r < B; ++r)
      for (int o = 0; o < O; ++o) gb[o] += gy[r * O + o];
    product<I, B, O, 1, I>(x, gy, nullptr, gw);
    if (gx == nullptr) return;
    for (int i = 0; i < I; ++i)
      for (int o = 0; o < O; ++o) wt[o * I + i] = w[i * O + o];
    product<B, O, I, O, 1>(gy, wt, nullptr, gx);
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
