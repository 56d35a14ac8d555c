#include "bindings/exceptions.hpp"

#include <new>
#include <stdexcept>
#include <system_error>

namespace extensor {

void set_python_error() {
  try {
    throw;
  } catch (const PythonError&) {
    // is set already
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::length_error&) {  // a container that would be larger than any memory
    PyErr_NoMemory();
  } catch (const std::system_error& error) {
    PyObject* arguments = Py_BuildValue("(is)", error.code().value(), error.what());
    if (arguments != nullptr) PyErr_SetObject(PyExc_OSError, arguments);
    Py_XDECREF(arguments);
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  } catch (...) {
    PyErr_SetString(PyExc_RuntimeError, "an unknown error in the native core");
  }
}

}  // namespace extensor
