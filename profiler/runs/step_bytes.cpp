#include "profiler/runs/step_bytes.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "profiler/analyze/link_use.h"
#include "storage/rundb/query.h"
#include "storage/rundb/span_reader.h"

namespace sluice::runs {
namespace {

struct Ways {
  bool is_of_drive = false;
  bool is_shared = false;
};

// By track, of the first rank. A route over several shared links, one behind the other, carries its
// bytes once.
std::unordered_map<std::int64_t, Ways> ways_of(const analyze::RunInfo& info) {
  const std::set<std::int64_t> between_ranks = analyze::links_between_ranks(info);
  std::unordered_map<std::int64_t, Ways> ways;
  for (const auto& [id, track] : info.tracks) {
    if (track.rank != 0) continue;
    for (const std::int64_t link_id : track.links) {
      const auto link = std::ranges::find(info.links, link_id, &rundb::LinkRow::id);
      if (link == info.links.end() || between_ranks.contains(link_id)) continue;
      Ways& way = ways[id];
      way.is_shared = way.is_shared || analyze::is_shared_link(link->name);
      way.is_of_drive =
          way.is_of_drive || link->name.ends_with(".drive") || link->name.ends_with(".internal");
    }
  }
  return ways;
}

struct Window {
  TimeNs begin = 0;
  TimeNs end = 0;
  std::int64_t operations = 0;  // at most
};

// All that `steps` set off: it may begin in the step before, and end when the record does.
Result<Window> window_of(rundb::Reader& reader, std::span<const rundb::StepRow> steady,
                         std::span<const rundb::StepRow> steps) {
  Window window;
  const bool is_first = steps.data() == steady.data();
  window.begin = is_first ? steps.front().ts - steps.front().dur : (steps.data() - 1)->ts;
  RETURN_IF_ERROR(rundb::Query(reader).each_row_with(
      "SELECT ifnull(sum(last_id - first_id + 1), 0), ifnull(max(end_ts), 0) FROM span_run "
      "WHERE end_ts >= ?1",
      {window.begin}, [&window](std::span<const rundb::Cell> row) {
        if (const auto* count = std::get_if<std::int64_t>(&row[0])) window.operations = *count;
        if (const auto* end = std::get_if<std::int64_t>(&row[1])) window.end = *end;
        return ok_status();
      }));
  return window;
}

Result<StepBytes> bytes_in(rundb::Reader& reader, const analyze::RunInfo& info,
                           std::span<const rundb::StepRow> steps, const Window& window) {
  const auto ways = ways_of(info);
  std::set<std::int64_t> ids;
  for (const rundb::StepRow& step : steps) ids.insert(step.id);
  StepBytes sum{.steps = std::ssize(steps)};
  RETURN_IF_ERROR(rundb::SpanReader(reader).each_span_between(
      window.begin, window.end, [&](const rundb::SpanRow& span) {
        if (!ids.contains(span.step_id)) return;
        const auto way = ways.find(span.track_id);
        if (way == ways.end()) return;
        const bool is_read = info.tracks.at(span.track_id).direction == rundb::Direction::read;
        const auto moved =
            static_cast<double>(span.bytes) + static_cast<double>(span.padding_bytes);
        if (way->second.is_of_drive) (is_read ? sum.drive_read : sum.drive_write) += moved;
        if (way->second.is_shared) (is_read ? sum.link_read : sum.link_write) += moved;
      }));
  for (double* figure : {&sum.drive_read, &sum.drive_write, &sum.link_read, &sum.link_write})
    *figure /= static_cast<double>(sum.steps);
  return sum;
}

}  // namespace

Result<SampledBytes> sampled_bytes(rundb::Reader& reader, const analyze::RunInfo& info,
                                   std::span<const rundb::StepRow> steady,
                                   std::int64_t operations_max) {
  SampledBytes sampled;
  if (steady.empty()) return sampled;
  const std::size_t countable = std::max<std::size_t>(1, steady.size() - 1);
  for (std::int64_t count = kSampledSteps; count > 0; count /= 2) {
    const std::size_t taken = std::min(countable, static_cast<std::size_t>(count));
    const auto steps = steady.subspan(countable - taken, taken);
    ASSIGN_OR_RETURN(const Window window, window_of(reader, steady, steps));
    if (window.operations == 0) return sampled;
    sampled.operations_refused = window.operations;
    if (window.operations > operations_max) continue;
    ASSIGN_OR_RETURN(sampled.bytes, bytes_in(reader, info, steps, window));
    sampled.operations_refused = 0;
    return sampled;
  }
  return sampled;
}

}  // namespace sluice::runs
