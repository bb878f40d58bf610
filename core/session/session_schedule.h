#pragma once
// The thread that a session's schedule stays in: it takes the program's notes, moves its gradients
// down, updates, and lets others change the run between two steps.
//
// Thread contract: all that is public from the program's threads; everything private is the
// schedule's thread's. Opening is in session_opening.cpp, and what is
// told of steps in session_figures.cpp.

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/runtime/task.h"
#include "core/session/recipe.h"
#include "core/session/run_observer.h"
#include "core/session/session.h"
#include "core/session/start_from.h"
#include "core/session/tensor_table.h"
#include "core/session/tunable.h"

namespace sluice::model {
struct LayerGradient;
}
namespace sluice::runtime {
struct Operation;
}

namespace sluice::session {

struct GradientSummary;
class KnobChanges;
class LiveControl;
struct Note;
class NoteBox;
class OpenRun;
struct OpenRunRequest;
class RunRecording;
struct SessionStep;
struct StepAhead;
struct StepPlan;
class Ticket;

class Session::Schedule final : private Tunable {
 public:
  static Result<std::unique_ptr<Schedule>> open(const Request& request);
  ~Schedule() override;

  // Sends the note and waits for what comes of it.
  Status ask(Note note);
  // Has the schedule's thread do it with the run: between two steps, behind a commit, or at once.
  // `what` it is, for the error among gradients.
  using Work = std::function<Status(OpenRun& run)>;
  Status between(const char* what, const Work& work);
  Status at_once(const Work& work);
  // core/session/kept_steps.cpp
  Result<StepId> commit_step();
  Result<StepId> keep(const std::string& keeper);
  Status release(const StepId& id);
  Result<std::vector<KeptStep>> kept();
  Status close();
  std::int64_t step() const { return step_.load(); }
  std::int64_t planned_memory_bytes() const;  // before the first gradient
  ParameterSpan parameters(std::size_t tensor) const;
  bool streams_parameters() const;  // before the first gradient
  const TensorTable& tensors() const { return tensors_; }
  const Request& request() const { return request_; }
  Status note(const StepNote& figures);
  Status expect(const StepRequest& request);
  void record(const WorkSpan& span);
  void count(std::string_view name, double value);

 private:
  explicit Schedule(const Request& request);

  void run(Ticket& opened);
  Status open_all();
  Result<OpenRunRequest> plan_all(StartFrom& start);
  Status open_state(StartFrom start);
  Status open_record(StartFrom start);

  Status take_steps();
  Result<std::optional<Note>> first_gradient();
  runtime::Task<Status> take_until_gradient(std::optional<Note>& first);
  Status do_between(const Note& note);
  Status change_knobs(const std::vector<std::string>& settings, Status& outcome);
  Status between_steps();
  runtime::Task<Status> collect(Note first, std::optional<Note>& asked);
  void take_note(const Note& note, std::optional<Note>& asked);
  Status check_gradient(const Note& note) const;
  Status check_size(const Note& note, std::int64_t size) const;
  bool is_sent(std::size_t tensor) const;  // of a tensor that is trained
  Status check_sent(const Note& note) const;
  runtime::Task<Status> at_sent(const Note& note);
  runtime::Operation copy_gradient(const Note& note, const model::LayerGradient& into);
  Status check_may_read(const Note& note) const;
  Status check_rates(const StepRequest& request) const;
  Status check_step(const Note& note) const;
  void begin_step();
  runtime::Task<Status> take_gradient(Note note);
  runtime::Task<Status> wait_for(Note note);
  runtime::Task<Status> bring(LayerId layer);
  Status note_copied(const Note& note);
  runtime::Task<Status> end_waits();
  StepPlan step_plan(const StepRequest& request) const;
  runtime::Task<Status> finish_step(const StepPlan& plan, GradientSummary& gradients);
  void note_ahead(const StepPlan& plan, const GradientSummary& gradients, StepDone& done);
  Status take_step(const Note& note);
  StepReport report_of(const StepPlan& plan, const GradientSummary& gradients,
                       TimeNs sent_ns) const;
  Status take_figures(const StepNote& figures);
  void tell_step();
  void tell_validation(const StepNote& figures);

  Status end(Status served);
  plan::LivePlan live_plan() const override;
  TimeNs now_ns() override;
  Status commit() override;
  Status make_room(const plan::PlannedKnobs& planned) override;
  Status apply(const plan::PlannedKnobs& planned) override;
  Status keep_recipe(const settings::RunConfig& in_force) override;
  Status agreed(const Status& mine) override { return mine; }

  // The program's threads read these.
  const Request request_;
  TensorTable tensors_;  // made before the session is open
  std::atomic<std::int64_t> step_{0};
  std::thread thread_;
  Status ended_;  // after the thread

  // The schedule's thread alone uses these, but for the notes.
  Recipe recipe_;
  std::unique_ptr<RunRecording> recording_;  // its program() is the program's threads', too
  std::unique_ptr<OpenRun> run_;
  std::unique_ptr<LiveControl> live_;
  RunHooks hooks_;
  std::unique_ptr<KnobChanges> knobs_;
  std::unique_ptr<NoteBox> notes_;
  std::unique_ptr<SessionStep> under_way_;
  state::TrainingPosition position_;
  std::unique_ptr<StepAhead> ahead_;
};

}  // namespace sluice::session
