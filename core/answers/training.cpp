#include "core/answers/training.h"

#include <algorithm>

#include "core/activation/activation_carrier.h"
#include "core/plan/run_plan.h"
#include "core/runtime/clocks.h"
#include "core/session/open_run.h"
#include "core/session/run_clock.h"
#include "core/session/run_facts.h"
#include "core/session/run_memory.h"
#include "core/session/run_record.h"
#include "core/train/step_parts.h"
#include "core/train/trainer.h"
#include "core/train/training_run.h"
#include "storage/rundb/lateness.h"

namespace sluice::answers {

std::vector<stages::Stage> late_stages(const runtime::EmulatedClock& clock) {
  std::vector<stages::Stage> stages;
  for (const stages::StageInfo& stage : stages::kStages) {
    if (clock.report(stage.stage).late_count > 0) stages.push_back(stage.stage);
  }
  std::ranges::sort(stages, std::greater<>(),
                    [&](stages::Stage stage) { return clock.report(stage).late_count; });
  return stages;
}

double needed_time_scale(const runtime::EmulatedClock& clock, double time_scale) {
  return rundb::needed_time_scale(session::lateness_rows(clock.reports(), {}, 0), time_scale);
}

Json training_json(train::TrainingRun& run, const train::TrainReport& report,
                   const std::string& state_digest, const GoingOn& going_on) {
  const auto steps = static_cast<std::int64_t>(report.losses.size());
  Json json;
  json["steps"] = report.last_step;
  json["first_step"] = report.first_step;
  json["stopped"] = report.stopped;
  json["losses"] = report.losses;
  json["skipped_steps"] = report.skipped_count;
  json["seconds"] = {{"forward", report.forward_seconds},
                     {"backward", report.backward_seconds},
                     {"update", report.update_seconds},
                     {"total", report.total_seconds}};
  if (run.step().activations() != nullptr) {
    const activation::ActivationCarrier::Counts& counts = run.step().activations()->counts();
    json["activations"] = {{"written_bytes", counts.written_bytes},
                           {"read_bytes", counts.read_bytes},
                           {"host_bytes", counts.host_bytes},
                           {"forwarded", counts.forwarded},
                           {"cancelled", counts.cancelled},
                           {"resident_peak_bytes", counts.resident_peak_bytes},
                           {"wait_out_ns", counts.wait_ns(stages::ActivationWait::room)},
                           {"wait_back_ns", counts.wait_ns(stages::ActivationWait::block)}};
    for (const auto& waits : counts.layer_wait_ns) {
      json["activations"]["layer_wait_out_ns"].push_back(
          waits[index_of(stages::ActivationWait::room)]);
      json["activations"]["layer_wait_back_ns"].push_back(
          waits[index_of(stages::ActivationWait::block)]);
    }
  }
  if (run.config().offload.overlap != offload::Overlap::off || report.clipped_count > 0) {
    json["overlap"] = {{"subgroups", run.plan().geometry.subgroup_count()},
                       {"ahead", report.ahead_count},
                       {"refuted", report.refuted_count},
                       {"refuted_steps", report.refuted_step_count},
                       {"clipped", report.clipped_count},
                       {"clipped_steps", report.clipped_step_count}};
  }
  for (std::size_t i = 0; i < report.link_bytes.size() && steps > 0; ++i) {
    const runtime::LinkBytes& bytes = report.link_bytes[i];
    json["bytes"][run.plan().platform.links[i].name] = {
        {"read", bytes.size_bytes[0] / steps},
        {"write", bytes.size_bytes[1] / steps},
        {"read_padding", bytes.padding_bytes[0] / steps},
        {"write_padding", bytes.padding_bytes[1] / steps}};
  }
  json["parameters"] = run.plan().layout.parameter_count;
  json["validation_loss"] = report.validation ? Json(report.validation->loss) : nullptr;
  if (report.validation && report.validation->accuracy)
    json["validation_accuracy"] = *report.validation->accuracy;
  if (report.sample) json["sample"] = *report.sample;
  if (!report.left_out.empty()) json["left_out"] = report.left_out;
  json["host_memory_peak_bytes"] = plan::peak_resident_memory_bytes();
  json["host_memory_plan_bytes"] = run.session().memory().host.total_bytes;
  json["state_digest"] = state_digest;
  json["db"] = run.config().files.database;
  json["resume"] = going_on.command.empty() ? nullptr : Json(going_on.command);
  if (!going_on.schedule.empty()) json["schedule"] = going_on.schedule;
  json["clock"] = run.config().clock.kind == settings::ClockKind::emulated ? "emulated" : "real";
  json["method"] = run.config().offload.method == offload::Method::csd ? "csd" : "host";
  json["mode"] = session::mode_line(run.config(), session::ModeClock::of_settings, run.hardware());
  if (run.session().clock().emulated() != nullptr) {
    const runtime::EmulatedClock& clock = *run.session().clock().emulated();
    const runtime::EmulationReport all = clock.report();
    json["emulation"] = {
        {"operations", all.operation_count},
        {"late", all.late_count},
        {"worst_late_ns", all.worst_late_ns},
        {"needed_time_scale", needed_time_scale(clock, run.config().clock.time_scale)},
        {"late_stages", Json::object()}};
    for (const stages::Stage stage : late_stages(clock)) {
      const runtime::EmulationReport& stage_report = clock.report(stage);
      json["emulation"]["late_stages"][std::string(stages::stage_name(stage))] = {
          {"operations", stage_report.operation_count},
          {"late", stage_report.late_count},
          {"worst_late_ns", stage_report.worst_late_ns}};
    }
  }
  return json;
}

}  // namespace sluice::answers
