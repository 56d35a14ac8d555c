// Owned references to Python objects. A binding keeps whatever it owns in these, so that every way out of it, an
// exception included, gives back what is not returned.
#pragma once

#include <Python.h>

#include <utility>

namespace extensor {

// Thrown where the C API failed: the Python error is set.
struct PythonError {};

template <class T = PyObject>
class Ref {
 public:
  Ref() = default;
  ~Ref() { Py_XDECREF(object_); }
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref&& other) noexcept {
    Ref before(std::move(*this));
    object_ = std::exchange(other.object_, nullptr);
    return *this;
  }

  // Borrowed, while this lives.
  T* get() const& { return object_; }
  T* operator->() const { return object_; }
  operator T*() const& { return object_; }
  T* get() const&& = delete;
  operator T*() const&& = delete;
  PyObject* object() const { return reinterpret_cast<PyObject*>(object_); }

  // The reference itself, for a caller that takes it over.
  PyObject* release() { return reinterpret_cast<PyObject*>(std::exchange(object_, nullptr)); }

 private:
  explicit Ref(T* object) : object_(object) {}
  template <class U>
  friend Ref<U> owned(U* object);
  template <class U>
  friend Ref<U> shared(U* object);
  template <class U>
  friend Ref<U> maybe(U* object);
  T* object_ = nullptr;
};

// A new reference, taken over. nullptr means that the call which should have made it failed.
template <class T>
Ref<T> owned(T* object) {
  if (object == nullptr) throw PythonError();
  return Ref<T>(object);
}

// A new reference, taken over; there may be none.
template <class T>
Ref<T> maybe(T* object) {
  return Ref<T>(object);
}

// One more reference to what somebody else owns.
template <class T>
Ref<T> shared(T* object) {
  Py_INCREF(object);
  return Ref<T>(object);
}

}  // namespace extensor
