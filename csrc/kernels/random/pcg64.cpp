#include "kernels/random/pcg64.hpp"

#include <cmath>

#include "core/threads.hpp"

namespace extensor {
namespace {

__extension__ typedef unsigned __int128 Whole;

Whole joined(uint64_t low, uint64_t high) { return Whole(high) << 64 | low; }

// state -> by * state + more
struct Step {
  Whole by, more;
  Whole operator()(Whole state) const { return by * state + more; }
  Step then(const Step& next) const { return {next.by * by, next.by * more + next.more}; }
};

Step repeated(Step step, int64_t times) {
  Step all{1, 0};
  for (; times > 0; times >>= 1, step = step.then(step))
    if (times & 1) all = all.then(step);
  return all;
}

uint64_t output(Whole state) {
  const uint64_t mixed = uint64_t(state >> 64) ^ uint64_t(state);
  const unsigned turn = unsigned(state >> 122);
  return mixed >> turn | mixed << (-turn & 63);
}

}  // namespace

void doubles_at_least(const Pcg64& stream, double p, unsigned char* kept, int64_t count) {
  constexpr int lanes = 4;  // states that do not wait for each other
  const Step one{joined(4865540595714422341ULL, 2549297995355413924ULL), joined(stream.increment[0], stream.increment[1])};
  const Step several = repeated(one, lanes);
  // A double is a whole number of 53 bits times 2^-53.
  const uint64_t least = uint64_t(std::ceil(p * 9007199254740992.0));
  parallel_for(count, 1.2, [&](int64_t begin, int64_t end) {
    Whole states[lanes];
    states[0] = repeated(one, begin + 1)(joined(stream.state[0], stream.state[1]));
    for (int k = 1; k < lanes; ++k) states[k] = one(states[k - 1]);
    int64_t i = begin;
    for (; i + lanes <= end; i += lanes) {
      for (int k = 0; k < lanes; ++k) {
        kept[i + k] = output(states[k]) >> 11 >= least;
        states[k] = several(states[k]);
      }
    }
    for (int k = 0; i < end; ++i, ++k) kept[i] = output(states[k]) >> 11 >= least;
  });
}

}  // namespace extensor
