#include "cli/train_report.h"

#include <cmath>

#include "base/escaped_text.h"
#include "base/figure_text.h"
#include "base/shell_quoted.h"
#include "cli/paint.h"
#include "cli/program.h"
#include "cli/terminal.h"
#include "core/activation/activation_carrier.h"
#include "core/plan/run_plan.h"
#include "core/runtime/clocks.h"
#include "core/session/open_run.h"
#include "core/session/run_clock.h"
#include "core/session/run_facts.h"
#include "core/session/run_memory.h"
#include "core/settings/clipping.h"
#include "core/train/step_parts.h"
#include "core/train/trainer.h"
#include "core/train/training_run.h"
#include "profiler/analyze/phase.h"
#include "storage/rundb/lateness.h"

namespace sluice::cli {
namespace {

struct PhaseLine {
  const char* name;
  double seconds;
  analyze::Phase phase;
};

std::string phases(const train::TrainReport& report) {
  const PhaseLine lines[] = {
      {"forward", report.forward_seconds, analyze::Phase::forward},
      {"backward, gradients down", report.backward_seconds, analyze::Phase::backward},
      {"update, commit", report.update_seconds, analyze::Phase::update}};
  std::string text =
      fmt::format("A step takes {}{}:\n", format_seconds(report.total_seconds),
                  report.knobs_changed
                      ? " (mean over all; knobs were changed, and `sluice show` has each stretch)"
                      : " (mean over all)");
  for (const PhaseLine& line : lines) {
    const double share = report.total_seconds > 0 ? line.seconds / report.total_seconds : 0;
    text += fmt::format("  {:<26} {} {:>3.0f} %  {}\n", line.name,
                        bar(share, 32, analyze::phase_info(line.phase).colour.dark), share * 100,
                        format_seconds(line.seconds));
  }
  return text;
}

std::string link_bytes(train::TrainingRun& run, const train::TrainReport& report) {
  const auto steps = static_cast<double>(report.losses.size());
  const auto parameters = static_cast<double>(run.plan().layout.parameter_count);
  std::string text = "Bytes a parameter and step:        read    write\n";
  double internal[2] = {0, 0};
  for (std::size_t i = 0; i < report.link_bytes.size(); ++i) {
    const std::string& name = run.plan().platform.links[i].name;
    const auto& bytes = report.link_bytes[i].size_bytes;
    if (name.ends_with(".internal")) {
      for (std::size_t d = 0; d < 2; ++d) internal[d] += static_cast<double>(bytes[d]);
    } else if (!name.ends_with(".drive")) {
      text += fmt::format("  {:<28} {:>9.2f} {:>8.2f}\n", name + " link",
                          static_cast<double>(bytes[0]) / parameters / steps,
                          static_cast<double>(bytes[1]) / parameters / steps);
    }
  }
  if (internal[0] + internal[1] > 0) {
    text += fmt::format("  {:<28} {:>9.2f} {:>8.2f}\n", "internal links, all devices",
                        internal[0] / parameters / steps, internal[1] / parameters / steps);
  }
  return text;
}

std::string emulation(const runtime::EmulatedClock& clock, double time_scale) {
  const runtime::EmulationReport all = clock.report();
  const double late = 100.0 * static_cast<double>(all.late_count) /
                      static_cast<double>(std::max<std::int64_t>(1, all.operation_count));
  std::string text = fmt::format(
      "Emulated clock: {:.1f} % of {} modelled operations ended on the modelled time (1 % or 50 "
      "us).\n",
      100 - late, format_whole(all.operation_count));
  if (late <= 100 * rundb::kLateOperations) return text;
  text += fmt::format(
      "  This machine could not keep up with the rest, so times are partly its own; with --set "
      "time_scale={:g} it would:\n",
      answers::needed_time_scale(clock, time_scale));
  for (const stages::Stage stage : answers::late_stages(clock)) {
    const runtime::EmulationReport& report = clock.report(stage);
    text += fmt::format("    {:<16} {:>9} of {:>9} late, by up to {}\n", stage_name(stage),
                        format_whole(report.late_count), format_whole(report.operation_count),
                        format_duration(report.worst_late_ns));
  }
  return text;
}

// "3.2 ms a step (layer 5 the most: 1.1 ms)".
std::string wait_text(const activation::ActivationCarrier::Counts& counts,
                      stages::ActivationWait why, std::int64_t steps) {
  const auto of_layer = [why](const auto& waits) { return waits[index_of(why)]; };
  const auto most = std::ranges::max_element(counts.layer_wait_ns, {}, of_layer);
  if (most == counts.layer_wait_ns.end() || of_layer(*most) == 0) return "nothing";
  return fmt::format("{} a step (layer {} the most: {})",
                     format_duration(counts.wait_ns(why) / steps),
                     most - counts.layer_wait_ns.begin(), format_duration(of_layer(*most) / steps));
}

std::string activation_text(const activation::ActivationCarrier::Counts& counts,
                            std::int64_t steps) {
  return fmt::format(
      "Activations: {} a step to the drives, {} back{}; at most {} of them {}.\n"
      "  Waited for them to leave: {}; to come back: {}.\n",
      format_bytes(counts.written_bytes / steps), format_bytes(counts.read_bytes / steps),
      counts.host_bytes == 0
          ? ""
          : fmt::format(", {} to host memory", format_bytes(counts.host_bytes / steps)),
      format_bytes(counts.resident_peak_bytes),
      counts.host_bytes == 0 ? "in memory" : "on the accelerator",
      wait_text(counts, stages::ActivationWait::room, steps),
      wait_text(counts, stages::ActivationWait::block, steps));
}

// Whatever was asked for last: a live run may have clipped so before.
bool was_clipped_by_subgroup(train::TrainingRun& run, const train::TrainReport& report) {
  return settings::is_clipped_by_subgroup(run.config()) || report.clipped_count > 0;
}

std::string overlap_text(train::TrainingRun& run, const train::TrainReport& report) {
  const auto steps = static_cast<double>(std::max<std::size_t>(1, report.losses.size()));
  const double all = steps * run.plan().geometry.subgroup_count();
  const auto percent = [all](std::int64_t count) { return 100 * static_cast<double>(count) / all; };
  std::string text;
  if (run.config().offload.overlap != offload::Overlap::off) {
    text = fmt::format(
        "Overlap: {:.1f} % of the update began before all gradients of its step were known, {:.1f} "
        "% was done again ({} of {} steps).\n",
        percent(report.ahead_count), percent(report.refuted_count), report.refuted_step_count,
        report.losses.size());
  }
  if (was_clipped_by_subgroup(run, report)) {
    text += fmt::format(
        "Clipped by subgroup: {:.1f} % of the subgroups ({} of {} steps); other numbers than "
        "overlap=off.\n",
        percent(report.clipped_count), report.clipped_step_count, report.losses.size());
  }
  return text;
}

// A NaN has a sign that means nothing.
std::string loss_text(double loss) {
  return std::isnan(loss) ? "nan" : fmt::format("{:.3f}", loss);
}

std::string skipped_text(const train::TrainReport& report) {
  if (report.skipped_count == 0) return "";
  const bool is_all = report.skipped_count == std::ssize(report.losses);
  return fmt::format("Skipped for overflow: {} of {} steps{}; the loss scale is {}.\n",
                     format_whole(report.skipped_count), format_whole(std::ssize(report.losses)),
                     is_all ? ", so nothing was learnt" : "", report.loss_scale);
}

std::string going_on_text(const answers::GoingOn& going_on) {
  if (going_on.command.empty()) return "";
  return fmt::format("Go on:  {}", command_lines(going_on.command, terminal_columns(), 8));
}

std::string validation_words(const train::TrainReport& report) {
  if (!report.validation) return "";
  const std::optional<double>& accuracy = report.validation->accuracy;
  return fmt::format(" (validation {}{})", loss_text(report.validation->loss),
                     accuracy ? fmt::format(", accuracy {:.1f} %", 100 * *accuracy) : "");
}

}  // namespace

std::string train_report_text(train::TrainingRun& run, const train::TrainReport& report,
                              TimeNs dur_ns, const answers::GoingOn& going_on) {
  std::string text = fmt::format(
      "\n{}: steps {} to {} in {}. Loss {} -> {} nats a {}{}.\n"
      "Committed step {} in {}.\n{}\n",
      report.stopped ? "Stopped" : "Done", report.first_step + 1, report.last_step,
      format_duration(dur_ns), loss_text(report.losses.front()), loss_text(report.losses.back()),
      run.plan().shape.classifies() ? "record" : "token", validation_words(report),
      report.last_step, run.config().files.state_directory, skipped_text(report));
  text += phases(report) + "\n" + link_bytes(run, report) + "\n";
  text += fmt::format(
      "Mode: {}\n",
      session::mode_line(run.config(), session::ModeClock::of_settings, run.hardware()));
  if (run.session().clock().emulated() != nullptr) {
    text += emulation(*run.session().clock().emulated(), run.config().clock.time_scale);
  }
  if (run.step().activations() != nullptr) {
    text += activation_text(run.step().activations()->counts(),
                            static_cast<std::int64_t>(report.losses.size()));
  }
  text += overlap_text(run, report);
  text += fmt::format("Memory: peak {} resident, {} planned.\n",
                      format_bytes(plan::peak_resident_memory_bytes()),
                      format_bytes(run.session().memory().host.total_bytes));
  if (!report.left_out.empty()) {
    text += fmt::format("Left out, since the run was asked to stop: {}.\n",
                        fmt::join(report.left_out, ", "));
  }
  if (report.sample) {
    text += fmt::format("\nThe model writes:\n{}\n",
                        escaped_for_terminal(*report.sample, LineFeeds::keep));
  }
  const std::string& why_no_sample = run.text().why_no_sample();
  if (!report.stopped && run.config().sample.tokens > 0 && !why_no_sample.empty()) {
    text += fmt::format("\nThe model writes no text: {}.\n", escaped_for_terminal(why_no_sample));
  }
  if (!going_on.schedule.empty()) text += fmt::format("\n{}\n", going_on.schedule);
  const std::string show =
      fmt::format("{} show {}", program(), shell_quoted(run.config().files.database));
  text += fmt::format("\nLook:   {}", command_lines(show, terminal_columns(), 8));
  return text + going_on_text(going_on);
}

}  // namespace sluice::cli
