// A linear map and what follows it as one step of an inference program, with the packed weight kept.
#include <memory>
#include <unordered_map>

#include "bindings/operands.hpp"
#include "core/memory.hpp"
#include "kernels/matmul/matmul.hpp"

namespace extensor {
namespace {

// What register tiles read of a weight, which this holds so that nobody writes to it. Programs for several shapes share it. All of
// it happens under the interpreter's lock.
class PackedLinear {
 public:
  static std::shared_ptr<PackedLinear> find(PyArrayObject* weight) {
    const auto found = all().find(weight);
    return found == all().end() ? nullptr : found->second.lock();
  }
  static std::shared_ptr<PackedLinear> find_or_make(PyArrayObject* weight) {
    std::shared_ptr<PackedLinear> packed = find(weight);
    if (packed == nullptr) {
      packed = std::make_shared<PackedLinear>(weight);
      all()[weight] = packed;
    }
    return packed;
  }

  explicit PackedLinear(PyArrayObject* weight) : weight_(shared(weight)) {
    const int64_t n = PyArray_DIM(weight, 0), k = PyArray_DIM(weight, 1);
    const MatmulTable& table = EXTENSOR_SELECT(matmul_table)();
    bytes_ = size_t(table.packed_size(k, n)) * sizeof(float);
    data_ = static_cast<float*>(require_buffer(bytes_));
    table.pack(k, n, data_of<const float>(weight), 1, k, data_);
  }
  ~PackedLinear() {
    all().erase(weight_.get());
    recycle_buffer(data_, bytes_);
  }
  PackedLinear(const PackedLinear&) = delete;
  PackedLinear& operator=(const PackedLinear&) = delete;

  const float* data() const { return data_; }

 private:
  static std::unordered_map<PyArrayObject*, std::weak_ptr<PackedLinear>>& all() {
    static auto* const map = new std::unordered_map<PyArrayObject*, std::weak_ptr<PackedLinear>>();  // outlives all programs
    return *map;
  }

  Ref<PyArrayObject> weight_;
  float* data_ = nullptr;
  size_t bytes_ = 0;
};

// The weight of the last call. It is packed when it comes for the second time: one that is new in every call never is.
struct LinearMemory {
  Ref<PyArrayObject> weight;
  std::shared_ptr<PackedLinear> packed;

  std::shared_ptr<PackedLinear> packed_of(PyArrayObject* now) {
    if (weight.get() == now) {
      if (packed == nullptr) packed = PackedLinear::find_or_make(now);
    } else {
      packed = PackedLinear::find(now);
      weight = shared(now);
    }
    return packed;
  }
};

bool read_activation(PyObject* object, Activation& activation) {
  if (object == Py_None) activation = Activation::none;
  else if (is_text(object, "relu")) activation = Activation::relu;
  else if (is_text(object, "gelu")) activation = Activation::gelu;
  else if (is_text(object, "gelu_tanh")) activation = Activation::gelu_tanh;
  else return false;
  return true;
}

bool is_dense(PyArrayObject* array) {
  return array != nullptr && dtype_of(array) == DType::float32 && is_readable(array) && PyArray_IS_C_CONTIGUOUS(array);
}

// x, weight, bias; the name of an activation or None; a tensor to add or None; how many results, which nobody needs, come before.
PyObject* call_fused_linear(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  auto* memory = static_cast<LinearMemory*>(PyCapsule_GetPointer(self, nullptr));
  Activation activation;
  if (count != 6 || !read_activation(args[3], activation)) return not_covered();
  const int64_t before = read_below(args[5], 16);
  PyArrayObject *const x = as_array(args[0]), *const weight = as_array(args[1]), *const bias = as_array(args[2]), *const added = as_array(args[4]);
  if (before < 0 || !is_dense(x) || !is_dense(weight) || PyArray_NDIM(x) < 1 || PyArray_NDIM(weight) != 2) return not_covered();
  const int ndim = PyArray_NDIM(x);
  const int64_t n = PyArray_DIM(weight, 0), k = PyArray_DIM(weight, 1);
  if (PyArray_DIM(x, ndim - 1) != k) return not_covered();
  if (args[2] != Py_None && (!is_dense(bias) || !has_shape(bias, 1, PyArray_DIMS(weight)))) return not_covered();
  npy_intp shape[NPY_MAXDIMS];
  for (int axis = 0; axis < ndim - 1; ++axis) shape[axis] = PyArray_DIM(x, axis);
  shape[ndim - 1] = n;
  if (args[4] != Py_None && (!is_dense(added) || !has_shape(added, ndim, shape))) return not_covered();
  Array out = make_array(DType::float32, ndim, shape);
  const int64_t m = product_of(shape, ndim - 1);
  if (m * n > 0) {
    Product<float> product{m, n, k, data_of<const float>(x), k, 1, data_of<const float>(weight), 1, k, data_of<float>(out), n};
    product.column_bias = data_of<const float>(bias);
    product.activation = activation;
    product.added = data_of<const float>(added);
    std::shared_ptr<PackedLinear> packed;
    if (EXTENSOR_SELECT(matmul_table)().reads_packed(m, n, k)) packed = memory->packed_of(weight);
    if (packed != nullptr) product.packed_b = packed->data();
    MaybeReleaseGil unlocked(product_ns<float>(m, n, k));
    matmul(product);
  }
  if (before == 0) return out.release();
  Ref<> found = owned(PyTuple_New(before + 1));
  for (Py_ssize_t i = 0; i < before; ++i) PyTuple_SET_ITEM(found.get(), i, Py_NewRef(Py_None));
  PyTuple_SET_ITEM(found.get(), before, out.release());
  return found.release();
}

PyObject* make_fused_linear(PyObject*, PyObject* const*, Py_ssize_t count) {
  if (count != 0) return not_covered();
  auto memory = std::make_unique<LinearMemory>();
  Ref<> capsule = owned(PyCapsule_New(memory.get(), nullptr, [](PyObject* self) { delete static_cast<LinearMemory*>(PyCapsule_GetPointer(self, nullptr)); }));
  memory.release();
  return make_kernel(call_fused_linear, std::move(capsule)).release();
}

}  // namespace

void bind_fused_linear(PyObject* module_dict) { add_kernel(module_dict, "fused_linear", make_fused_linear); }

}  // namespace extensor
