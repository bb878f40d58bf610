#include "profiler/analyze/evidence.h"

#include <algorithm>

#include "base/figure_text.h"

namespace sluice::analyze {
namespace {

bool crosses_known_links(const Span& span, const RunInfo& info) {
  const auto is_known = [&info](std::int64_t id) {
    return std::ranges::find(info.links, id, &rundb::LinkRow::id) != info.links.end();
  };
  return !span.track->links.empty() && std::ranges::all_of(span.track->links, is_known);
}

bool moves_bytes(const Span& span) {
  const bool is_transfer = span.stage != nullptr && span.stage->kind == "transfer";
  return span.bytes > 0 && (is_transfer || !span.track->links.empty());
}

std::string why_no_operations(const RunInfo& info) {
  const std::string level = info.value_in_force("record");
  if (level == "transfers" || level == "all") {
    return fmt::format("record={} was set, but table span has no operations of these steps", level);
  }
  return fmt::format("operations were not recorded{}; record=transfers or record=all records them",
                     level.empty() ? "" : fmt::format(" (record={})", level));
}

// A step's flows come in the stretches that the file is written in, which reach beyond its spans.
std::size_t flows_into(const std::vector<Span>& spans, const std::vector<rundb::FlowRow>& flows) {
  return static_cast<std::size_t>(std::ranges::count_if(flows, [&spans](const auto& flow) {
    return std::ranges::binary_search(spans, flow.to_span, {}, &Span::id);
  }));
}

}  // namespace

void add_evidence(const StepData& step, Evidence& evidence) {
  evidence.flows += flows_into(step.spans, step.flows);
  for (const Span& span : step.spans) {
    if (span.track->is_beside_schedule() || span.track->is_waiting()) continue;
    evidence.operations += 1;
    // A transfer between ranks is on nobody's links here.
    const bool is_between_ranks = span.stage != nullptr && span.stage->place == "ranks";
    if (moves_bytes(span) && !is_between_ranks && !crosses_known_links(span, *step.info)) {
      evidence.unlinked_transfers += 1;
    }
    if (span.stage == nullptr && span.dur > 0) {
      evidence.names_without_stage.insert(*span.name);
    }
    const auto& devices = step.info->devices;
    if (span.device_id >= 0 &&
        std::ranges::find(devices, span.device_id, &rundb::DeviceRow::id) == devices.end()) {
      evidence.unknown_devices.insert(span.device_id);
    }
  }
}

std::string why_unknown(const RunAnalysis& analysis, const RunInfo& info) {
  const Evidence& evidence = analysis.evidence;
  if (analysis.step_count == 0) {
    return evidence.rows.steps_missing == 0
               ? "no step has ended"
               : fmt::format("table step has no rows, and operations are of more than {} steps",
                             evidence.rows.steps_missing);
  }
  if (evidence.rows.operations_missing > 0) {
    return fmt::format("{} of {} operations have no rows",
                       format_whole(evidence.rows.operations_missing),
                       format_whole(evidence.rows.operations_recorded));
  }
  if (evidence.operations == 0) return why_no_operations(info);
  if (evidence.unlinked_transfers > 0) {
    return fmt::format("{} of {} operations moved bytes over links that have no row",
                       evidence.unlinked_transfers, evidence.operations);
  }
  return "";
}

}  // namespace sluice::analyze
