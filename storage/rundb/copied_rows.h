#pragma once
// The rows of a run database on their way into a copy of it (storage/rundb/record_tail.h takes them
// from the one file, storage/rundb/copy_writer.h puts them into the other). A piece holds rows of
// one table as bytes: docs/following.md has their form. What the writer of the copy works out from
// its spans (span_run, span_batch, lod, long_span) does not travel.
//
// Thread contract: plain data and free functions.

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/status.h"
#include "storage/rundb/rows.h"

namespace sluice::rundb {

// A table is known by its place here. Those before `kFirstGrowing` are small, and go as a whole
// when they have changed; the others grow at their end.
using CopiedRows =
    std::variant<std::vector<MetaRow>, std::vector<ClockRow>, std::vector<ClockOffsetRow>,
                 std::vector<StatRow>, std::vector<DeviceRow>, std::vector<LinkRow>,
                 std::vector<TrackLinkRow>, std::vector<SubgroupRow>, std::vector<KnobRow>,
                 std::vector<ModeRow>, std::vector<ValidationRow>, std::vector<VerdictRow>,
                 std::vector<StageRow>, std::vector<KnobChangeRow>, std::vector<LatenessRow>,
                 std::vector<SampledThreadRow>, std::vector<StringRow>, std::vector<TrackRow>,
                 std::vector<StepRow>, std::vector<SpanRow>, std::vector<FlowRow>,
                 std::vector<CounterRow>, std::vector<SampledFunctionRow>, std::vector<CallRow>,
                 std::vector<CallSampleRow>, std::vector<ProcessorTimeRow>>;
inline constexpr std::size_t kCopiedTables = std::variant_size_v<CopiedRows>;
inline constexpr std::size_t kFirstGrowing = 16;
std::string_view copied_table_name(std::size_t table);
bool is_sample_table(std::size_t table);  // which a file has only if its run was sampled
std::int64_t schema_version();            // of the files on both sides

struct CopiedPiece {
  std::size_t table = 0;
  bool replaces = false;  // what stands in the table goes first
  std::string bytes = {};
};
// A piece is closed when it has one of these; a row is never cut.
inline constexpr std::size_t kPieceBytes = 256 << 10;
inline constexpr std::size_t kPieceRowsMax = 1 << 14;

// Errors (corrupt): bytes that are cut or left over, a number that no run has, a text in the place
// of a word; the message says of which row.
Result<CopiedRows> rows_of(const CopiedPiece& piece);

// How far a copy is.
struct CopyCursor {
  std::int64_t run = 0;        // which recording it is of: a fingerprint; 0: of none
  std::int64_t stretches = 0;  // of the recording: a resume takes steps back, so that the copy
                               // begins anew
  std::int64_t string_id = 0;  // the last that was copied, as the following ones
  std::int64_t track_id = 0;
  std::int64_t span_id = 0;
  std::int64_t counter_rowid = 0;
  std::int64_t step_id = std::int64_t{std::numeric_limits<std::int32_t>::min()} - 1;
  std::int64_t step_count = 0;  // up to that step
  std::int64_t step_sum = 0;    // a fingerprint of their times
  std::int64_t late_flows = 0;  // that lead into the last spans, where some may still be added
  std::int64_t sampled_function_id = 0;  // the last that was copied, as the following ones
  std::int64_t call_id = 0;
  std::int64_t call_sample_rowid = 0;
  std::int64_t processor_time_rowid = 0;
  std::array<std::int64_t, kFirstGrowing> whole = {};  // fingerprints of the small tables
  bool operator==(const CopyCursor&) const = default;
};
inline constexpr std::size_t kCursorNumbers = 14 + kFirstGrowing;
std::array<std::int64_t, kCursorNumbers> numbers_of(const CopyCursor& cursor);
// None: another count of numbers.
std::optional<CopyCursor> cursor_of(std::span<const std::int64_t> numbers);

}  // namespace sluice::rundb
