#include "gui/data/span_scan.h"

#include <algorithm>
#include <functional>

#include "gui/data/cells.h"
#include "storage/rundb/query.h"

namespace sluice::gui {
namespace {

constexpr const char* kColumns =
    "id, track_id, name_id, ts, dur, step_id, device_id, layer_id, bytes + padding_bytes, "
    "subgroup_id";

}  // namespace

Result<bool> SpanScan::advance(rundb::Reader& reader, const RunFacts& facts,
                               std::int64_t count_max) {
  has_ranks_ = facts.info.has_all_ranks();
  if (!(range_ == ScanRange())) return advance_in_range(reader, facts, count_max);
  const std::int64_t before = seen_count_;
  RETURN_IF_ERROR(rundb::Query(reader).each_row_with(
      fmt::format("SELECT {} FROM span WHERE id > ?1 ORDER BY id LIMIT ?2", kColumns),
      {last_id_, count_max}, [this, &facts](std::span<const rundb::Cell> row) {
        add(facts, row);
        return ok_status();
      }));
  return seen_count_ > before;
}

// Batches have an index by time, so a short range of a long run is found without reading the rest.
Result<bool> SpanScan::advance_in_range(rundb::Reader& reader, const RunFacts& facts,
                                        std::int64_t count_max) {
  std::int64_t first = 0;
  std::int64_t last = 0;
  RETURN_IF_ERROR(rundb::Query(reader).each_row_with(
      "SELECT min(first_id), max(last_id) FROM span_batch WHERE ts < ?1 AND end_ts >= ?2",
      {range_.end, range_.begin}, [&](std::span<const rundb::Cell> row) {
        first = integer_of(row[0]);
        last = integer_of(row[1]);
        return ok_status();
      }));
  last_id_ = std::max(last_id_, first - 1);
  if (last_id_ >= last) return false;
  const std::int64_t until = std::min(last, last_id_ + count_max);
  RETURN_IF_ERROR(rundb::Query(reader).each_row_with(
      fmt::format("SELECT {} FROM span WHERE id > ?1 AND id <= ?2 AND ts >= ?3 AND ts < ?4 "
                  "ORDER BY id",
                  kColumns),
      {last_id_, until, range_.begin, range_.end},
      [this, &facts](std::span<const rundb::Cell> row) {
        add(facts, row);
        return ok_status();
      }));
  last_id_ = until;
  return true;
}

void SpanScan::add(const RunFacts& facts, std::span<const rundb::Cell> row) {
  last_id_ = integer_of(row[0]);
  seen_count_ += 1;
  int rank = 0;
  if (has_ranks_) {
    const auto own = facts.info.tracks.find(integer_of(row[1]));
    if (own != facts.info.tracks.end()) rank = own->second.rank;
    // Another rank's steps are no operations; rank 0's have no spans either.
    if (own != facts.info.tracks.end() && own->second.kind == analyze::kRankSteps) return;
  }
  const std::int64_t bytes = integer_of(row[8]);
  const TrackFacts* track = bytes > 0 ? facts.track(integer_of(row[1])) : nullptr;
  add_sums(row, rank, moved_of(track, row));
  const std::int64_t step = integer_of(row[5], -1);
  if (step < 0) return;
  add_step(facts, integer_of(row[2]), step, integer_of(row[3]) + integer_of(row[4]));
  if (track != nullptr && track->crosses_shared_link && rank == 0)
    ends_[step].shared_link_bytes += bytes;
}

// Spans of a track come in order of time, as a batch has them.
SpanScan::Moved SpanScan::moved_of(const TrackFacts* track, std::span<const rundb::Cell> row) {
  if (track == nullptr) return {};
  const TimeNs begin = integer_of(row[3]);
  const TimeNs end = begin + integer_of(row[4]);
  TimeNs& before = track_ends_.try_emplace(integer_of(row[1]), begin).first->second;
  const TimeNs active_ns = std::max<TimeNs>(0, end - std::max(begin, before));
  before = std::max(before, end);
  return {track->limit_bytes_per_s, active_ns};
}

std::optional<double> StatisticRow::share_of_limit() const {
  if (limit_bytes_per_s <= 0 || active_ns <= 0 || is_part_of_several) return std::nullopt;
  return static_cast<double>(bytes) * 1e9 / static_cast<double>(active_ns) / limit_bytes_per_s;
}

void SpanScan::add_sums(std::span<const rundb::Cell> row, int rank, const Moved& moved) {
  const std::int64_t name_id = integer_of(row[2]);
  const TimeNs dur_ns = integer_of(row[4]);
  const auto device = static_cast<std::int32_t>(integer_of(row[6], -1));
  const auto layer = static_cast<std::int32_t>(integer_of(row[7], -1));
  const std::int64_t bytes = integer_of(row[8]);
  const auto subgroup = static_cast<std::int32_t>(integer_of(row[9], -1));
  add_sum(GroupBy::name, name_id, -1, dur_ns, bytes, moved);
  add_sum(GroupBy::device, name_id, device, dur_ns, bytes, moved);
  add_sum(GroupBy::layer, name_id, layer, dur_ns, bytes, moved);
  add_sum(GroupBy::subgroup, name_id, shown_subgroup(name_id, subgroup), dur_ns, bytes, moved);
  if (has_ranks_) add_sum(GroupBy::rank, name_id, rank, dur_ns, bytes, moved);
}

void SpanScan::add_sum(GroupBy by, std::int64_t name_id, std::int32_t of, TimeNs dur_ns,
                       std::int64_t bytes, const Moved& moved) {
  Sum& sum = sums_[static_cast<std::size_t>(by)][{name_id, of}];
  sum.count += 1;
  sum.sum_ns += dur_ns;
  sum.max_ns = std::max(sum.max_ns, dur_ns);
  sum.bytes += bytes;
  sum.limit_bytes_per_s = std::max(sum.limit_bytes_per_s, moved.limit_bytes_per_s);
  sum.active_ns += moved.active_ns;
  sum.durations.add(dur_ns);
}

std::int32_t SpanScan::shown_subgroup(std::int64_t name_id, std::int32_t subgroup) const {
  const auto& sums = sums_[static_cast<std::size_t>(GroupBy::subgroup)];
  const bool is_shown = sums.size() < kSubgroupRowsMax || sums.contains({name_id, subgroup});
  return is_shown ? subgroup : kFurtherOnes;
}

// As view step_phase does it (storage/rundb/sql/views.sql).
void SpanScan::add_step(const RunFacts& facts, std::int64_t name_id, std::int64_t step,
                        TimeNs end_ts) {
  const auto stage = facts.info.stages.find(name_id);
  if (stage == facts.info.stages.end() || stage->second.phase.empty()) return;
  const std::string& phase = stage->second.phase;
  StepEnds& ends = ends_[step];
  TimeNs& end = phase == "forward"    ? ends.forward
                : phase == "backward" ? ends.backward
                                      : ends.parameters;
  end = std::max(end, end_ts);
}

// As the view does it: an update that reaches into the next step counts there, where that waits.
std::vector<PhaseRow> SpanScan::phases(const std::vector<rundb::StepRow>& steps) const {
  std::vector<PhaseRow> rows;
  TimeNs parameters_before = kNever;
  for (const rundb::StepRow& step : steps) {
    const auto found = ends_.find(step.id);
    if (found == ends_.end()) continue;
    const StepEnds& ends = found->second;
    TimeNs up = std::max(step.ts, parameters_before);
    if (ends.parameters != kNever && ends.parameters <= ends.forward)
      up = std::max(up, ends.parameters);
    parameters_before = ends.parameters;
    if (ends.forward == kNever || ends.backward == kNever) continue;
    rows.push_back({.step = step.id,
                    .dur_ns = {std::max<TimeNs>(0, ends.forward - up),
                               std::max<TimeNs>(0, ends.backward - ends.forward),
                               std::max<TimeNs>(0, up + step.dur - ends.backward)},
                    .shared_link_bytes = ends.shared_link_bytes});
  }
  return rows;
}

bool SpanScan::is_part_of_several(GroupBy by, std::int64_t name_id) const {
  if (by != GroupBy::layer && by != GroupBy::subgroup) return false;
  const Sum& all = sums_[static_cast<std::size_t>(GroupBy::name)].at({name_id, -1});
  return all.active_ns < all.sum_ns;
}

std::shared_ptr<const SpanStatistics> SpanScan::statistics(const std::vector<rundb::StepRow>& steps,
                                                           std::int64_t span_count) const {
  auto made = std::make_shared<SpanStatistics>();
  made->range = range_;
  made->seen_count = seen_count_;
  made->span_count = std::max(span_count, seen_count_);
  for (std::size_t by = 0; by < kGroupings; ++by) {
    for (const auto& [key, sum] : sums_[by]) {
      made->rows[by].push_back(
          {.name_id = key.first,
           .of = key.second,
           .count = sum.count,
           .sum_ns = sum.sum_ns,
           .max_ns = sum.max_ns,
           .median_ns = sum.durations.quantile(0.5),
           .p99_ns = sum.durations.quantile(0.99),
           .bytes = sum.bytes,
           .limit_bytes_per_s = sum.limit_bytes_per_s,
           .active_ns = sum.active_ns,
           .is_part_of_several = is_part_of_several(static_cast<GroupBy>(by), key.first),
           .durations = std::make_shared<const DurationHistogram>(sum.durations)});
    }
    std::ranges::stable_sort(made->rows[by], std::greater<>(), &StatisticRow::sum_ns);
  }
  made->phases = phases(steps);
  return made;
}

}  // namespace sluice::gui
