// Where C++ ends and Python begins: no exception crosses.
#pragma once

#include <exception>
#ifdef __GLIBCXX__
#include <cxxabi.h>
#endif

#include "bindings/ref.hpp"

namespace extensor {

// Sets the Python error that says the same as the C++ exception that is being handled: MemoryError where memory ran out,
// OSError for what the system refused, RuntimeError for everything else. To be called in a handler.
void set_python_error();

// body(), which returns a new reference; nullptr with a Python error set if it throws. Every function that Python calls and
// that may throw is made of this.
template <class Body>
PyObject* guarded(const Body& body) {
  try {
    return body();
#ifdef __GLIBCXX__
  } catch (const abi::__forced_unwind&) {  // the interpreter ends this thread; to keep it would abort the process
    throw;
#endif
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}

}  // namespace extensor
