#pragma once
// Reads the spans of a run once, in the order in which they were written, and continues where it
// was when further ones come: statistics by name, device, layer and subgroup, and how steps divide
// into forward, backward and update (view step_phase reads all spans for that).
//
// Thread contract: one thread at a time; what it publishes is immutable.

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "gui/data/duration_histogram.h"
#include "gui/data/run_facts.h"
#include "storage/rundb/reader.h"

namespace sluice::gui {

enum class GroupBy : std::uint8_t { name, device, layer, subgroup, rank, count_ };
inline constexpr std::size_t kGroupings = static_cast<std::size_t>(GroupBy::count_);

// A large run has more subgroups than anyone looks at: beyond this number of rows by name and
// subgroup, further subgroups share one row a name.
inline constexpr std::size_t kSubgroupRowsMax = 4096;
inline constexpr std::int32_t kFurtherOnes = -2;

struct StatisticRow {
  std::int64_t name_id = 0;
  std::int32_t of = -1;  // device, layer, subgroup or rank; -1: all, or none; kFurtherOnes
  std::int64_t count = 0;
  TimeNs sum_ns = 0;
  TimeNs max_ns = 0;
  TimeNs median_ns = 0;
  TimeNs p99_ns = 0;
  std::int64_t bytes = 0;  // with padding
  double limit_bytes_per_s = 0;
  // The time in which any that moved bytes was under way, summed over tracks: less than `sum_ns`
  // where several were at once.
  TimeNs active_ns = 0;
  bool is_part_of_several = false;  // by layer or subgroup, of a name that had several at once
  // The share of its limit that a link had while they were active; none: it is not known, since
  // others of the name shared that time, or no limit is stated.
  std::optional<double> share_of_limit() const;
  std::shared_ptr<const DurationHistogram> durations;
};

struct PhaseRow {
  std::int64_t step = 0;
  std::array<TimeNs, 3> dur_ns{};  // forward, backward, update
  // Over links that devices share, with padding; in a record of all ranks those of rank 0.
  std::int64_t shared_link_bytes = 0;
};

// Which spans are looked at: those that begin in it.
struct ScanRange {
  TimeNs begin = std::numeric_limits<TimeNs>::min();
  TimeNs end = std::numeric_limits<TimeNs>::max();
  bool operator==(const ScanRange&) const = default;
};

struct SpanStatistics {
  // The longest sum first. By rank: none, unless the record has all ranks.
  std::array<std::vector<StatisticRow>, kGroupings> rows;
  std::vector<PhaseRow> phases;  // by step; those that have all three
  std::int64_t seen_count = 0;
  std::int64_t span_count = 0;  // in the database, so far; `seen_count` below it: still reading
  ScanRange range;              // of another than the whole run both counts are of its spans alone
};

class SpanScan {
 public:
  explicit SpanScan(ScanRange range = {}) : range_(range) {}
  const ScanRange& range() const { return range_; }

  // Looks at no more than `count_max` further spans; false: there were none.
  Result<bool> advance(rundb::Reader& reader, const RunFacts& facts, std::int64_t count_max);
  std::shared_ptr<const SpanStatistics> statistics(const std::vector<rundb::StepRow>& steps,
                                                   std::int64_t span_count) const;

 private:
  struct Sum {
    std::int64_t count = 0;
    TimeNs sum_ns = 0;
    TimeNs max_ns = 0;
    std::int64_t bytes = 0;
    double limit_bytes_per_s = 0;
    TimeNs active_ns = 0;
    DurationHistogram durations;
  };
  static constexpr TimeNs kNever = std::numeric_limits<TimeNs>::min();
  struct StepEnds {
    TimeNs forward = kNever;
    TimeNs backward = kNever;
    TimeNs parameters = kNever;
    std::int64_t shared_link_bytes = 0;
  };
  Result<bool> advance_in_range(rundb::Reader& reader, const RunFacts& facts,
                                std::int64_t count_max);
  void add(const RunFacts& facts, std::span<const rundb::Cell> row);
  // The figures that a span adds that moved bytes.
  struct Moved {
    double limit_bytes_per_s = 0;
    TimeNs active_ns = 0;  // that nothing before it on its track was under way
  };
  Moved moved_of(const TrackFacts* track, std::span<const rundb::Cell> row);
  void add_sums(std::span<const rundb::Cell> row, int rank, const Moved& moved);
  void add_sum(GroupBy by, std::int64_t name_id, std::int32_t of, TimeNs dur_ns, std::int64_t bytes,
               const Moved& moved);
  bool is_part_of_several(GroupBy by, std::int64_t name_id) const;
  std::int32_t shown_subgroup(std::int64_t name_id, std::int32_t subgroup) const;
  void add_step(const RunFacts& facts, std::int64_t name_id, std::int64_t step, TimeNs end_ts);
  std::vector<PhaseRow> phases(const std::vector<rundb::StepRow>& steps) const;

  ScanRange range_;
  bool has_ranks_ = false;
  std::int64_t last_id_ = 0;
  std::int64_t seen_count_ = 0;
  std::array<std::map<std::pair<std::int64_t, std::int32_t>, Sum>, kGroupings> sums_;
  std::unordered_map<std::int64_t, StepEnds> ends_;
  std::unordered_map<std::int64_t, TimeNs> track_ends_;  // of what moved bytes, the latest
};

}  // namespace sluice::gui
