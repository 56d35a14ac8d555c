// Allocations that fail on request, so that tests can see every kernel run out of memory at every place where it can.
#pragma once

#include <atomic>
#include <cstdint>

namespace extensor {

// How many more allocations succeed before one fails; negative: none fails.
inline std::atomic<int64_t> allocations_before_failure{-1};

// Asked before each allocation. One fails, those after it succeed again.
inline bool allocation_fails() {
  return allocations_before_failure.load(std::memory_order_relaxed) >= 0 && allocations_before_failure.fetch_sub(1) == 0;
}

}  // namespace extensor
