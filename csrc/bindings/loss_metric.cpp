// Losses of distances between embeddings as Python functions. Covered: arrays of one shape and dtype, distances of the 2-norm.
#include "kernels/loss/metric.hpp"

#include "bindings/half.hpp"
#include "bindings/operands.hpp"

namespace extensor {
namespace {

constexpr double cosine_least = 1e-12f;  // PyTorch keeps it in float32

template <class T>
const MetricFunctions<T>& functions() {
  const MetricTable& table = EXTENSOR_SELECT(metric_table)();
  if constexpr (sizeof(T) == 4) return table.of32;
  else return table.of64;
}

// Embeddings of one shape, (..., width), dense.
struct Embeddings {
  Operands<3> operands;
  DType dtype = DType::other;
  int ndim = 0;
  const npy_intp* shape = nullptr;
  int64_t rows = 0, width = 0;

  // False if they are not covered.
  bool read(PyObject* const* arguments, int count) {
    PyArrayObject* first = as_array(arguments[0]);
    if (first == nullptr || PyArray_NDIM(first) == 0 || !is_float(dtype_of(first))) return false;
    dtype = dtype_of(first), ndim = PyArray_NDIM(first), shape = PyArray_DIMS(first);
    for (int i = 0; i < count; ++i)
      if (!operands.take(i, arguments[i], dtype) || operands.array(i) == nullptr || !PyArray_SAMESHAPE(operands.array(i), first)) return false;
    rows = product_of(shape, ndim - 1), width = shape[ndim - 1];
    return true;
  }
};

// Whether an array has an element for each row, as it lies.
bool is_per_row(PyArrayObject* array, const Embeddings& given) {
  return array != nullptr && dtype_of(array) == given.dtype && PyArray_IS_C_CONTIGUOUS(array) && is_readable(array) &&
         has_shape(array, given.ndim - 1, given.shape);
}

// The losses of all rows, which run(losses) writes, or their sum or mean.
template <class T, class Run>
PyObject* reduced(const Embeddings& given, LossReduction reduction, const Run& run) {
  Array losses = make_array(given.dtype, given.ndim - 1, given.shape);
  T* const each = data_of<T>(losses);
  {
    MaybeReleaseGil unlocked(double(given.rows * given.width) * 2 * metric_element_ns);
    run(each);
  }
  if (reduction == LossReduction::none) return losses.release();
  double total = 0;
  for (int64_t r = 0; r < given.rows; ++r) total += double(each[r]);
  Array out = make_array(given.dtype, 0, nullptr);
  *data_of<T>(out) = T(reduction == LossReduction::mean ? total / double(given.rows) : total);
  return out.release();
}

// The gradients that are wanted, which run(upstream, step, grads) writes.
template <class T, int count, class Run>
PyObject* gradients(const Embeddings& given, PyObject* upstream, LossReduction reduction, const bool (&needs)[count], const Run& run) {
  PyArrayObject* g = as_array(upstream);
  if (g == nullptr || dtype_of(g) != given.dtype || !is_readable(g)) return not_covered();
  const bool is_single = reduction != LossReduction::none;
  if (is_single ? PyArray_NDIM(g) != 0 : !is_per_row(g, given)) return not_covered();
  T one = is_single ? *data_of<T>(g) : T(0);
  if (reduction == LossReduction::mean && given.rows > 0) one = one / T(given.rows);
  Array grads[count];
  T* written[count];
  for (int i = 0; i < count; ++i) {
    grads[i] = make_wanted(needs[i], given.dtype, given.ndim, given.shape);
    written[i] = data_of<T>(grads[i]);
  }
  {
    MaybeReleaseGil unlocked(double(given.rows * given.width) * 5 * metric_element_ns);
    run(is_single ? &one : data_of<const T>(g), is_single ? 0 : 1, written);
  }
  return tuple_of(grads);
}

// margin, p, eps, swap; false unless p is 2.
bool read_triplets(PyObject* const* options, const Embeddings& given, Triplets& triplets) {
  double p;
  triplets.rows = given.rows, triplets.width = given.width;
  return read_number(options[0], triplets.margin) && read_number(options[1], p) && p == 2 && read_number(options[2], triplets.eps) &&
         read_flag(options[3], triplets.swap);
}

// triplet_margin(anchor, positive, negative, margin, p, eps, swap, reduction)
PyObject* call_triplet(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  if (count != 8) return not_covered();
  Embeddings given;
  if (!given.read(args, 3)) return call_widened(call_triplet, self, args, count);
  Triplets triplets;
  const LossReduction reduction = read_reduction(args[7]);
  if (!read_triplets(args + 3, given, triplets) || reduction == LossReduction::other) return not_covered();
  return with_type(given.dtype, [&](auto zero) {
    using T = decltype(zero);
    const auto& of = given.operands;
    return reduced<T>(given, reduction, [&](T* losses) {
      functions<T>().triplet(triplets, of.template data<T>(0), of.template data<T>(1), of.template data<T>(2), losses);
    });
  });
}

// triplet_margin_backward(g, anchor, positive, negative, margin, p, eps, swap, reduction, needs)
PyObject* call_triplet_backward(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  if (count != 10) return not_covered();
  Embeddings given;
  if (!given.read(args + 1, 3)) return call_widened(call_triplet_backward, self, args, count);
  Triplets triplets;
  bool needs[3];
  const LossReduction reduction = read_reduction(args[8]);
  if (!read_triplets(args + 4, given, triplets) || reduction == LossReduction::other || !read_flags(args[9], needs, 3)) return not_covered();
  return with_type(given.dtype, [&](auto zero) {
    using T = decltype(zero);
    const auto& of = given.operands;
    return gradients<T>(given, args[0], reduction, needs, [&](const T* upstream, int64_t step, T* const* grads) {
      functions<T>().triplet_backward(triplets, upstream, step, of.template data<T>(0), of.template data<T>(1), of.template data<T>(2), grads);
    });
  });
}

// targets, margin
bool read_cosines(PyObject* const* options, const Embeddings& given, Cosines& cosines) {
  cosines.rows = given.rows, cosines.width = given.width, cosines.least = cosine_least;
  return is_per_row(as_array(options[0]), given) && read_number(options[1], cosines.margin);
}

// cosine_embedding(a, b, t, margin, reduction)
PyObject* call_cosine(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  if (count != 5) return not_covered();
  Embeddings given;
  if (!given.read(args, 2)) return call_widened(call_cosine, self, args, count);
  Cosines cosines;
  const LossReduction reduction = read_reduction(args[4]);
  if (!read_cosines(args + 2, given, cosines) || reduction == LossReduction::other) return not_covered();
  return with_type(given.dtype, [&](auto zero) {
    using T = decltype(zero);
    const auto& of = given.operands;
    return reduced<T>(given, reduction, [&](T* losses) {
      functions<T>().cosine(cosines, of.template data<T>(0), of.template data<T>(1), data_of<const T>(as_array(args[2])), losses);
    });
  });
}

// cosine_embedding_backward(g, a, b, t, margin, reduction, needs)
PyObject* call_cosine_backward(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  if (count != 7) return not_covered();
  Embeddings given;
  if (!given.read(args + 1, 2)) return call_widened(call_cosine_backward, self, args, count);
  Cosines cosines;
  bool needs[2];
  const LossReduction reduction = read_reduction(args[5]);
  if (!read_cosines(args + 3, given, cosines) || reduction == LossReduction::other || !read_flags(args[6], needs, 2)) return not_covered();
  return with_type(given.dtype, [&](auto zero) {
    using T = decltype(zero);
    const auto& of = given.operands;
    return gradients<T>(given, args[0], reduction, needs, [&](const T* upstream, int64_t step, T* const* grads) {
      functions<T>().cosine_backward(cosines, upstream, step, of.template data<T>(0), of.template data<T>(1), data_of<const T>(as_array(args[3])),
                                     grads);
    });
  });
}

}  // namespace

void bind_loss_metric(PyObject* kernels) {
  add_kernel(kernels, "triplet_margin", call_triplet);
  add_kernel(kernels, "triplet_margin_backward", call_triplet_backward);
  add_kernel(kernels, "cosine_embedding", call_cosine);
  add_kernel(kernels, "cosine_embedding_backward", call_cosine_backward);
}

}  // namespace extensor
