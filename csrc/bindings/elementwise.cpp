// Elementwise kernels as Python functions: kernel(*arrays, *attributes).
#include "bindings/elementwise.hpp"

#include <cmath>
#include <cstring>

#include "bindings/operands.hpp"
#include "bindings/reduce.hpp"
#include "kernels/elementwise/elementwise.hpp"

namespace extensor {
namespace {

// One call of a kernel: inputs of one dtype in any layout that broadcasts, and Python numbers, which are weak.
class ElementwiseCall {
 public:
  // False if the kernels do not cover these.
  bool read(const ElementwiseKernel& kernel, PyObject* const* args) {
    for (int i = 0; i < kernel.inputs; ++i) {
      const bool is_mask = kernel.mask_inputs >> i & 1;
      if (PyArray_Check(args[i])) {
        PyArrayObject* array = reinterpret_cast<PyArrayObject*>(args[i]);
        const DType found = dtype_of(array);
        if (found == DType::other || !is_readable(array)) return false;
        if (is_mask) {
          if (found != DType::boolean) return false;
        } else {
          if (dtype_ == DType::other) dtype_ = found;
          if (found != dtype_) return false;
        }
        arrays_[i] = array;
        if (first_ == nullptr) first_ = array;
      } else {
        if (is_mask || !read_number(args[i], numbers_[i])) return false;
        arrays_[i] = nullptr;
        wide_ |= 1u << i;
      }
    }
    if (!elementwise_covers(dtype_)) return false;
    // What only moves or compares elements compares with the number rounded to float16: rare, left to the reference.
    const bool half = item_size(dtype_) == 2;
    return !(half && wide_ != 0 && (kernel.mask_output || kernel.mask_inputs != 0));
  }

  // One array, a tuple if there are several outputs, or NotImplemented.
  Ref<> run(const ElementwiseKernel& general, const double* scalars) {
    const int last = general.inputs - 1;
    const ElementwiseKernel& kernel = last > 0 && arrays_[last] == nullptr ? with_last_number(general, numbers_[last]) : general;
    store_numbers(kernel.inputs);
    bool flat = true;
    for (int i = 0; i < kernel.inputs && flat; ++i) flat = arrays_[i] == nullptr || lies_like_first(arrays_[i]);
    return flat ? run_flat(kernel, scalars) : run_broadcast(kernel, scalars);
  }

 private:
  // Numbers are handed over in the computing type.
  void store_numbers(int inputs) {
    for (int i = 0; i < inputs; ++i) {
      if (arrays_[i] != nullptr) continue;
      if (dtype_ == DType::float64) continue;
      const float single = static_cast<float>(numbers_[i]);
      std::memcpy(&numbers_[i], &single, sizeof single);
    }
  }

  const void* data(int i) const { return arrays_[i] == nullptr ? static_cast<const void*>(&numbers_[i]) : PyArray_DATA(arrays_[i]); }

  // Same shape as the first array, and elements in the same order without gaps.
  bool lies_like_first(PyArrayObject* array) {
    const int ndim = PyArray_NDIM(first_);
    if (PyArray_NDIM(array) != ndim) return false;
    for (int axis = 0; axis < ndim; ++axis)
      if (PyArray_DIM(array, axis) != PyArray_DIM(first_, axis)) return false;
    if (PyArray_IS_C_CONTIGUOUS(array)) return PyArray_IS_C_CONTIGUOUS(first_);
    if (PyArray_ITEMSIZE(array) != PyArray_ITEMSIZE(first_)) return false;
    if (array != first_) return PyArray_CompareLists(PyArray_STRIDES(array), PyArray_STRIDES(first_), ndim) != 0;
    return is_dense(array);
  }

  // Contiguous up to the order of the axes.
  static bool is_dense(PyArrayObject* array) {
    if (PyArray_IS_F_CONTIGUOUS(array)) return true;
    const int ndim = PyArray_NDIM(array);
    npy_intp expected = PyArray_ITEMSIZE(array);
    for (int found = 0; found < ndim; ++found) {
      // The axis whose stride is the next one.
      int axis = 0;
      while (axis < ndim && (PyArray_DIM(array, axis) == 1 || PyArray_STRIDE(array, axis) != expected)) ++axis;
      if (axis == ndim) break;
      expected *= PyArray_DIM(array, axis);
    }
    return expected == PyArray_NBYTES(array);
  }

  // New arrays for the results.
  struct Outputs {
    Outputs(const ElementwiseKernel& kernel, DType dtype, int ndim, const npy_intp* shape, const npy_intp* strides) : count(kernel.outputs) {
      for (int i = 0; i < count; ++i) {
        arrays[i] = make_array(kernel.mask_output ? DType::boolean : dtype, ndim, shape, strides);
        data[i] = PyArray_DATA(arrays[i]);
      }
    }
    Ref<> release() { return owned(count == 1 ? arrays[0].release() : tuple_of(arrays, count)); }

    int count;
    Array arrays[max_elementwise_outputs];
    void* data[max_elementwise_outputs];
  };

  Ref<> run_flat(const ElementwiseKernel& kernel, const double* scalars) {
    const bool usual = PyArray_IS_C_CONTIGUOUS(first_);
    if (!usual && kernel.mask_output) return run_broadcast(kernel, scalars);
    Outputs outputs(kernel, dtype_, PyArray_NDIM(first_), PyArray_DIMS(first_), usual ? nullptr : PyArray_STRIDES(first_));
    const void* in[max_elementwise_inputs];
    bool is_scalar[max_elementwise_inputs];
    for (int i = 0; i < kernel.inputs; ++i) {
      in[i] = data(i);
      is_scalar[i] = arrays_[i] == nullptr;
    }
    const npy_intp size = PyArray_SIZE(first_);
    {
      MaybeReleaseGil release(static_cast<double>(size) * kernel.cost_ns);
      run_elementwise_contiguous(kernel, dtype_, size, in, is_scalar, outputs.data, scalars, wide_);
    }
    return outputs.release();
  }

  Ref<> run_broadcast(const ElementwiseKernel& kernel, const double* scalars) {
    int ndim = 0;
    for (int i = 0; i < kernel.inputs; ++i) {
      if (arrays_[i] != nullptr && PyArray_NDIM(arrays_[i]) > ndim) ndim = PyArray_NDIM(arrays_[i]);
    }
    if (ndim > max_elementwise_dims) return owned(not_covered());
    npy_intp shape[max_elementwise_dims];
    for (int axis = 0; axis < ndim; ++axis) shape[axis] = 1;
    for (int i = 0; i < kernel.inputs; ++i) {
      if (arrays_[i] == nullptr) continue;
      const int extra = ndim - PyArray_NDIM(arrays_[i]);
      const npy_intp* const lengths = PyArray_DIMS(arrays_[i]);
      for (int axis = extra; axis < ndim; ++axis) {
        const npy_intp length = lengths[axis - extra];
        if (length == 1) continue;
        if (shape[axis] != 1 && shape[axis] != length) return owned(not_covered());
        shape[axis] = length;
      }
    }
    Outputs outputs(kernel, dtype_, ndim, shape, nullptr);
    const void* in[max_elementwise_inputs];
    const int64_t* in_strides[max_elementwise_inputs];
    int64_t wide_shape[max_elementwise_dims], strides[max_elementwise_inputs][max_elementwise_dims];
    for (int axis = 0; axis < ndim; ++axis) wide_shape[axis] = shape[axis];
    for (int i = 0; i < kernel.inputs; ++i) {
      in[i] = data(i);
      in_strides[i] = strides[i];
      const int extra = arrays_[i] == nullptr ? ndim : ndim - PyArray_NDIM(arrays_[i]);
      for (int axis = 0; axis < extra; ++axis) strides[i][axis] = 0;
      for (int axis = extra; axis < ndim; ++axis)
        strides[i][axis] = PyArray_DIM(arrays_[i], axis - extra) == 1 ? 0 : PyArray_STRIDE(arrays_[i], axis - extra);
    }
    {
      MaybeReleaseGil release(static_cast<double>(PyArray_SIZE(outputs.arrays[0])) * kernel.cost_ns);
      run_elementwise_strided(kernel, dtype_, ndim, wide_shape, in, in_strides, outputs.data, scalars, wide_);
    }
    return outputs.release();
  }

  PyArrayObject* arrays_[max_elementwise_inputs];
  double numbers_[max_elementwise_inputs];
  PyArrayObject* first_ = nullptr;
  DType dtype_ = DType::other;
  unsigned wide_ = 0;
};

// Static attributes are numbers; nan as a bound or a slope is left to the reference.
bool read_attributes(PyObject* const* args, int count, double* scalars) {
  for (int i = 0; i < count; ++i) {
    if (!read_number(args[i], scalars[i]) || std::isnan(scalars[i])) return false;
  }
  return true;
}

PyObject* run_kernel(const ElementwiseKernel& kernel, PyObject* const* inputs, PyObject* const* attributes) {
  ElementwiseCall call;
  double scalars[max_elementwise_scalars];
  if (!call.read(kernel, inputs) || !read_attributes(attributes, kernel.scalars, scalars)) return not_covered();
  return call.run(kernel, scalars).release();
}

PyObject* call_elementwise(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  const ElementwiseKernel& kernel = *kernel_context<ElementwiseKernel>(self);
  if (count != kernel.inputs + kernel.scalars) return not_covered();
  return run_kernel(kernel, args, args + kernel.inputs);
}

// gelu(x, approximate) and its backward: the last argument chooses the formula.
struct GeluKernels {
  const ElementwiseKernel *exact, *approximate;
};

// Arrays of one shape.
bool are_alike(PyObject* const* args, Py_ssize_t count) {
  PyArrayObject* first = as_array(args[0]);
  for (Py_ssize_t i = 0; i < count; ++i)
    if (!PyArray_Check(args[i]) || !PyArray_SAMESHAPE(as_array(args[i]), first)) return false;
  return true;
}

PyObject* call_gelu(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  const GeluKernels& kernels = *kernel_context<GeluKernels>(self);
  if (count != kernels.exact->inputs + 1 || !PyBool_Check(args[count - 1]) || !are_alike(args, count - 1)) return not_covered();
  return run_kernel(args[count - 1] == Py_True ? *kernels.approximate : *kernels.exact, args, nullptr);
}

// Backward of two operands: f_backward(g, a, b, *attributes, needs) -> (grad_a, grad_b). One of three
// kernels by what is needed, each with the arguments it takes; none where there is nothing to compute.
struct Choice {
  const ElementwiseKernel* kernel;
  int arguments[3];
};
struct TwoGradients {
  int arguments;                // before the attributes
  int shape_arguments[2];       // the argument whose shape the gradient has
  bool has_shapes;              // these are the shapes themselves
  Choice both, only_a, only_b;
};

// The shape of an operand: an array, or a number, which has none; or the shape in its place.
bool read_operand_shape(PyObject* value, bool is_shape, int& ndim, npy_intp* shape) {
  double number;
  ndim = 0;
  if (is_shape) return read_shape(value, ndim, shape);
  if (!PyArray_Check(value)) return read_number(value, number);
  PyArrayObject* array = reinterpret_cast<PyArrayObject*>(value);
  ndim = PyArray_NDIM(array);
  for (int axis = 0; axis < ndim; ++axis) shape[axis] = PyArray_DIM(array, axis);
  return true;
}

// The kernel of a choice on the arguments that it takes.
Ref<> run_choice(const Choice& choice, PyObject* const* args, const double* guard) {
  if (choice.kernel == nullptr) return owned(not_covered());
  PyObject* inputs[3];
  for (int i = 0; i < choice.kernel->inputs; ++i) inputs[i] = args[choice.arguments[i]];
  return elementwise(*choice.kernel, inputs, guard);
}

PyObject* call_two_gradients(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  const TwoGradients& family = *kernel_context<TwoGradients>(self);
  const int attributes = family.both.kernel->scalars;
  PyArrayObject* grad = count == family.arguments + attributes + 1 ? as_array(args[0]) : nullptr;
  if (grad == nullptr) return not_covered();
  const DType dtype = dtype_of(grad);
  double guard = 0;
  bool needed[2], same[2];
  if (!read_flags(args[count - 1], needed, 2)) return not_covered();
  if (!read_attributes(args + family.arguments, attributes, &guard) || !(guard >= 0 && guard < HUGE_VAL)) return not_covered();
  npy_intp shapes[2][NPY_MAXDIMS];
  int ndims[2];
  for (int i = 0; i < 2; ++i) {
    PyObject* operand = args[family.shape_arguments[i]];
    const bool is_array = PyArray_Check(operand);
    if (is_array && dtype_of(as_array(operand)) != dtype) return not_covered();
    if (!read_operand_shape(operand, family.has_shapes, ndims[i], shapes[i])) return not_covered();
    const bool is_number = !is_array && !family.has_shapes;
    same[i] = !is_number && has_shape(grad, ndims[i], shapes[i]);
    // Half precision is rounded after the sum.
    if (needed[i] && !same[i] && (is_number || !is_float(dtype) || PyArray_SIZE(grad) == 0)) return not_covered();
  }
  if (!broadcast_to(ndims[0], shapes[0], ndims[1], shapes[1], grad)) return not_covered();
  if (needed[0] && needed[1] && same[0] && same[1]) return run_choice(family.both, args, &guard).release();
  return pair_of_gradients([&](int i) {
    if (!needed[i]) return shared(Py_None);
    Ref<> whole = run_choice(i == 0 ? family.only_a : family.only_b, args, &guard);
    return same[i] || whole == Py_NotImplemented ? std::move(whole) : sum_to_shape(as_array(whole), ndims[i], shapes[i]);
  });
}

const GeluKernels* gelu_kernels(const char* exact, const char* approximate) {
  return new GeluKernels{find_elementwise(exact), find_elementwise(approximate)};
}

void add_two_gradients(PyObject* kernels, const char* name, int arguments, int shape_a, int shape_b, Choice both,
                       Choice only_a, Choice only_b, bool has_shapes = false) {
  add_kernel(kernels, name, call_two_gradients,
             new TwoGradients{arguments, {shape_a, shape_b}, has_shapes, both, only_a, only_b});
}

}  // namespace

Ref<> elementwise(const ElementwiseKernel& kernel, PyObject* const* inputs, const double* scalars) {
  ElementwiseCall call;
  return call.read(kernel, inputs) ? call.run(kernel, scalars) : owned(not_covered());
}

bool fits_in_place(const ElementwiseKernel& kernel, PyArrayObject* const* arrays) {
  // The interpreter lock is kept meanwhile, or another thread could come to hold the array: not for longer than this.
  constexpr double longest_ns = 500e3;
  const DType dtype = dtype_of(arrays[0]);
  if (!is_float(dtype) || double(PyArray_SIZE(arrays[0])) * kernel.cost_ns > longest_ns) return false;
  for (int i = 0; i < kernel.inputs; ++i) {
    PyArrayObject* array = arrays[i];
    if (dtype_of(array) != dtype || !PyArray_IS_C_CONTIGUOUS(array) || !is_readable(array) || !PyArray_SAMESHAPE(array, arrays[0])) return false;
    if (i != 1 && !PyArray_ISWRITEABLE(array)) return false;
  }
  return true;
}

void elementwise_in_place(const ElementwiseKernel& kernel, PyArrayObject* const* arrays, const double* scalars) {
  const void* in[max_elementwise_inputs];
  void* out[max_elementwise_outputs];
  const bool is_scalar[max_elementwise_inputs] = {};
  for (int i = 0; i < kernel.inputs; ++i) in[i] = PyArray_DATA(arrays[i]);
  for (int i = 0; i < kernel.outputs; ++i) out[i] = PyArray_DATA(arrays[i == 0 ? 0 : i + 1]);
  run_elementwise_contiguous(kernel, dtype_of(arrays[0]), PyArray_SIZE(arrays[0]), in, is_scalar, out, scalars, 0);
}

void bind_elementwise(PyObject* kernels) {
  const ElementwiseTable& table = EXTENSOR_SELECT(elementwise_table)();
  for (int i = 0; i < table.count; ++i) {
    const ElementwiseKernel& kernel = table.kernels[i];
    if (!kernel.is_part) add_kernel(kernels, kernel.name, call_elementwise, &kernel);
  }

  add_kernel(kernels, "gelu", call_gelu, gelu_kernels("gelu", "gelu_tanh"));
  add_kernel(kernels, "gelu_backward", call_gelu, gelu_kernels("gelu_backward", "gelu_tanh_backward"));

  const auto find = [](const char* name) { return find_elementwise(name); };
  const ElementwiseKernel* multiply = find("multiply");
  add_two_gradients(kernels, "multiply_backward", 3, 1, 2, {find("multiply_backward"), {0, 1, 2}},
                    {multiply, {0, 2, -1}}, {multiply, {0, 1, -1}});
  add_two_gradients(kernels, "divide_backward", 3, 1, 2, {find("divide_backward"), {0, 1, 2}},
                    {find("divide_backward_a"), {0, 2, -1}}, {find("divide_backward_b"), {0, 1, 2}});
  add_two_gradients(kernels, "modulo_backward", 3, 1, 2, {find("modulo_backward"), {0, 1, 2}},
                    {nullptr, {}}, {find("modulo_backward_b"), {0, 1, 2}});
  add_two_gradients(kernels, "power_backward", 3, 1, 2, {find("power_backward"), {0, 1, 2}},
                    {find("power_backward_a"), {0, 1, 2}}, {find("power_backward_b"), {0, 1, 2}});
  add_two_gradients(kernels, "maximum_backward", 3, 1, 2, {find("maximum_backward"), {0, 1, 2}},
                    {find("maximum_backward_a"), {0, 1, 2}}, {find("maximum_backward_b"), {0, 1, 2}});
  add_two_gradients(kernels, "minimum_backward", 3, 1, 2, {find("minimum_backward"), {0, 1, 2}},
                    {find("minimum_backward_a"), {0, 1, 2}}, {find("minimum_backward_b"), {0, 1, 2}});
  add_two_gradients(kernels, "prelu_backward", 3, 1, 2, {find("prelu_backward"), {0, 1, 2}},
                    {find("prelu_backward_a"), {0, 1, 2}}, {find("prelu_backward_b"), {0, 1, -1}});
  add_two_gradients(kernels, "where_backward", 4, 2, 3, {find("where_backward"), {0, 1, -1}},
                    {find("where_backward_a"), {0, 1, -1}}, {find("where_backward_b"), {0, 1, -1}}, true);
}

}  // namespace extensor
