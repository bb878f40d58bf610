#pragma once
// Plans a live run again when its drives have become slower or faster (replan=true): the plan of
// `sluice tune --placement` on a platform whose drives are changed by what was measured, found
// beside the training, and asked of the run as any change of knobs is. So it is recorded with its
// reason, and can be refused.
//
// Only knobs are turned (settings::with_knobs), and no plan changes a training result.
//
// Thread contract: the schedule's thread; a search runs on a thread of its own, on copies.

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <vector>

#include "core/session/run_observer.h"
#include "core/tune/drive_watch.h"

namespace sluice::tune {

struct Replan;
struct ReplanRequest;

class Replanner final : public session::RunObserver, public session::RunRequests {
 public:
  static constexpr int kWindowSteps = 5;

  // The run as it is now; asked between steps.
  using RunNow = std::function<ReplanRequest()>;
  // `now_ns` is the run's clock. Told of operations through sink().
  Replanner(std::int32_t device_count, RunNow run_now, std::function<TimeNs()> now_ns);
  ~Replanner() override;

  runtime::OperationSink& sink() { return watch_; }
  void on_step(const session::StepReport& report) override;
  void on_knobs_changed(std::int64_t step, TimeNs ts, std::span<const settings::KnobChange> changes,
                        const session::AskedChange* asked) override;
  std::vector<session::AskedChange> take_changes() override;
  // For whoever must know that no search is under way.
  void wait() const;

 private:
  void begin_window();
  void begin_search(double factor);

  DriveWatch watch_;
  DriftRule rule_;
  RunNow run_now_;
  std::function<TimeNs()> now_ns_;
  double drive_factor_ = 1;  // of the drives now, on the platform that the run began with
  double last_factor_ = 1;   // that set off the search
  int window_steps_ = 0;
  TimeNs window_ns_ = 0;  // when it began
  std::atomic<bool> stops_ = false;
  // Null: none is under way. The last member, so that it ends before what it uses goes.
  std::unique_ptr<std::future<Result<Replan>>> search_;
};

}  // namespace sluice::tune
