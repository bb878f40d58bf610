#include "gui/data/step_paths.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/clock.h"

namespace sluice::gui {
namespace {

// Steps that were looked at before are kept, so that panning back reads nothing.
constexpr std::size_t kKnownMax = 4 * kPathStepsMax;

std::span<const rundb::StepRow> steps_within(const std::vector<rundb::StepRow>& steps,
                                             const TimelineRequest& request) {
  const auto end_of = [](const rundb::StepRow& step) { return step.ts + step.dur; };
  const auto first = std::ranges::upper_bound(steps, request.begin, {}, end_of);
  const auto last =
      std::ranges::lower_bound(first, steps.end(), request.end, {}, &rundb::StepRow::ts);
  return {first, last};
}

Result<std::shared_ptr<const StepPath>> path_of(rundb::Reader& reader, const RunFacts& facts,
                                                const rundb::StepRow& row) {
  ASSIGN_OR_RETURN(const analyze::StepData step, analyze::load_step(reader, facts.info, row));
  auto path = std::make_shared<StepPath>();
  path->step = row.id;
  path->ts = row.ts;
  path->end_ts = row.ts + row.dur;
  if (!step.spans.empty()) path->pieces = analyze::verdict_of(step).path;
  return path;
}

void add_spans(const StepPath& path, std::vector<SpanOnPath>& spans) {
  for (const analyze::PathPiece& piece : path.pieces) {
    if (piece.span_id > 0) spans.push_back({piece.span_id, path.step, piece.cause, piece.dur});
  }
}

}  // namespace

std::vector<SpanOnPath> StepPaths::of_span(std::int64_t span_id) const {
  const auto found = std::ranges::equal_range(spans, span_id, {}, &SpanOnPath::span_id);
  return {found.begin(), found.end()};
}

bool StepPaths::is_on_path(std::int64_t span_id) const {
  return std::ranges::binary_search(spans, span_id, {}, &SpanOnPath::span_id);
}

bool StepPaths::is_on_path(std::int64_t span_id, analyze::Cause cause) const {
  const auto found = std::ranges::equal_range(spans, span_id, {}, &SpanOnPath::span_id);
  return std::ranges::find(found, cause, &SpanOnPath::cause) != found.end();
}

Result<std::shared_ptr<const StepPaths>> StepPathReader::advance(
    rundb::Reader& reader, const RunFacts& facts, const std::vector<rundb::StepRow>& steps,
    const TimelineRequest& request, TimeNs budget_ns) {
  const bool is_same = request == request_ && steps.size() == step_count_;
  if ((is_same && is_complete_) || request.end <= request.begin || steps.empty()) return {nullptr};
  if (steps.back().id != last_step_) known_.erase(std::exchange(last_step_, steps.back().id));
  if (known_.size() > kKnownMax) known_.clear();
  request_ = request;
  step_count_ = steps.size();
  const std::span<const rundb::StepRow> wanted = steps_within(steps, request);
  auto paths = std::make_shared<StepPaths>();
  paths->is_too_wide = wanted.size() > kPathStepsMax;
  paths->is_complete = true;
  const TimeNs until_ns = monotonic_now_ns() + budget_ns;
  for (const rundb::StepRow& row : wanted) {
    if (paths->is_too_wide) break;
    std::shared_ptr<const StepPath>& path = known_[row.id];
    if (path == nullptr || path->ts != row.ts) {
      if (!paths->is_complete) continue;
      ASSIGN_OR_RETURN(path, path_of(reader, facts, row));
      paths->is_complete = monotonic_now_ns() < until_ns;
    }
    paths->steps.push_back(path);
    add_spans(*path, paths->spans);
  }
  paths->is_complete = paths->is_complete || paths->steps.size() == wanted.size();
  is_complete_ = paths->is_complete;
  std::ranges::sort(paths->spans, {},
                    [](const SpanOnPath& span) { return std::pair(span.span_id, span.step); });
  return {std::move(paths)};
}

}  // namespace sluice::gui
