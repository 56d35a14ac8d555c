// The call of an op: the plan of its kind is repeated, or the readable body decides.
#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <utility>

#include "bindings/exceptions.hpp"
#include "bindings/recorder/plan.hpp"

#include <structmember.h>

namespace extensor::recorder {
namespace {

// Plans by the hash of their key, in sets of a few; the one that was not used for longest makes room.
constexpr int set_count = 2048, ways = 4;
HeldPlan (*const table)[ways] = new HeldPlan[set_count][ways];  // for as long as the process lives: plans hold Python objects
long long hits = 0, misses = 0, clock = 0;
bool enabled = true;
PyObject* name_call;

// Kinds of calls that were met once. A plan is made at the second meeting: a shape that comes only once is not worth it, nor is
// one among so many that its last plan had to make room: it starts over.
constexpr int seen_count = 1 << 16;
uint64_t seen[seen_count];

bool is_known(const Key& key) {
  uint64_t& place = seen[key.hash % seen_count];
  const bool known = place == key.hash;
  place = known ? 0 : key.hash;
  return known;
}

Plan* find(const Key& key) {
  for (const HeldPlan& plan : table[key.hash % set_count]) {
    if (plan == nullptr || !plan->fits(key)) continue;
    plan->last_used = ++clock;
    return plan.get();
  }
  return nullptr;
}

// Whether an op may have plans, and its body is as it was defined.
bool has_plans(const Op* op) {
  return op->planned && has_body(op, op->own_fn, op->own_code, op->own_defaults);
}

void keep(HeldPlan made, const Key& key) {
  made->last_used = ++clock;
  const auto age = [](const HeldPlan& plan) { return plan == nullptr ? 0 : plan->last_used; };
  auto& set = table[key.hash % set_count];
  std::swap(*std::min_element(set, set + ways, [&](const HeldPlan& a, const HeldPlan& b) { return age(a) < age(b); }), made);
}

// Op.call, which runs the body.
PyObject* call_in_python(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  const Ref<> method = maybe(PyObject_GetAttr(self, name_call));
  return method == nullptr ? nullptr : PyObject_Vectorcall(method, args, nargsf, kwnames);
}

// The body of the second call of a kind runs with its kernel calls listed; what it did becomes the plan of that kind.
PyObject* decide(Op* op, PyObject* const* args, size_t nargsf, PyObject* kwnames, Key& key) {
  ++misses;
  const Py_ssize_t count = PyVectorcall_NARGS(nargsf), named = kwnames == nullptr ? 0 : PyTuple_GET_SIZE(kwnames);
  std::vector<PyObject*> given(args, args + count + named);
  // Numbers that are handed on unread are found again by their identity: fresh objects, unlike any constant of the body.
  for (Py_ssize_t i = 0, leaf = 0; i < count; ++i) {
    if (!op->is_number(i, args[i])) continue;
    while (!PyFloat_CheckExact(key.leaves[leaf])) ++leaf;  // they are leaves in this order
    PyObject* fresh = given[size_t(i)] = owned(PyFloat_FromDouble(PyFloat_AS_DOUBLE(args[i]))).release();
    Py_SETREF(key.leaves[leaf], Py_NewRef(fresh));
    Py_SETREF(key.values[leaf], fresh);
    ++leaf;
  }
  const Ref calls = owned(PyList_New(0)), leaves = owned(PyTuple_New(key.leaf_count));
  for (int i = 0; i < key.leaf_count; ++i) PyTuple_SET_ITEM(leaves.get(), i, Py_NewRef(key.leaves[i]));
  Py_XSETREF(state.trace, Py_NewRef(calls.get()));
  state.values_read = false;
  PyObject* made = call_in_python(reinterpret_cast<PyObject*>(op), given.data(), size_t(count), kwnames);
  const bool read = state.values_read;
  Py_CLEAR(state.trace);
  Ref result = owned(made);
  keep(HeldPlan(new Plan(key, read ? shared(Py_None) : call(helpers.make_plan, leaves.get(), calls.get(), result.get()))), key);
  return result.release();  // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks): the table owns the plan
}

PyObject* call_op(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  auto* op = reinterpret_cast<Op*>(self);
  Key key;
  const ThreadState& now = state;
  const bool records = now.recording;
  if (!enabled || now.observer != nullptr || now.trace != nullptr || !has_plans(op) ||
      !key.read(op, args, PyVectorcall_NARGS(nargsf), kwnames, uint64_t(now.mode) << 1 | records) || (op->is_backward && records && key.requires_grad))
    return call_in_python(self, args, nargsf, kwnames);
  Plan* plan = find(key);
  if (plan == nullptr && is_known(key)) return decide(op, args, nargsf, kwnames, key);
  if (plan == nullptr) ++misses;
  if (plan == nullptr || plan->runs_body()) return call_in_python(self, args, nargsf, kwnames);
  ++hits;
  const HeldPlan held = plan->held();  // while it runs, another thread may put a new one in its place
  PyObject* result = plan->run(op, key);
  if (result != nullptr || (PyErr_Occurred() && (PyErr_ExceptionMatches(PyExc_MemoryError) || !PyErr_ExceptionMatches(PyExc_Exception)))) return result;
  PyErr_Clear();  // what is wrong with the arguments, the body knows how to say
  return call_in_python(self, args, nargsf, kwnames);
}

// A MemoryError names the function, wherever in it memory ran out.
PyObject* name_memory_error(PyObject* op) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  const Ref<> held_type = maybe(type), error = maybe(value), held_traceback = maybe(traceback);
  if (traceback != nullptr) PyException_SetTraceback(value, traceback);
  const Ref<> named = call(helpers.named_memory_error, op, value);
  PyErr_SetObject(PyExc_MemoryError, named);
  return nullptr;
}

PyObject* op_vectorcall(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  PyObject* result = guarded([&] { return call_op(self, args, nargsf, kwnames); });
  if (result == nullptr && PyErr_ExceptionMatches(PyExc_MemoryError)) return guarded([&] { return name_memory_error(self); });
  return result;
}

// outcome(*args, **kwargs): see Plan::outcome; None where no plan says so.
PyObject* op_outcome(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* kwnames) {
  PyObject* found = guarded([&]() -> PyObject* {
    auto* op = reinterpret_cast<Op*>(self);
    Key key;
    Plan* plan = nullptr;
    if (enabled && has_plans(op) && key.read(op, args, count, kwnames, uint64_t(state.mode) << 1)) plan = find(key);
    if (plan == nullptr || plan->runs_body()) return nullptr;
    const HeldPlan held = plan->held();
    return plan->outcome(key);
  });
  if (found != nullptr) return found;
  PyErr_Clear();
  Py_RETURN_NONE;
}

using OpFields = Collected<Op, &Op::dict, &Op::fn, &Op::backward, &Op::own_fn, &Op::own_code, &Op::own_defaults, &Op::own_keyword_defaults>;

// The first of the arguments, which are those of the class in Python, is the readable body.
PyObject* op_new(PyTypeObject* type, PyObject* args, PyObject*) {
  auto* self = reinterpret_cast<Op*>(type->tp_alloc(type, 0));
  if (self == nullptr) return nullptr;
  static unsigned long long last_id = 0;
  if (type->tp_call == PyVectorcall_Call && !(type->tp_flags & Py_TPFLAGS_HAVE_VECTORCALL)) {  // before Python 3.12 no class inherits it
    type->tp_vectorcall_offset = offsetof(Op, vectorcall);
    type->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR;
    PyType_Modified(type);
  }
  self->vectorcall = op_vectorcall;
  self->id = ++last_id;
  if (PyTuple_GET_SIZE(args) > 0 && PyFunction_Check(PyTuple_GET_ITEM(args, 0))) {
    const auto* body = reinterpret_cast<PyFunctionObject*>(self->own_fn = Py_NewRef(PyTuple_GET_ITEM(args, 0)));
    self->own_code = Py_NewRef(body->func_code);
    self->own_defaults = Py_XNewRef(body->func_defaults);
    self->own_keyword_defaults = body->func_kwdefaults == nullptr ? nullptr : PyDict_Items(body->func_kwdefaults);
    if (PyErr_Occurred()) Py_CLEAR(self);
  }
  return reinterpret_cast<PyObject*>(self);
}

PyObject* op_get(PyObject* self, PyObject* instance, PyObject*) {
  if (instance == nullptr || instance == Py_None) return Py_NewRef(self);
  return PyMethod_New(self, instance);
}

PyMethodDef op_methods[] = {
    {"outcome", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(op_outcome)), METH_FASTCALL | METH_KEYWORDS,
     "What the results of an unrecorded call are like, if a plan knows it; None if not."},
    {nullptr, nullptr, 0, nullptr}};

PyMemberDef op_members[] = {
    {"fn", T_OBJECT, offsetof(Op, fn), 0, "The readable body."},
    {"native_backward", T_OBJECT_EX, offsetof(Op, backward), 0, nullptr},
    {"takes_needs", T_BOOL, offsetof(Op, takes_needs), 0, nullptr},
    {"planned", T_BOOL, offsetof(Op, planned), 0, nullptr},
    {"is_backward", T_BOOL, offsetof(Op, is_backward), 0, nullptr},
    {"numbers", T_ULONGLONG, offsetof(Op, numbers), 0, nullptr},
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Op, vectorcall), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(Op, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Op, weakrefs), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};

PyObject* clear_plans(PyObject*, PyObject*) {
  for (int i = 0; i < set_count; ++i)
    for (HeldPlan& plan : table[i]) plan = nullptr;
  std::memset(seen, 0, sizeof seen);
  hits = misses = 0;
  Py_RETURN_NONE;
}

PyObject* plan_counts(PyObject*, PyObject*) {
  long long kept = 0, unplanned = 0;
  for (int i = 0; i < set_count; ++i)
    for (const HeldPlan& plan : table[i]) kept += plan != nullptr, unplanned += plan != nullptr && plan->runs_body();
  return Py_BuildValue("{sLsLsLsL}", "hits", hits, "misses", misses, "kept", kept, "bodies", unplanned);
}

PyObject* enable_plans(PyObject*, PyObject* on) {
  const int wanted = PyObject_IsTrue(on);
  if (wanted < 0) return nullptr;
  return PyBool_FromLong(std::exchange(enabled, wanted != 0));
}

PyMethodDef functions[] = {
    {"clear_plans", clear_plans, METH_NOARGS, "Forget all plans: the next call of every kind is decided by its body."},
    {"plan_counts", plan_counts, METH_NOARGS, "Calls that repeated a plan and that decided anew; plans kept, and kinds without one."},
    {"enable_plans", enable_plans, METH_O, "Set whether plans are used; returns whether they were."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool has_items(PyObject* dict, PyObject* items) {
  if (dict == nullptr || items == nullptr) return dict == items;
  if (PyDict_GET_SIZE(dict) != PyList_GET_SIZE(items)) return false;
  PyObject *name, *value;
  for (Py_ssize_t at = 0, i = 0; PyDict_Next(dict, &at, &name, &value); ++i)
    if (PyTuple_GET_ITEM(PyList_GET_ITEM(items, i), 0) != name || PyTuple_GET_ITEM(PyList_GET_ITEM(items, i), 1) != value) return false;
  return true;
}

void bind_ops(PyObject* module) {
  const char* wanted = std::getenv("EXTENSOR_PLANS");
  enabled = wanted == nullptr || std::strcmp(wanted, "0") != 0;
  name_call = owned(PyUnicode_InternFromString("call")).release();
  op_base = OpFields::add_class(module, "extensor._native.OpBase",
                                {slot(Py_tp_new, op_new), slot(Py_tp_call, PyVectorcall_Call), slot(Py_tp_descr_get, op_get), slot(Py_tp_methods, op_methods),
                                 slot(Py_tp_members, op_members), doc("The call of an op.")},
                                Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR);
  if (PyModule_AddFunctions(module, functions) < 0) throw PythonError();
}

}  // namespace extensor::recorder
