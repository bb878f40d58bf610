// `sluice._core`: core/session/session.h for Python. Tensors come as DLPack has them, so any
// library that speaks it may send them, and libtorch is not linked.
//
// Thread contract: that of Session. Each call that waits does so without the interpreter's lock. A
// process that was forked from the one that opened a session is refused: the schedule's thread is
// not in it.

#include <malloc.h>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string_view>
#include <tuple>

#include "base/float16.h"
#include "core/session/session.h"
#include "core/session/session_plan.h"
#include "core/session/session_state.h"
#include "core/session/state_file.h"
#include "python/activations.h"
#include "python/machine.h"
#include "python/raised.h"

namespace nb = nanobind;

namespace sluice::python {
namespace {

using session::GroupRates;
using session::Session;
using session::SessionState;
using session::StepDone;
using session::StepId;

const char* name_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::config:
      return "config";
    case ErrorCode::not_found:
      return "not_found";
    case ErrorCode::busy:
      return "busy";
    case ErrorCode::unsupported:
      return "unsupported";
    case ErrorCode::memory:
      return "memory";
    case ErrorCode::io:
      return "io";
    case ErrorCode::no_space:
      return "no_space";
    case ErrorCode::corrupt:
      return "corrupt";
    case ErrorCode::cancelled:
      return "cancelled";
    case ErrorCode::diverged:
      return "diverged";
    case ErrorCode::internal:
      break;
  }
  return "internal";
}

void raise_in_python(const std::exception_ptr& thrown, void* type) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Raised& raised) {
    const nb::tuple arguments =
        nb::make_tuple(raised.error.message(), name_of(raised.error.code()));
    PyErr_SetObject(static_cast<PyObject*>(type), arguments.ptr());
  }
}

using Values = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;
using Gradient = nb::ndarray<const float, nb::c_contig, nb::device::cpu>;
using Room = nb::ndarray<float, nb::c_contig, nb::device::cpu>;
using Parameters = nb::ndarray<nb::array_api>;
using ParameterRoom = nb::ndarray<nb::c_contig, nb::device::cpu>;
// The values of a group, by name.
using PythonRates = std::map<std::string, double>;
// Step and version.
using PythonStep = std::pair<std::int64_t, std::string>;
// Name, shape, group, first values.
using PythonTensor = std::tuple<std::string, std::vector<std::int64_t>, std::size_t, Values>;
// Name, shape, tensor, array.
using FileEntry = std::tuple<std::string, std::vector<std::int64_t>, std::size_t, std::size_t>;

constexpr nb::dlpack::dtype dtype_of(nb::dlpack::dtype_code code, std::uint8_t bits) {
  return {static_cast<std::uint8_t>(code), bits, 1};
}
constexpr nb::dlpack::dtype kFp32 = dtype_of(nb::dlpack::dtype_code::Float, 32);
constexpr nb::dlpack::dtype kFp16 = dtype_of(nb::dlpack::dtype_code::Float, 16);
constexpr nb::dlpack::dtype kBf16 = dtype_of(nb::dlpack::dtype_code::Bfloat, 16);

void widen(const Values& values, std::int64_t first, std::span<float> out) {
  if (values.dtype() == kFp32) {
    const float* from = static_cast<const float*>(values.data()) + first;
    std::copy_n(from, out.size(), out.data());
    return;
  }
  const Float16Kind kind = values.dtype() == kBf16 ? Float16Kind::bf16 : Float16Kind::fp16;
  const std::uint16_t* from = static_cast<const std::uint16_t*>(values.data()) + first;
  for (float& value : out) value = float_from_float16(kind, *from++);
}

// The C library keeps freed memory for later, of tensors of up to 32 MiB, and a program's peak is
// that of before its gradients left. With a threshold that is said, it gives larger pieces back.
void give_freed_memory_back() {
  constexpr int kThresholdBytes = 1 << 20;
  mallopt(M_MMAP_THRESHOLD, kThresholdBytes);
}

class OpenSession {
 public:
  // `arrays`: of the optimizer's state behind the master weights, each with the first values of
  // every tensor, after `updates`, and `steps` of another state; empty: zeros.
  OpenSession(const std::string& folder, const std::vector<PythonTensor>& tensors,
              std::size_t groups, const std::vector<std::string>& settings,
              const std::vector<std::vector<Values>>& arrays, std::int64_t updates,
              const std::optional<PythonStep>& from, bool begins_anew, std::int64_t steps)
      : has_16_bits_(has_16_bit_parameters(settings)) {
    Session::Request request;
    request.folder = folder;
    request.settings = settings;
    request.groups.resize(groups);
    request.begins_anew = begins_anew;
    if (from) request.from = StepId{from->first, from->second};
    for (const auto& [name, shape, group, values] : tensors) {
      check_values(name, values);
      request.tensors.push_back({name, shape, group});
    }
    request.initial = [&tensors](std::size_t tensor, std::int64_t first, std::span<float> out) {
      widen(std::get<Values>(tensors[tensor]), first, out);
    };
    if (!arrays.empty()) {
      request.initial_array = [&arrays](std::size_t tensor, std::size_t array, std::int64_t first,
                                        std::span<float> out) {
        widen(arrays[array - 1][tensor], first, out);
      };
    }
    request.initial_updates = updates;
    request.initial_step = steps;
    const nb::gil_scoped_release others_run;
    session_ = value_or_raise(Session::open(request));
  }

  // In a forked process nobody would end a thread that is not there.
  ~OpenSession() {
    if (process_ != getpid()) static_cast<void>(session_.release());
  }

  std::int64_t step() const { return session_->step(); }
  std::int64_t planned_memory_bytes() const { return session_->planned_memory_bytes(); }

  void send(std::size_t tensor, const Gradient& gradient) {
    check_process();
    const std::span<const float> values(gradient.data(), gradient.size());
    const nb::gil_scoped_release others_run;
    value_or_raise(session_->send(tensor, values));
  }

  void replace(std::size_t tensor, const Gradient& gradient) {
    check_process();
    const std::span<const float> values(gradient.data(), gradient.size());
    const nb::gil_scoped_release others_run;
    value_or_raise(session_->replace(tensor, values));
  }

  void read(std::size_t tensor, const Room& into) {
    check_process();
    const std::span<float> values(into.data(), into.size());
    const nb::gil_scoped_release others_run;
    value_or_raise(session_->read(tensor, values));
  }

  void expect_step(const std::vector<PythonRates>& rates, double gradient_factor) {
    check_process();
    session::StepRequest request = request_of(rates);
    request.gradient_factor = gradient_factor;
    const nb::gil_scoped_release others_run;
    value_or_raise(session::expect_step(*session_, request));
  }

  // With how many subgroups were updated ahead, and how many of them again.
  std::tuple<std::int64_t, double, bool, int, int> take_step(const std::vector<PythonRates>& rates,
                                                             double loss, double gradient_factor,
                                                             std::int64_t tokens) {
    check_process();
    session::StepRequest request = request_of(rates);
    request.gradient_factor = gradient_factor;
    request.loss = loss;
    request.tokens = tokens;
    request.awaits_note = std::isnan(loss);
    const nb::gil_scoped_release others_run;
    const StepDone done = value_or_raise(session_->take_step(request));
    return {done.step, done.grad_norm, done.is_stopping, done.ahead_count, done.refuted_count};
  }

  // The session's own memory, once the last step is in it. `owner`: this object's, for as long as
  // somebody holds it.
  Parameters parameters(nb::handle owner, std::size_t tensor) {
    check_process();
    {
      const nb::gil_scoped_release others_run;
      value_or_raise(session_->wait(tensor));
    }
    return has_16_bits_ ? as_array(session_->parameters(tensor), owner, kBf16)
                        : as_array(session_->parameters_fp32(tensor), owner, kFp32);
  }

  // Into the caller's memory, of the session's precision.
  void copy_parameters(std::size_t tensor, const ParameterRoom& into) {
    check_process();
    const std::size_t size = into.size();
    void* const data = into.data();
    const bool is_fp32 = into.dtype() == kFp32;
    const nb::gil_scoped_release others_run;
    session::ParameterRoom room = std::span(static_cast<std::uint16_t*>(data), size);
    if (is_fp32) room = std::span(static_cast<float*>(data), size);
    value_or_raise(session::copy_parameters(*session_, tensor, room));
  }

  // NaN, and below 0: it is not known.
  void note(double loss, std::int64_t tokens) {
    check_process();
    session::StepNote figures;
    if (!std::isnan(loss)) figures.loss = loss;
    if (tokens >= 0) figures.tokens = tokens;
    const nb::gil_scoped_release others_run;
    value_or_raise(session_->note(figures));
  }

  void note_validation(double loss, std::int64_t tokens) {
    check_process();
    const nb::gil_scoped_release others_run;
    value_or_raise(session_->note({.validation_loss = loss, .validation_tokens = tokens}));
  }

  // `tensor` below 0: none.
  void record(session::Work work, std::int64_t begin_ns, std::int64_t end_ns, std::int64_t tensor,
              std::string_view name, int depth) {
    if (process_ != getpid()) return;
    session::WorkSpan span{.work = work, .begin_ns = begin_ns, .end_ns = end_ns};
    if (tensor >= 0) span.tensor = static_cast<std::size_t>(tensor);
    span.name = name;
    span.depth = depth;
    session_->record(span);
  }

  void count(std::string_view name, double value) {
    if (process_ == getpid()) session_->count(name, value);
  }

  PythonStep make_durable() {
    check_process();
    const nb::gil_scoped_release others_run;
    return step_of(value_or_raise(session_->commit()));
  }

  PythonStep keep(const std::string& keeper) {
    check_process();
    const nb::gil_scoped_release others_run;
    return step_of(value_or_raise(session_->keep(keeper)));
  }

  void release(std::int64_t step, const std::string& version) {
    check_process();
    const nb::gil_scoped_release others_run;
    value_or_raise(session_->release({step, version}));
  }

  std::vector<std::tuple<std::int64_t, std::string, std::string>> kept() {
    check_process();
    const nb::gil_scoped_release others_run;
    std::vector<std::tuple<std::int64_t, std::string, std::string>> found;
    for (const session::KeptStep& step : value_or_raise(session_->kept())) {
      found.emplace_back(step.id.step, step.id.version, step.keeper);
    }
    return found;
  }

  void read_state(std::size_t tensor, std::size_t array, std::int64_t first, const Room& into) {
    check_process();
    const std::span<float> values(into.data(), into.size());
    const nb::gil_scoped_release others_run;
    value_or_raise(SessionState(*session_).read(tensor, array, first, values));
  }

  std::vector<std::string> state_arrays() {
    check_process();
    const nb::gil_scoped_release others_run;
    return value_or_raise(SessionState(*session_).arrays());
  }

  std::int64_t updates_done() {
    check_process();
    const nb::gil_scoped_release others_run;
    return value_or_raise(SessionState(*session_).updates_done());
  }

  std::string digest() {
    check_process();
    const nb::gil_scoped_release others_run;
    return value_or_raise(SessionState(*session_).digest());
  }

  std::int64_t save_snapshot(const std::string& folder) {
    check_process();
    const nb::gil_scoped_release others_run;
    value_or_raise(SessionState(*session_).save_snapshot(folder));
    return session_->step();
  }

  void set(const std::vector<std::string>& settings) {
    check_process();
    const nb::gil_scoped_release others_run;
    value_or_raise(session_->set(settings));
  }

  std::vector<std::pair<std::string, std::string>> knobs() {
    check_process();
    std::vector<std::pair<std::string, std::string>> found;
    const nb::gil_scoped_release others_run;
    for (const session::Knob& knob : value_or_raise(session_->knobs())) {
      found.emplace_back(knob.key, knob.value);
    }
    return found;
  }

  void write_state_file(const std::string& folder, const std::string& stem,
                        const std::string& optimizer, const std::vector<FileEntry>& entries) {
    check_process();
    session::StateFile file{.folder = folder, .stem = stem, .optimizer = optimizer};
    for (const auto& [name, shape, tensor, array] : entries) {
      file.entries.push_back({name, shape, tensor, array});
    }
    const nb::gil_scoped_release others_run;
    value_or_raise(session::write_state_file(*session_, file));
  }

  void close() {
    if (process_ != getpid()) return;
    const nb::gil_scoped_release others_run;
    value_or_raise(session_->close());
  }

 private:
  static session::StepRequest request_of(const std::vector<PythonRates>& rates) {
    session::StepRequest request;
    for (const PythonRates& group : rates) request.groups.push_back(rates_of(group));
    if (!rates.empty()) request.lr = request.groups.front().lr;
    return request;
  }

  // Those that an optimizer has; another name is a mistake of the package's.
  static GroupRates rates_of(const PythonRates& named) {
    GroupRates rates;
    const std::array<std::pair<const char*, std::optional<double>*>, 6> all = {
        {{"lr", &rates.lr},
         {"weight_decay", &rates.weight_decay},
         {"beta1", &rates.beta1},
         {"beta2", &rates.beta2},
         {"momentum", &rates.momentum},
         {"eps", &rates.eps}}};
    for (const auto& [name, value] : named) {
      const auto* found = std::ranges::find(all, name, [](const auto& one) { return one.first; });
      if (found == all.end())
        throw Raised{make_error(ErrorCode::internal, "a group has no {}", name)};
      *found->second = value;
    }
    return rates;
  }

  static PythonStep step_of(const StepId& id) { return {id.step, id.version}; }

  // The package asks for one of two precisions: bf16, or fp32.
  static bool has_16_bit_parameters(const std::vector<std::string>& settings) {
    return std::ranges::find(settings, "precision=bf16") != settings.end();
  }

  static void check_values(const std::string& name, const Values& values) {
    const nb::dlpack::dtype type = values.dtype();
    if (type == kFp32 || type == kBf16 || type == kFp16) return;
    throw Raised{make_error(ErrorCode::config, "{}: parameters are fp32, bf16 or fp16", name)};
  }

  void check_process() const {
    if (process_ == getpid()) return;
    throw Raised{make_error(ErrorCode::config,
                            "this process was forked from {}, whose session this is; only that one "
                            "can use it",
                            process_)};
  }

  template <typename T>
  static Parameters as_array(std::span<const T> values, nb::handle owner, nb::dlpack::dtype type) {
    const std::size_t size = values.size();
    return {const_cast<T*>(values.data()), 1, &size, owner, nullptr, type};
  }

  const pid_t process_ = getpid();
  const bool has_16_bits_;
  std::unique_ptr<Session> session_;
};

// Name, shape, group. The rows (place, what for, bytes), host memory, its cap, seconds.
using PlannedTensor = std::tuple<std::string, std::vector<std::int64_t>, std::size_t>;
using PlanRow = std::tuple<std::string, std::string, std::int64_t>;
using PlanFigures = std::tuple<std::vector<PlanRow>, std::int64_t, std::int64_t, double>;

PlanFigures plan(const std::string& folder, const std::vector<PlannedTensor>& tensors,
                 std::size_t groups, const std::vector<std::string>& settings) {
  Session::Request request;
  request.folder = folder;
  request.settings = settings;
  request.groups.resize(groups);
  for (const auto& [name, shape, group] : tensors) request.tensors.push_back({name, shape, group});
  const nb::gil_scoped_release others_run;
  const session::SessionPlan found = value_or_raise(session::plan_session(request));
  std::vector<PlanRow> rows;
  for (const session::SessionPlan::Row& row : found.rows) {
    rows.emplace_back(row.place, row.what, row.size_bytes);
  }
  return {rows, found.host_memory_bytes, found.host_memory_cap_bytes, found.update_seconds};
}

}  // namespace
}  // namespace sluice::python

NB_MODULE(_core, module) {
  using sluice::python::OpenSession;
  // Gradients' handles, and with them their session, live as long as the program's parameters do.
  nb::set_leak_warnings(false);
  // The package stays loaded as long as the process.
  nb::object error = nb::module_::import_("sluice._error").attr("Error");
  nb::register_exception_translator(sluice::python::raise_in_python, error.release().ptr());

  sluice::python::add_machine(module);
  sluice::python::register_activations(module);
  module.def("give_freed_memory_back", &sluice::python::give_freed_memory_back);
  using sluice::session::Work;
  nb::enum_<Work>(module, "Work", "core/session/session.h")
      .value("OTHER", Work::other)
      .value("FORWARD", Work::forward)
      .value("BACKWARD", Work::backward)
      .value("PARAMETERS", Work::parameters)
      .value("VALIDATION", Work::validation)
      .value("MODULE", Work::module);
  module.def("plan", &sluice::python::plan, nb::arg("folder"), nb::arg("tensors"),
             nb::arg("groups"), nb::arg("settings"));
  nb::class_<OpenSession>(module, "Session", "core/session/session.h")
      .def(nb::init<const std::string&, const std::vector<sluice::python::PythonTensor>&,
                    std::size_t, const std::vector<std::string>&,
                    const std::vector<std::vector<sluice::python::Values>>&, std::int64_t,
                    const std::optional<sluice::python::PythonStep>&, bool, std::int64_t>(),
           nb::arg("folder"), nb::arg("tensors"), nb::arg("groups"), nb::arg("settings"),
           nb::arg("arrays"), nb::arg("updates"), nb::arg("origin"), nb::arg("begins_anew"),
           nb::arg("steps") = 0)
      .def_prop_ro("step", &OpenSession::step)
      .def_prop_ro("planned_memory_bytes", &OpenSession::planned_memory_bytes)
      .def("send", &OpenSession::send, nb::arg("tensor"), nb::arg("values").noconvert())
      .def("replace", &OpenSession::replace, nb::arg("tensor"), nb::arg("values").noconvert())
      .def("read", &OpenSession::read, nb::arg("tensor"), nb::arg("into").noconvert())
      .def("expect_step", &OpenSession::expect_step, nb::arg("rates"), nb::arg("gradient_factor"))
      .def("take_step", &OpenSession::take_step, nb::arg("rates"), nb::arg("loss"),
           nb::arg("gradient_factor"), nb::arg("tokens"))
      .def("note", &OpenSession::note, nb::arg("loss"), nb::arg("tokens"))
      .def("note_validation", &OpenSession::note_validation, nb::arg("loss"), nb::arg("tokens"))
      .def("record", &OpenSession::record, nb::arg("work"), nb::arg("begin_ns"), nb::arg("end_ns"),
           nb::arg("tensor") = -1, nb::arg("name") = "", nb::arg("depth") = 0)
      .def("count", &OpenSession::count, nb::arg("name"), nb::arg("value"))
      .def("parameters",
           [](nb::handle self, std::size_t tensor) {
             return nb::cast<OpenSession&>(self).parameters(self, tensor);
           })
      .def("copy_parameters", &OpenSession::copy_parameters, nb::arg("tensor"),
           nb::arg("into").noconvert())
      .def("make_durable", &OpenSession::make_durable)
      .def("keep", &OpenSession::keep, nb::arg("keeper"))
      .def("release", &OpenSession::release, nb::arg("step"), nb::arg("version"))
      .def("kept", &OpenSession::kept)
      .def("read_state", &OpenSession::read_state, nb::arg("tensor"), nb::arg("array"),
           nb::arg("first"), nb::arg("into").noconvert())
      .def_prop_ro("state_arrays", &OpenSession::state_arrays)
      .def("updates_done", &OpenSession::updates_done)
      .def("digest", &OpenSession::digest)
      .def("save_snapshot", &OpenSession::save_snapshot, nb::arg("folder"))
      .def("set", &OpenSession::set, nb::arg("settings"))
      .def("knobs", &OpenSession::knobs)
      .def("write_state_file", &OpenSession::write_state_file, nb::arg("folder"), nb::arg("stem"),
           nb::arg("optimizer"), nb::arg("entries"))
      .def("close", &OpenSession::close);
}
