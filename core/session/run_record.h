#pragma once
// The rows of a run's database that no ring brings: changes of knobs when they take effect, losses
// of validations, and at the end the verdict of each step.
//
// Thread contract: main thread.

#include <cstdint>
#include <string>
#include <vector>

#include "core/runtime/emulation_report.h"
#include "core/session/run_facts.h"
#include "core/session/run_observer.h"
#include "core/settings/run_config.h"
#include "profiler/collect/collector.h"

namespace sluice::runtime {
class EmulatedClock;
}

namespace sluice::session {

// Writes losses of validations and changes of knobs into the run's database, each of these with the
// mode that the run has from then on.
class RunRecorder final : public RunObserver {
 public:
  // `plan` is the run's, as it is in force.
  RunRecorder(const plan::RunPlan& plan, RunHardware hardware, collect::Collector& collector)
      : plan_(plan), hardware_(std::move(hardware)), collector_(collector) {}
  void on_knobs_changed(std::int64_t step, TimeNs ts, std::span<const settings::KnobChange> changes,
                        const AskedChange* asked) override;
  void on_validation(const ValidationReport& report) override;

 private:
  const plan::RunPlan& plan_;
  RunHardware hardware_;
  collect::Collector& collector_;
};

// Adds to table `lateness` of the run's database how the emulated clock kept to the model since
// this was made, with each step; from each change of knobs on apart.
class LatenessRecorder final : public RunObserver {
 public:
  // `first_step`: the next one, counted from 0. The clock and the collector outlive this.
  LatenessRecorder(const runtime::EmulatedClock& clock, collect::Collector& collector,
                   std::int64_t first_step);
  void on_step(const StepReport& /*report*/) override { record(); }
  void on_knobs_changed(std::int64_t step, TimeNs ts, std::span<const settings::KnobChange> changes,
                        const AskedChange* asked) override;
  // The operations that have ended since: at the end, those behind the last step.
  void record();

 private:
  const runtime::EmulatedClock& clock_;
  collect::Collector& collector_;
  std::int64_t first_step_;
  runtime::EmulationReports recorded_;
};

// The clock's counts, a row a stage that had any operation; `before` is left out.
std::vector<rundb::LatenessRow> lateness_rows(const runtime::EmulationReports& reports,
                                              const runtime::EmulationReports& before,
                                              std::int64_t first_step);

// For table `mode`: in which mode the run's steps go from `step` on.
rundb::ModeRow mode_row(const settings::RunConfig& config, const RunHardware& hardware,
                        std::int64_t step, TimeNs ts);

// For table `knob`.
std::vector<rundb::KnobRow> knob_rows();

// Knobs whose value in `config` is another than the one with which the run in `database` went on
// last; none where there is no such run. To be asked before the database is written to.
std::vector<rundb::KnobChangeRow> changes_of_resume(const std::string& database,
                                                    const settings::RunConfig& config,
                                                    std::int64_t first_step, TimeNs ts);

// And what a resume learns with that is no knob (RunState::recipe_changes), with who
// "resume".
void add_recipe_changes(const std::vector<settings::KnobChange>& recipe, std::int64_t first_step,
                        TimeNs ts, std::vector<rundb::KnobChangeRow>& changes);
// For table `knob`: what those rows name.
void add_resume_knobs(const std::vector<rundb::KnobChangeRow>& changes,
                      std::vector<rundb::KnobRow>& knobs);

// Table `verdict` of the steps from `first_step` on, by what `database` has of them so far. The
// collector goes on; its error is for whoever stops it.
Status record_verdicts(collect::Collector& collector, const std::string& database,
                       std::int64_t first_step);

}  // namespace sluice::session
