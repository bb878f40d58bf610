#pragma once
// Training with the optimizer state on storage, for a program that computes its gradients itself.
// This header is the front door for C++: what a session needs is here, in the standard library and
// in base/.
//
//   auto session = Session::open({.folder = "out/mine",
//                                 .tensors = {{"weight", {1024, 512}}, {"bias", {512}}},
//                                 .initial = values, .settings = {"platform=" + file}});
//   while ((*session)->step() < 100) {
//     compute with (*session)->parameters(t), once (*session)->wait(t) has returned;
//     with precision=fp32 among the settings, parameters_fp32(t)
//     (*session)->send(t, gradient_of_t)      each tensor once, in any order, from any thread
//     (*session)->take_step({.lr = 1e-3})
//   }
//   (*session)->close();
//
// The folder has the state, the run database and the control socket, as that of `sluice train` has:
// `sluice show`, `sluice set` and the window work on it. A folder with a state is gone on with,
// from its last commit, to the bit. A schedule of its own thread moves the bytes; it computes the
// update with the settings of docs/settings.md (method, density, devices, ...), and knobs change
// between two steps.
//
// With overlap=exact a subgroup of the state is updated as soon as the gradients of its tensors
// have been sent, beside the program's backward: the numbers are the same, to the bit. What
// parameters() points to may change then, once the tensor's gradient has been sent, so a program
// that computes with it in backward is through with a tensor before it sends its gradient. wait()
// and copy_parameters() are refused from then until the step is taken, and where the parameters lie
// on the drives, from the first gradient of a step on.
//
// Thread contract: send() from any thread, wait(), the parameters, record() and count() too; all
// else from one thread at a time. No call is made from a callback of the session.

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"

namespace sluice::session {

// How the tensors of a group are updated, where that is not as all the others are.
struct GroupRates {
  std::optional<double> lr = {};  // none: that of the step
  // None: that of the settings. Each rule takes what its formula names.
  std::optional<double> weight_decay = {};
  std::optional<double> beta1 = {};
  std::optional<double> beta2 = {};
  std::optional<double> momentum = {};
  std::optional<double> eps = {};
};

struct Tensor {
  std::string name;  // another one for each
  std::vector<std::int64_t> shape;
  std::size_t group = 0;  // of Session::Request::groups
  // It has no gradient and no state, and its parameters are its first values, as `precision` says.
  bool is_frozen = false;
  // Another tensor's name, of the same shape: this one has its parameters, and their gradient is
  // sent once, as that of either.
  std::string tied_to = {};
};

// A setting that may change between two steps.
struct Knob {
  std::string key;
  std::string value;   // in force
  std::string values;  // that it may have: "1 to 64", "host, csd"
};

struct StepRequest {
  std::optional<double> lr = {};  // none: that of the settings' schedule
  // In this step, one for each group; empty: those that the session was opened with.
  std::vector<GroupRates> groups = {};
  // Every gradient is multiplied by it as it is read for the update, in fp32: a factor of clipping,
  // or one by a loss scale. StepDone::grad_norm, and with it
  // max_grad_norm, are of the gradients without it.
  double gradient_factor = 1;
  // For the record, and for whoever watches; none: the session does not know it.
  double loss = std::numeric_limits<double>::quiet_NaN();
  std::int64_t tokens = 0;
  // The loss comes with note(): until then, or until the next step begins, nobody is told of the
  // step.
  bool awaits_note = false;
};

// The figures that are known behind a step; none: as they are.
struct StepNote {
  std::optional<double> loss = {};
  std::optional<std::int64_t> tokens = {};
  // For the record: with the step's parameters on held-out data, and how many tokens it has.
  std::optional<double> validation_loss = {};
  std::int64_t validation_tokens = 0;
};

// The kinds of work that a program does between its calls.
enum class Work : std::uint8_t {
  other,       // none of these: its data, its log, its clipping
  forward,     // of the model, or a part of it
  backward,    // the same; with a tensor, up to that one's gradient
  parameters,  // the last step's, copied to where forward reads them
  validation,  // forward of held-out text
  module,      // one module's part of a forward, by its name
};

// In nanoseconds of CLOCK_MONOTONIC (std::chrono::steady_clock).
struct WorkSpan {
  Work work = Work::other;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::optional<std::size_t> tensor = {};
  std::string_view name = {};  // of a module
  int depth = 0;               // modules around a module
};

struct StepDone {
  std::int64_t step = 0;  // 1 = the first
  double grad_norm = 0;   // before clipping (max_grad_norm)
  double lr = 0;
  bool is_stopping = false;  // somebody asked the run to stop (`sluice stop`)
  // overlap=exact: subgroups of the state that were updated before the step was decided, and those
  // of them that were updated once more, since it was not as expected.
  std::int32_t ahead_count = 0;
  std::int32_t refuted_count = 0;
};

// A committed step. Two runs that went on from one step in different ways have two versions of a
// later one.
struct StepId {
  std::int64_t step = 0;
  std::string version;
};

struct KeptStep {
  StepId id;
  std::string keeper;  // a path, or what its owner calls itself; may be empty
};

class Session;
// In the program's own memory: fp32 or, as bits, of 16 bits, as the settings say.
using ParameterRoom = std::variant<std::span<float>, std::span<std::uint16_t>>;
// The parameters of a tensor with the last step's update. With parameter_tier=storage there is no
// other way to them: they come from the drives, and those that follow meanwhile, so the order of
// Session::Request::groups, and that of the tensors in each, is the fast one. Any thread, one at a
// time. Errors (ErrorCode::config): another number of elements or precision; with overlap=exact
// where the tensor's gradient has been sent for the step to come, or with parameter_tier=storage
// any.
Status copy_parameters(Session& session, std::size_t tensor, const ParameterRoom& into);
// overlap=exact: what take_step() will be asked for, before the first gradient of the step is sent;
// rates and factor count. Where it is not said, they are expected to be those of the step before. A
// step that is asked for something else has the same numbers, and is updated twice in part. Errors
// (ErrorCode::config): a gradient has been sent, or rates of another number of groups.
Status expect_step(Session& session, const StepRequest& request);

class Session {
 public:
  struct Request {
    std::string folder;
    std::vector<Tensor> tensors;
    // Groups of tensors, and their rates where a step does not say others; empty: one group, by the
    // settings. Each takes whole subgroups of the state (setting `subgroup_elements`).
    std::vector<GroupRates> groups = {};
    // Fills `out` with the first values of a tensor, from element `first` on. Called by several
    // threads; the same values whenever it is asked.
    std::function<void(std::size_t tensor, std::int64_t first, std::span<float> out)> initial = {};
    // The same for another array of a new state (SessionState::arrays()), counted from 1; empty:
    // zeros.
    std::function<void(std::size_t tensor, std::size_t array, std::int64_t first,
                       std::span<float> out)>
        initial_array = {};
    // Updates that these arrays have seen: the first step of a new state is the one behind them.
    std::int64_t initial_updates = 0;
    // Steps that a new state has behind it already, in another one.
    std::int64_t initial_step = 0;
    // "key=value" (docs/settings.md), with `platform` among them.
    std::vector<std::string> settings = {};
    // The state goes back to this step, which is kept, or the last one; what was committed after it
    // and is not kept is lost. Without a version: the commit before the last one, for ranks that
    // were a step ahead when all were killed. None: it goes on from its last commit.
    std::optional<StepId> from = {};
    // A state that the folder has is removed, with the steps that it keeps.
    bool begins_anew = false;
  };
  // Goes on with the state in the folder, or makes one. Errors: those of settings, memory plan and
  // state, as `sluice train` has them.
  static Result<std::unique_ptr<Session>> open(const Request& request);
  ~Session();  // close(), without its error

  // Steps that are done.
  std::int64_t step() const;
  // Host memory that the session was planned to take when it was opened.
  std::int64_t planned_memory_bytes() const { return planned_memory_bytes_; }
  // The parameters of a tensor: of 16 bits, as bits (precision=bf16 or fp16), or of fp32
  // (precision=fp32); a call for the others, or where they lie on the drives, is a mistake of the
  // program, which ends it. They change between take_step() and the end of wait(), and with
  // overlap=exact from the tensor's send() on.
  std::span<const std::uint16_t> parameters(std::size_t tensor) const;
  std::span<const float> parameters_fp32(std::size_t tensor) const;
  // Until the last step's update of a tensor is among its parameters. Errors: ErrorCode::config
  // where they lie on the drives (copy_parameters() has them), or with overlap=exact where its
  // gradient has been sent for the step to come.
  Status wait(std::size_t tensor);
  // The gradient of a tensor for the step to come, which may be used again when the call returns.
  // A tensor that comes twice before a step, has another number of elements, or is frozen is an
  // error (ErrorCode::config) of this call alone.
  Status send(std::size_t tensor, std::span<const float> gradient);

  // The gradient of a tensor that was sent for the step to come, as it waits; and another one in
  // its place, such as its sum with that of a further micro-batch. With overlap=exact a step that
  // has one replaced is updated by its decision alone; what was updated before is updated again,
  // and the steps behind it wait for their decisions, until 50 were as expected. Errors
  // (ErrorCode::config): none was sent, or density is below 1, so that not all of it is there.
  Status read(std::size_t tensor, std::span<float> gradient);
  Status replace(std::size_t tensor, std::span<const float> gradient);

  // Once each tensor that is trained has been sent: decides and begins the update, which goes on
  // beside the caller (pipeline=nbuffer). Errors: ErrorCode::config while tensors are missing, or
  // for rates of another number of groups, which changes nothing; ErrorCode::diverged for gradients
  // that are not finite, and those of the drives, after which the session is over and the last
  // commit stands.
  Result<StepDone> take_step(const StepRequest& request = {});

  // Between two steps: returns once the last one is durable, whatever `commit_every` says. Errors,
  // of the three calls below as well: ErrorCode::config where a gradient of the step to come has
  // been sent; those of the drives.
  Result<StepId> commit();
  // The last step, committed, is kept until it is released: Request::from finds it, however many
  // steps have followed. It takes room on the drives, as much as one version of the state, and no
  // copy. Again: it has another keeper. Errors: ErrorCode::no_space, and nothing is kept.
  Result<StepId> keep(const std::string& keeper);
  // Errors: ErrorCode::not_found for a step that is not kept.
  Status release(const StepId& id);
  Result<std::vector<KeptStep>> kept();

  // Between two steps: changes knobs ("key=value") from the next one on, as `sluice set` does, all
  // of them or none. ErrorCode::config: a setting that is no knob, or a value that cannot be, with
  // what can.
  Status set(const std::vector<std::string>& settings);
  // At any time.
  Result<std::vector<Knob>> knobs();

  // What the program knows of the last step only behind it (StepRequest::awaits_note). Errors
  // (ErrorCode::config): nobody waits for its loss or tokens, since the loss was given, or the next
  // step has begun.
  Status note(const StepNote& note);

  // For the record: what the program did, in the step under way; and a figure of its own, from now
  // on, such as the epoch. Neither waits, and with record=off they do nothing.
  void record(const WorkSpan& span);
  void count(std::string_view name, double value);

  // Commits, and ends the recording. Nothing else may be called after it.
  Status close();

 private:
  class Schedule;
  friend class SessionState;  // core/session/session_state.h
  friend Status copy_parameters(Session& session, std::size_t tensor, const ParameterRoom& into);
  friend Status expect_step(Session& session, const StepRequest& request);
  explicit Session(std::unique_ptr<Schedule> schedule);
  bool is_on_drives(std::size_t tensor) const;

  std::unique_ptr<Schedule> schedule_;
  std::int64_t planned_memory_bytes_;
  bool streams_parameters_;
  Mutex copying_;  // one tensor's at a time
};

}  // namespace sluice::session
