// Findings about what the path waits for, by its causes.

#include "profiler/analyze/detail/detector.h"

namespace sluice::analyze::detail {
namespace {

// Kernels of the host that run side by side fill more than one processor.
constexpr double kSideBySide = 1.1;

std::string most_named(const CausePath& cause) {
  const auto most =
      std::ranges::max_element(cause.by_name, {}, [](const auto& e) { return e.second; });
  return most == cause.by_name.end() ? "" : most->first;
}

}  // namespace

Detected straggler(const Look& look) {
  if (!look.analysis.ranks) return nothing("the record has one rank");
  const RankAnalysis& ranks = *look.analysis.ranks;
  if (!ranks.why_unknown.empty()) return cannot(ranks.why_unknown);
  if (!ranks.straggler) return nothing(fmt::format("{} ranks", ranks.ranks.size()));
  const RankUse& late = ranks.of(*ranks.straggler);
  const double cost = late.step_ns > 0
                          ? static_cast<double>(late.awaited_ns) / static_cast<double>(late.step_ns)
                          : 0;
  return found(look.of(Cause::ranks).path, cost,
               fmt::format("The others wait {} a step for rank {}, {} of it.",
                           format_duration(late.awaited_ns), late.rank, percent(cost)),
               fmt::format("Look for what slows rank {} down, or give it less.", late.rank));
}

Detected flushes(const Look& look) {
  const double cost = look.share_of(Cause::commit);
  return found(
      look.of(Cause::commit).path, cost,
      fmt::format("{} of a step waits for {}.", percent(cost), most_named(look.of(Cause::commit))),
      "Flush less often, or beside other work.");
}

Detected starved_forward(const Look& look) {
  const bool has_forward = std::ranges::any_of(
      look.info.stages, [](const auto& entry) { return entry.second.phase == "forward"; });
  if (!has_forward) return cannot("no operation is said to be forward");
  const double cost = look.survey.share(look.survey.before_forward.ns());
  return found(look.survey.before_forward, cost,
               fmt::format("Forward waits for the program's own reads and data work: {} of a step.",
                           percent(cost)),
               "Load the next batch beside the step before.");
}

Detected activations_back(const Look& look) {
  const double cost = look.share_of(Cause::activations_back);
  return found(
      look.of(Cause::activations_back).path, cost,
      fmt::format("Backward waits {} of a step for activations to come back.", percent(cost)),
      "Offload fewer layers, ask for them earlier, or add a drive.");
}

Detected host_kernel(const Look& look) {
  const PathSurvey& survey = look.survey;
  const auto busy = static_cast<double>(survey.host_kernel_busy_ns);
  if (static_cast<double>(survey.host_kernel_ns) > kSideBySide * busy)
    return nothing("the host's kernels run side by side");
  const double cost = look.share_of(Cause::processor);
  return found(look.of(Cause::processor).path, cost,
               fmt::format("{} of a step is kernels of the host one at a time, {} above all.",
                           percent(cost), most_named(look.of(Cause::processor))),
               "Divide them over processors, or run them beside other work.", kLargePart);
}

Detected costly_compression(const Look& look) {
  const PathSurvey& survey = look.survey;
  const TimeNs cost_ns = look.of(Cause::compression).path.ns();
  if (cost_ns == 0) return nothing("no compression on the path");
  if (survey.compress_in_bytes == 0 || survey.compress_out_bytes == 0)
    return cannot("the record does not say how many bytes compression took away");
  const double left = static_cast<double>(survey.compress_out_bytes) /
                      static_cast<double>(survey.compress_in_bytes);
  const double saved_ns =
      std::max(0.0, static_cast<double>(survey.compress_out_ns) * (1 / left - 1));
  if (saved_ns >= static_cast<double>(cost_ns)) {
    return nothing(fmt::format("{} of the steps, and the bytes that it takes away would take {}",
                               percent(survey.share(cost_ns)),
                               percent(survey.share(static_cast<TimeNs>(saved_ns)))));
  }
  const double cost = survey.share(cost_ns - static_cast<TimeNs>(saved_ns));
  return found(look.of(Cause::compression).path, cost,
               fmt::format("Compression takes {} of a step and saves {} of transfers.",
                           percent(survey.share(cost_ns)),
                           percent(survey.share(static_cast<TimeNs>(saved_ns)))),
               "Send the bytes as they are, or select on something faster.");
}

Detected costly_recording(const Look& look) {
  const double cost = look.share_of(Cause::recorder);
  return found(look.of(Cause::recorder).path, cost,
               fmt::format("The recording itself takes {} of a step.", percent(cost)),
               "Record less (record=steps).");
}

Detected unrecorded_time(const Look& look) {
  const double cost = look.share_of(Cause::other);
  return found(look.of(Cause::other).path, cost,
               fmt::format("For {} of a step nothing that was recorded ran.", percent(cost)),
               "Record what runs there, or find what the program waits for.", kLargePart);
}

}  // namespace sluice::analyze::detail
