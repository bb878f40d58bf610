#include "core/replay/what_if_answer.h"

#include <algorithm>
#include <cmath>

#include "storage/rundb/completeness.h"

namespace sluice::replay {
namespace {

double step_seconds(const OperationGraph& graph, TimeNs dur_ns) {
  return static_cast<double>(dur_ns) / 1e9 / static_cast<double>(graph.step_count);
}

Busy busiest(const Replayed& replayed) {
  return replayed.busy.empty() ? Busy{} : replayed.busy.front();
}

std::string why_unexplained(const ReplayAnswer& answer) {
  const double idle = 1 - answer.busy_share;
  if (idle > kUnexplainedMax) {
    return fmt::format(
        "In {:.0f} % of the time no recorded operation was under way, so most of what another "
        "machine would do to it is not in this record (at most {:.0f} % may be unexplained).",
        100 * idle, 100 * kUnexplainedMax);
  }
  if (std::abs(answer.error()) > kErrorMax) {
    return fmt::format(
        "The graph of this record does not give its time again: {:.0f} % of a step is not "
        "explained by its operations and links (at most {:.0f} % may be).",
        100 * std::abs(answer.error()), 100 * kErrorMax);
  }
  return "";
}

std::vector<ModelledLink> used_links(const OperationGraph& graph) {
  std::vector<bool> used(graph.links.links.size(), false);
  for (const Route& route : graph.links.routes) {
    for (const std::int32_t link : route.links) used[static_cast<std::size_t>(link)] = true;
  }
  std::vector<ModelledLink> links;
  for (std::size_t l = 0; l < used.size(); ++l) {
    if (used[l]) links.push_back(graph.links.links[l]);
  }
  return links;
}

ChangeAnswer answer_of(const std::string& change, const OperationGraph& graph, double before) {
  const Replayed replayed = replay(graph);
  ChangeAnswer answer{.change = change,
                      .step_seconds = step_seconds(graph, replayed.dur_ns),
                      .limit = busiest(replayed)};
  answer.factor = answer.step_seconds > 0 ? before / answer.step_seconds : 1;
  return answer;
}

Status add_changes(const OperationGraph& graph, std::span<const Change> changes,
                   ReplayAnswer& answer) {
  OperationGraph together = graph;
  for (const Change& change : changes) {
    OperationGraph changed = graph;
    RETURN_IF_ERROR(apply(change, changed));
    RETURN_IF_ERROR(apply(change, together));
    if (!answer.why_not.empty()) continue;
    answer.changes.push_back(answer_of(change.text, changed, answer.replayed_seconds));
  }
  if (std::ranges::any_of(changes,
                          [](const Change& change) { return change.kind == ChangeKind::on_csd; })) {
    answer.notes.push_back(
        "On CSDs an update takes as long as recorded, and the updated parameters that come back "
        "up are not in this record: at best so fast.");
  }
  if (changes.size() > 1 && answer.why_not.empty())
    answer.changes.push_back(answer_of("all together", together, answer.replayed_seconds));
  return ok_status();
}

}  // namespace

Result<ReplayAnswer> replay_record(rundb::Reader& reader, std::span<const Change> changes) {
  ASSIGN_OR_RETURN(const std::unique_ptr<RecordedWindow> window, load_window(reader));
  const OperationGraph graph = build_graph(*window);
  const Replayed as_it_was = replay(graph);
  ReplayAnswer answer;
  answer.step_count = graph.step_count;
  answer.has_steps = !window->steps.empty();
  answer.operation_count = graph.nodes.size();
  answer.recorded_seconds = step_seconds(graph, graph.dur_ns);
  answer.replayed_seconds = step_seconds(graph, as_it_was.dur_ns);
  answer.busy_share = graph.busy_share;
  answer.limit = busiest(as_it_was);
  answer.links = used_links(graph);
  answer.stand_ins = window->info.mode.stand_ins;
  answer.clock_note = window->info.clock_note();
  answer.why_not = why_unexplained(answer);
  ASSIGN_OR_RETURN(const rundb::Completeness rows, rundb::completeness_of(reader));
  if (rows.operations_missing > 0) {
    answer.why_not =
        fmt::format("The record is not whole: {} have no rows any more.", rows.missing_words());
  }
  ASSIGN_OR_RETURN(const std::vector<rundb::StatRow> losses, reader.losses());
  if (!losses.empty()) {
    answer.notes.push_back(
        "Records were lost (sluice show says which): what these operations did is in no figure.");
  }
  RETURN_IF_ERROR(add_changes(graph, changes, answer));
  return answer;
}

}  // namespace sluice::replay
