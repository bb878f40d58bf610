#pragma once
// A run that listens: what is asked over its control socket (core/control) becomes changes between
// two steps, what becomes of them is told to whoever listens, and a change that a rule watches is
// taken back when it did harm.
//
// Thread contract: the schedule's thread; the socket has its own.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/control/control_server.h"
#include "core/control/effect_watch.h"
#include "core/session/run_observer.h"
#include "core/session/tunable.h"
#include "profiler/record/recorder.h"

namespace sluice::session {

class LiveControl final : public RunObserver, public RunRequests {
 public:
  // Listens beside the run's database. The run outlives it. `watched` is told, on the socket's
  // thread, each time that somebody begins to follow the run while nobody did, and each time that
  // the last one has gone. `recorder`, if there is one, is told who asks for a snapshot or a stop,
  // and outlives this; changes of knobs have rows of their own.
  static Result<std::unique_ptr<LiveControl>> start(Tunable& run,
                                                    std::function<void(bool)> watched = {},
                                                    record::Recorder* recorder = nullptr);
  // The same; null, and a warning, where it cannot be had: a run goes on without.
  static std::unique_ptr<LiveControl> start_or_warn(Tunable& run, std::function<void(bool)> watched,
                                                    record::Recorder* recorder);
  ~LiveControl() override;

  const std::string& socket_path() const { return socket_path_; }

  void on_step(const StepReport& report) override;
  void on_snapshot(const Result<KeptSnapshot>& kept) override;
  void on_knobs_changed(std::int64_t step, TimeNs ts, std::span<const settings::KnobChange> changes,
                        const AskedChange* asked) override;
  void on_change_refused(std::int64_t step, TimeNs ts, const AskedChange& asked,
                         const Error& why) override;
  void on_change_superseded(const AskedChange& asked, const AskedChange& later) override;
  std::vector<AskedChange> take_changes() override;
  bool wants_snapshot() override;
  bool wants_stop() override { return server_->stop_is_asked(); }
  // The last thing that is told.
  void close(const std::string& reason);

 private:
  // The data that the socket's thread answers from.
  class Shared;
  struct Watched {
    std::int64_t change;
    control::RevertRule rule;
    std::int64_t steps;
  };

  LiveControl(Tunable& run, std::string socket_path);
  void take_due();
  void tell_of_what_will_not_be();
  void tell_watch_result(const control::WatchResult& result);
  void tell(control::ChangeState state, std::int64_t step, TimeNs ts, const AskedChange& asked,
            const std::string& message);

  Tunable& run_;
  const std::string socket_path_;
  std::shared_ptr<Shared> shared_;
  std::unique_ptr<control::ControlServer> server_;
  control::EffectWatch watch_;
  std::vector<Watched> watched_;         // of changes that are not in force yet
  std::vector<AskedChange> asked_;       // for the next safe point
  std::vector<std::int64_t> snapshots_;  // asked for and not kept yet
  std::int64_t reverting_ = 0;           // the change that is being taken back; 0: none
  std::int64_t committed_step_ = 0;
};

}  // namespace sluice::session
