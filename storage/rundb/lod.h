#pragma once
// Levels of detail of the timeline: tables `lod` and `long_span`, kept up while a run records, so
// that any zoom of a long run is drawn from about as many rows as the screen has columns.
//
// Level 0 has bins of 2^20 ns (about a millisecond), each further level bins eight times as wide.
// In a level a span is either short, and adds to the bins that it lies in, or long: at least
// kLongBins bins. A long span is worth drawing by itself there and stands in `long_span` with the
// coarsest level in which it is long; in coarser ones it is short. So a span touches at most
// kLongBins + 1 bins a level, and one row of `long_span`.
//
// Where a batch has a track's spans so far apart that bins of level 0 would hold fewer than two
// each, they have no rows there: `span_run` says so, and a reader makes the bins from the spans.
// Such bins of a training step are a fifth of what recording it would cost.
//
// To draw a track at level L: its bins of that level (TimelineReader::lod), and its long spans of
// level L and coarser ones.
//
// Thread contract: plain data and free functions.

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "storage/rundb/rows.h"

namespace sluice::rundb {

inline constexpr int kLodLevels = 8;  // the last has bins of 2^41 ns, 37 minutes
inline constexpr std::int64_t kLongBins = 4;
constexpr int lod_shift(int level) { return 20 + 3 * level; }
constexpr TimeNs lod_width_ns(int level) { return TimeNs{1} << lod_shift(level); }
// Bins of a chunk stand side by side in the file, those of one track after those of another.
constexpr std::int64_t lod_chunk_of(std::int64_t bin) { return bin >> 5; }
// In which levels spans of one track, by begin, have rows: this one and coarser ones.
int finest_lod_level(std::span<const SpanRow> spans);
inline constexpr int kFinestLodLevelMax = 1;
// The finest level whose bins are at least this wide; the coarsest if none is.
int lod_level_for(TimeNs width_ns);

// The spans in a bin that are short at its level.
struct LodRow {
  std::int64_t track_id = 0;
  int level = 0;
  std::int64_t bin = 0;    // begins at bin x lod_width_ns(level)
  std::int64_t count = 0;  // spans that begin in it
  TimeNs busy_ns = 0;      // of all spans, so more than the width where they overlap
  TimeNs longest_ns = 0;   // of the span below, which may reach out of the bin
  std::int64_t longest_name_id = 0;
};

struct LongSpanRow {
  std::int64_t track_id = 0;
  int level = 0;
  TimeNs ts = 0;
  TimeNs end_ts = 0;
  std::int64_t span_id = 0;
};

// The rows that a batch of spans adds; a bin that several spans touch comes once. All in the order
// of the table: by level, chunk, track and bin.
class LodBatch {
 public:
  void clear();
  void add(const SpanRow& span, int finest_level);
  void add(const LodRow& row);

  // The additions to the bins of one level: of spans, only those added with that finest level.
  const std::vector<LodRow>& bins_of(int level);

  // The bins of all levels, after the last add().
  const std::vector<LodRow>& bins();
  const std::vector<LongSpanRow>& long_spans() const { return long_spans_; }

 private:
  // By level. A span stands at the finest of its levels in which it is short, until bins() has
  // brought it to the coarser ones. Until they are asked for, rows are in any order, and a bin may
  // have several.
  std::array<std::vector<LodRow>, kLodLevels> rows_;
  std::vector<LodRow> bins_;
  std::vector<LongSpanRow> long_spans_;
};

}  // namespace sluice::rundb
