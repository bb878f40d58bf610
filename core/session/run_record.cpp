#include "core/session/run_record.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/control/knob.h"
#include "core/plan/run_plan.h"
#include "core/runtime/clocks.h"
#include "profiler/analyze/step_verdicts.h"
#include "storage/rundb/reader.h"

namespace sluice::session {
namespace {

// As in table `knob_change`: what the run's settings say, now or as planned.
constexpr const char* kBySettings = "settings";
constexpr const char* kByResume = "resume";
// As in table `knob`: where a change takes effect.
constexpr const char* kBetweenSteps = "step";
constexpr const char* kWithResume = "resume";

// The value of each knob of a recorded run at the end, before `first_step`.
Result<std::map<std::string, std::string>> values_at_end(const std::string& database,
                                                         std::int64_t first_step) {
  ASSIGN_OR_RETURN(const std::unique_ptr<rundb::Reader> reader, rundb::Reader::open(database));
  std::map<std::string, std::string> values;
  ASSIGN_OR_RETURN(const std::vector<rundb::MetaRow> meta, reader->meta());
  for (const rundb::MetaRow& row : meta) values[row.key] = row.value;
  ASSIGN_OR_RETURN(const std::vector<rundb::KnobChangeRow> changes, reader->knob_changes());
  for (const rundb::KnobChangeRow& change : changes) {
    if (change.step_id < first_step) values[change.knob] = change.new_value;
  }
  return values;
}

}  // namespace

void RunRecorder::on_knobs_changed(std::int64_t step, TimeNs ts,
                                   std::span<const settings::KnobChange> changes,
                                   const AskedChange* asked) {
  std::vector<rundb::KnobChangeRow> rows;
  for (const settings::KnobChange& change : changes) {
    rows.push_back({ts, step, change.knob, change.from, change.to,
                    asked == nullptr ? kBySettings : asked->who});
  }
  collector_.add(rows);
  collector_.add(mode_row(plan_.config, hardware_, step, ts));
}

LatenessRecorder::LatenessRecorder(const runtime::EmulatedClock& clock,
                                   collect::Collector& collector, std::int64_t first_step)
    : clock_(clock), collector_(collector), first_step_(first_step), recorded_(clock.reports()) {}

void LatenessRecorder::on_knobs_changed(std::int64_t step, TimeNs /*ts*/,
                                        std::span<const settings::KnobChange> /*changes*/,
                                        const AskedChange* /*asked*/) {
  record();
  first_step_ = step;
}

void LatenessRecorder::record() {
  const std::vector<rundb::LatenessRow> rows =
      lateness_rows(clock_.reports(), recorded_, first_step_);
  recorded_ = clock_.reports();
  if (!rows.empty()) collector_.add(rows);
}

std::vector<rundb::LatenessRow> lateness_rows(const runtime::EmulationReports& reports,
                                              const runtime::EmulationReports& before,
                                              std::int64_t first_step) {
  std::vector<rundb::LatenessRow> rows;
  for (const stages::StageInfo& stage : stages::kStages) {
    const runtime::EmulationReport& now = reports[index_of(stage.stage)];
    const runtime::EmulationReport& then = before[index_of(stage.stage)];
    if (now.operation_count == then.operation_count) continue;
    rows.push_back({first_step, std::string(stage.name), now.operation_count - then.operation_count,
                    now.late_count - then.late_count, now.modelled_ns - then.modelled_ns,
                    now.late_ns - then.late_ns});
  }
  return rows;
}

// Steps count from 0 in the database.
void RunRecorder::on_validation(const ValidationReport& report) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  collector_.add(rundb::ValidationRow{.ts = report.ts,
                                      .step_id = report.step - 1,
                                      .loss = report.loss,
                                      .tokens = report.tokens,
                                      .accuracy = report.accuracy.value_or(kNone)});
}

rundb::ModeRow mode_row(const settings::RunConfig& config, const RunHardware& hardware,
                        std::int64_t step, TimeNs ts) {
  return {ts, step, mode_line(config, ModeClock::of_settings, hardware)};
}

std::vector<rundb::KnobRow> knob_rows() {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  std::vector<rundb::KnobRow> rows;
  for (const control::Knob& knob : settings::knobs({})) {
    rows.push_back({knob.key, knob.type, knob.unit, knob.min.value_or(kNone),
                    knob.max.value_or(kNone), knob.default_value, kBetweenSteps});
  }
  return rows;
}

std::vector<rundb::KnobChangeRow> changes_of_resume(const std::string& database,
                                                    const settings::RunConfig& config,
                                                    std::int64_t first_step, TimeNs ts) {
  std::vector<rundb::KnobChangeRow> changes;
  const auto before = values_at_end(database, first_step);
  if (!before.ok()) return changes;  // whoever opens it for writing says what is wrong with it
  for (const control::Knob& knob : settings::knobs(config)) {
    const auto was = before->find(knob.key);
    if (was == before->end() || was->second == knob.value) continue;
    changes.push_back({ts, first_step, knob.key, was->second, knob.value, kBySettings});
  }
  return changes;
}

void add_recipe_changes(const std::vector<settings::KnobChange>& recipe, std::int64_t first_step,
                        TimeNs ts, std::vector<rundb::KnobChangeRow>& changes) {
  const std::vector<control::Knob> knobs = settings::knobs({});
  for (const settings::KnobChange& change : recipe) {
    if (std::ranges::count(knobs, change.knob, &control::Knob::key) > 0) continue;
    changes.push_back({ts, first_step, change.knob, change.from, change.to, kByResume});
  }
}

void add_resume_knobs(const std::vector<rundb::KnobChangeRow>& changes,
                      std::vector<rundb::KnobRow>& knobs) {
  for (const rundb::KnobChangeRow& change : changes) {
    if (change.who != kByResume) continue;
    rundb::KnobRow& row = knobs.emplace_back();
    row.name = change.knob;
    row.type = "text";
    row.safe_point = kWithResume;
  }
}

Status record_verdicts(collect::Collector& collector, const std::string& database,
                       std::int64_t first_step) {
  RETURN_IF_ERROR(collector.flush());
  // Closed again before the collector is: a reader would keep the log of a finished run.
  ASSIGN_OR_RETURN(const std::unique_ptr<rundb::Reader> reader, rundb::Reader::open(database));
  ASSIGN_OR_RETURN(const analyze::RunInfo info, analyze::load_run_info(*reader));
  ASSIGN_OR_RETURN(const std::vector<rundb::VerdictRow> rows,
                   analyze::compute_verdicts(*reader, info, first_step));
  collector.add(rows);
  return ok_status();
}

}  // namespace sluice::session
