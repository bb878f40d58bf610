#include "core/session/live_control.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/log.h"
#include "base/mutex.h"
#include "core/control/superseded.h"
#include "core/plan/knob_change.h"
#include "core/session/run_state.h"

namespace sluice::session {
namespace {

constexpr const char* kRevert = "revert: ";  // who takes a change back, and why

}  // namespace

class LiveControl::Shared {
 public:
  explicit Shared(const Tunable& run) : plan_(run.live_plan()) {}

  void update(const Tunable& run) {
    plan::LivePlan plan = run.live_plan();
    MutexLock lock(mutex_);
    plan_ = std::move(plan);
  }

  std::vector<control::Knob> knobs() {
    MutexLock lock(mutex_);
    return settings::knobs(plan_.run.config);
  }

  Status check(const std::vector<std::string>& waiting, const std::vector<std::string>& settings) {
    const plan::LivePlan live = current();
    settings::RunConfig config = live.run.config;
    // Sets that wait and contradict one another are refused when their turn comes.
    if (const auto later = settings::with_knobs(config, waiting, "waiting"); later.ok()) {
      config = *later;
    }
    ASSIGN_OR_RETURN(config, settings::with_knobs(config, settings, "set"));
    const Result<plan::PlannedKnobs> planned = plan::plan_knobs(live, config);
    return planned.ok() ? ok_status() : Status(planned.error());
  }

 private:
  plan::LivePlan current() {
    MutexLock lock(mutex_);
    return plan_;
  }

  Mutex mutex_;
  plan::LivePlan plan_ GUARDED_BY(mutex_);
};

LiveControl::LiveControl(Tunable& run, std::string socket_path)
    : run_(run), socket_path_(std::move(socket_path)), shared_(std::make_shared<Shared>(run)) {}

LiveControl::~LiveControl() { close("the run has ended"); }

Result<std::unique_ptr<LiveControl>> LiveControl::start(Tunable& run,
                                                        std::function<void(bool)> watched,
                                                        record::Recorder* recorder) {
  const settings::RunFiles files = run.live_plan().run.config.files;
  const std::string& database = files.database;
  RETURN_IF_ERROR(make_folder_of(database));
  std::unique_ptr<LiveControl> live(new LiveControl(run, control::socket_path_of(database)));
  control::Greeting greeting;
  greeting.run = files.name;
  greeting.database = std::filesystem::absolute(database).lexically_normal().string();
  greeting.pid = getpid();
  control::RunSeam seam;
  seam.knobs = [shared = live->shared_] { return shared->knobs(); };
  seam.check = [shared = live->shared_](const auto& waiting, const auto& settings) {
    return shared->check(waiting, settings);
  };
  seam.watched = std::move(watched);
  if (recorder != nullptr) {
    seam.asked = [recorder](const control::Request& request) {
      recorder->note(
          fmt::format("{} asked for by {}", control::kind_name(request.kind), request.who));
    };
  }
  ASSIGN_OR_RETURN(live->server_,
                   control::ControlServer::start(live->socket_path_, greeting, std::move(seam)));
  return live;
}

std::unique_ptr<LiveControl> LiveControl::start_or_warn(Tunable& run,
                                                        std::function<void(bool)> watched,
                                                        record::Recorder* recorder) {
  auto live = start(run, std::move(watched), recorder);
  if (live.ok()) return *std::move(live);
  log_warning("nobody can watch or change this run while it is live: " + live.error().message());
  return nullptr;
}

void LiveControl::close(const std::string& reason) {
  if (server_ == nullptr) return;
  tell_of_what_will_not_be();
  server_->close(reason);
}

// The requests taken from the socket that wait for a step that does not come; the server does the
// same for those still there.
void LiveControl::tell_of_what_will_not_be() {
  for (const AskedChange& asked : asked_) {
    if (asked.id == reverting_) {
      tell(control::ChangeState::kept, committed_step_, 0, asked,
           "the run ended before it was reverted");
    } else {
      tell(control::ChangeState::refused, committed_step_, 0, asked, control::kEndedBeforeNextStep);
    }
  }
  asked_.clear();
  for (const std::int64_t snapshot : snapshots_) {
    control::SnapshotEvent event;
    event.snapshot = snapshot;
    event.message = control::kEndedBeforeSnapshot;
    server_->tell(event);
  }
  snapshots_.clear();
}

void LiveControl::on_step(const StepReport& report) {
  const auto seconds = [](TimeNs dur_ns) { return static_cast<double>(dur_ns) / 1e9; };
  control::RunStatus status;
  status.step = committed_step_ = report.step;
  status.steps = report.steps;
  status.loss = report.loss;
  status.step_seconds = seconds(report.total_ns);
  status.forward_seconds = seconds(report.forward_ns);
  status.backward_seconds = seconds(report.backward_ns);
  status.update_seconds = seconds(report.update_ns);
  status.tokens = report.tokens;
  server_->tell(status);
  watch_.on_step(status);
  if (const auto result = watch_.take_result()) tell_watch_result(*result);
}

void LiveControl::tell_watch_result(const control::WatchResult& result) {
  if (result.harmed) {
    reverting_ = result.change;
    asked_.push_back({result.change, result.undo, kRevert + result.message});
    return;
  }
  tell(control::ChangeState::kept, committed_step_, run_.now_ns(), {result.change, {}, ""},
       result.message);
}

void LiveControl::tell(control::ChangeState state, std::int64_t step, TimeNs ts,
                       const AskedChange& asked, const std::string& message) {
  server_->tell(
      control::ChangeEvent{asked.id, state, step, ts, asked.settings, asked.who, message});
}

// Not before a safe point: what waits there is known to the check of what comes next.
void LiveControl::take_due() {
  control::Due due = server_->take_due();
  snapshots_.insert(snapshots_.end(), due.snapshots.begin(), due.snapshots.end());
  for (control::QueuedSet& queued : due.sets) {
    if (!queued.set.revert_if.empty()) {
      // The server has refused a rule that is none.
      const auto rule = control::parse_revert_rule(queued.set.revert_if);
      const std::int64_t steps =
          queued.set.watch_steps > 0 ? queued.set.watch_steps : control::kWatchStepsDefault;
      if (rule.ok()) watched_.push_back({queued.change, *rule, steps});
    }
    asked_.push_back({queued.change, std::move(queued.set.settings), std::move(queued.set.who)});
  }
}

std::vector<AskedChange> LiveControl::take_changes() {
  take_due();
  std::vector<AskedChange> asked;
  std::swap(asked, asked_);
  return asked;
}

bool LiveControl::wants_snapshot() {
  take_due();
  return !snapshots_.empty();
}

void LiveControl::on_snapshot(const Result<KeptSnapshot>& kept) {
  control::SnapshotEvent event;
  event.is_kept = kept.ok();
  if (kept.ok()) {
    event.step = kept->saved.step;
    event.path = std::filesystem::absolute(kept->path).lexically_normal().string();
    event.size_bytes = kept->saved.size_bytes;
  } else {
    event.message = kept.error().message();
  }
  for (const std::int64_t snapshot : snapshots_) {
    event.snapshot = snapshot;
    server_->tell(event);
  }
  snapshots_.clear();
}

void LiveControl::on_knobs_changed(std::int64_t step, TimeNs ts,
                                   std::span<const settings::KnobChange> changes,
                                   const AskedChange* asked) {
  shared_->update(run_);
  if (const auto interrupted = watch_.on_change()) {
    tell(control::ChangeState::kept, step, ts, {*interrupted, {}, ""},
         "another change came before its effect was known");
  }
  if (asked == nullptr) {
    AskedChange planned{0, {}, "settings"};
    for (const settings::KnobChange& change : changes) {
      planned.settings.push_back(change.knob + "=" + change.to);
    }
    tell(control::ChangeState::in_force, step, ts, planned, "");
    return;
  }
  if (asked->id == reverting_) {
    reverting_ = 0;
    tell(control::ChangeState::reverted, step, ts, *asked,
         asked->who.substr(std::string_view(kRevert).size()));
    return;
  }
  tell(control::ChangeState::in_force, step, ts, *asked, "");
  const auto watched = std::ranges::find(watched_, asked->id, &Watched::change);
  if (watched == watched_.end()) return;
  std::vector<std::string> undo;
  for (const settings::KnobChange& change : changes) {
    undo.push_back(change.knob + "=" + change.from);
  }
  watch_.begin(asked->id, watched->rule, watched->steps, std::move(undo));
  watched_.erase(watched);
}

void LiveControl::on_change_refused(std::int64_t step, TimeNs ts, const AskedChange& asked,
                                    const Error& why) {
  std::erase_if(watched_, [&](const Watched& watched) { return watched.change == asked.id; });
  if (asked.id == reverting_) {
    reverting_ = 0;
    tell(control::ChangeState::kept, step, ts, asked, "not taken back: " + why.message());
    return;
  }
  tell(control::ChangeState::refused, step, ts, asked, why.message());
}

void LiveControl::on_change_superseded(const AskedChange& asked, const AskedChange& later) {
  std::erase_if(watched_, [&](const Watched& watched) { return watched.change == asked.id; });
  const bool is_revert = asked.id == reverting_;
  if (is_revert) reverting_ = 0;
  tell(is_revert ? control::ChangeState::kept : control::ChangeState::superseded, committed_step_,
       0, asked, control::superseded_by(later.who));
}

}  // namespace sluice::session
