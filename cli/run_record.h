#pragma once
// What a command that records a run adds to its database besides what the rings bring: changes of
// knobs when they take effect, and at the end what each step's time was spent on.
//
// Thread contract: main thread.

#include <cstdint>
#include <string>
#include <vector>

#include "cli/progress.h"
#include "core/settings/run_config.h"
#include "core/train/live_control.h"
#include "profiler/collect/collector.h"

namespace sluice::cli {

// Who a run reports to: the terminal, the run database, and whoever listens to its socket.
class RunObserver final : public train::TrainObserver {
 public:
  struct Parts {
    Progress* progress = nullptr;
    const train::TrainingRun* run = nullptr;
    collect::Collector* collector = nullptr;  // null: nothing is recorded
    train::LiveControl* live = nullptr;       // null: nobody can listen
  };
  explicit RunObserver(const Parts& parts) : parts_(parts) {}

  void on_step(const train::StepReport& report) override;
  void on_validation(std::int64_t step, double loss) override {
    parts_.progress->on_validation(step, loss);
  }
  bool should_stop() override;
  std::vector<train::AskedChange> asked_changes() override;
  bool snapshot_is_asked() override {
    return parts_.live != nullptr && parts_.live->snapshot_is_asked();
  }
  void on_snapshot(const Result<train::KeptSnapshot>& kept) override {
    parts_.live->on_snapshot(kept);
  }
  void on_knobs_changed(std::int64_t step, TimeNs ts, std::span<const settings::KnobChange> changes,
                        const train::AskedChange* asked) override;
  void on_change_refused(std::int64_t step, TimeNs ts, const train::AskedChange& asked,
                         const Error& why) override;

 private:
  void record(std::int64_t step, TimeNs ts, std::span<const settings::KnobChange> changes,
              const std::string& who);

  const Parts parts_;
};

// For table `mode`: in which mode steps run from `step` on.
rundb::ModeRow mode_row(const settings::RunConfig& config, std::int64_t step, TimeNs ts);

// For table `knob`.
std::vector<rundb::KnobRow> knob_rows();

// Knobs whose value in `config` is another than the one with which the run in `database` went on
// last; none where there is no such run. To be asked before the database is written to.
std::vector<rundb::KnobChangeRow> changes_of_resume(const std::string& database,
                                                    const settings::RunConfig& config,
                                                    std::int64_t first_step, TimeNs ts);

// Table `verdict` of the steps from `first_step` on, by what `database` has of them so far. The
// collector goes on; its error is for whoever stops it.
Status record_verdicts(collect::Collector& collector, const std::string& database,
                       std::int64_t first_step);

}  // namespace sluice::cli
