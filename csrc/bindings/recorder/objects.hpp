// What the parts of the recorder share: its objects, and the state of the thread.
#pragma once

#include "bindings/arrays.hpp"
#include "kernels/elementwise/elementwise.hpp"

namespace extensor::recorder {

struct Tensor {
  PyObject_HEAD
  PyObject* array;
  PyObject* grad;
  PyObject* node;
  char requires_grad;
  PyObject* weakrefs;
};

struct Node {
  PyObject_HEAD
  PyObject* op;
  PyObject* edges;
  PyObject* saved;
  PyObject* options;
  PyObject* casts;
  PyObject* outputs;
  PyObject* shapes;
  PyObject* shape;  // of the output
  PyObject* code;  // of the caller outside this package
  int instruction;
  long long sequence;
  PyObject* weakrefs;
};

// Where an argument of the backward function comes from.
struct Kept {
  enum Kind : char { argument, shape, dtype, output } kind;
  int index;
};

constexpr int max_kept = 4;

struct Op {
  PyObject_HEAD
  vectorcallfunc vectorcall;
  PyObject* dict;
  PyObject* weakrefs;
  const ElementwiseKernel* kernel;  // nullptr: always the Python method
  double scalars[max_elementwise_scalars];
  bool records;  // false for a fused backward: where it must be recorded, Python does it
  bool broadcasts;  // whether operands of different shapes are stretched
  bool changes_dtype;  // the backward knows the dtype of its input
  int kept_count;
  Kept kept[max_kept];
  int target_count;
  int targets[max_elementwise_inputs];
  PyObject* results;  // the NamedTuple of several outputs, or nullptr
  PyObject* direct;   // a kernel to call with the tensors themselves, or nullptr
  PyObject* plain;    // what stands for the arguments of `direct` that are not given; last_axis and all_axes are made
  PyObject* names;    // how they are called
  int tensor_count;   // how many of them may be tensors
};

extern PyTypeObject* tensor_type;  // ExTensor, once registered
extern PyTypeObject* tensor_base;
extern PyTypeObject* node_type;  // extensor.graph.Node, once registered
extern PyTypeObject* node_base;
extern PyObject* package_path;  // frames below it are not the user's
extern long long last_sequence;

extern thread_local bool recording;
extern thread_local PyObject* observer;

extern PyType_Spec tensor_spec, node_spec, op_spec;

// A tensor of an array and a node (or nullptr), which it takes over.
PyObject* make_tensor(PyObject* array, bool requires_grad, PyObject* node);

// A node of the given class; borrows all.
Node* make_node(PyTypeObject* type, PyObject* op, PyObject* edges, PyObject* saved, PyObject* options);

// Names that the calls of ops look for. False with a Python error set on failure.
bool prepare_calls();

}  // namespace extensor::recorder
