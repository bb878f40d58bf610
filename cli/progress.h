#pragma once
// How a run looks on a terminal: a bar that redraws itself, or a line now and then where output is
// not a terminal.
//
// Thread contract: main thread.

#include <string>

#include "core/session/run_observer.h"

namespace sluice::cli {

enum class ProgressStyle : std::uint8_t { bar, lines, none };

class Progress final : public session::RunObserver, public session::RunRequests {
 public:
  explicit Progress(ProgressStyle style) : style_(style) {}

  void on_step(const session::StepReport& report) override;
  void on_work(const char* what, std::int64_t done, std::int64_t count) override;
  void on_validation(const session::ValidationReport& report) override;
  // Those that somebody else asked for.
  void on_knobs_changed(std::int64_t step, TimeNs ts, std::span<const settings::KnobChange> changes,
                        const session::AskedChange* asked) override;
  bool wants_stop() override;  // Ctrl-C
  void finish();               // leaves the bar's line

 private:
  void draw(const session::StepReport& report);
  // Not more often than somebody reads it.
  bool is_due();
  void tell_lost_loss(const session::StepReport& report);

  ProgressStyle style_;
  TimeNs last_draw_ns_ = 0;
  double step_seconds_ = 0;  // moving average
  std::int64_t seen_count_ = 0;
  bool bar_is_drawn_ = false;
  bool work_is_drawn_ = false;  // in the bar's place
  bool loss_is_finite_ = true;  // of the last step
};

}  // namespace sluice::cli
