// How much memory this process may have.
#pragma once

#include <cstddef>

namespace extensor {

// The least of what the machine has, what the control groups allow and what RLIMIT_AS and RLIMIT_DATA allow.
size_t usable_memory();

// What is left of it now, memory that the system could get back at once included. Reads a few files: some ten microseconds.
size_t available_memory();

}  // namespace extensor
