#pragma once
// Single spans: one with what set it off and what it set off, and those whose name holds some text.
//
// Thread contract: plain data; the functions use their reader.

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "gui/data/run_facts.h"
#include "storage/rundb/reader.h"

namespace sluice::gui {

struct FlowEnd {
  rundb::SpanRow row;
  bool is_cause = false;  // of the chosen span; false: an effect of it
};

struct ChosenSpan {
  rundb::SpanRow row;
  std::vector<FlowEnd> flows;
};
// `not_found` where there is no such span. Only effects that were written within the same few
// batches are found: table flow is ordered by effect.
Result<ChosenSpan> read_span(rundb::Reader& reader, std::int64_t span_id);

// How long a span took beside all of its name, those written later not among them.
struct SpanRank {
  std::int64_t span_id = 0;
  std::int64_t count = 0;  // of that name, this one among them
  std::int64_t shorter_count = 0;
  std::int64_t longer_count = 0;
};
// Reads the whole table. `not_found` where there is no such span.
Result<SpanRank> rank_of(rundb::Reader& reader, std::int64_t span_id);

struct FoundSpan {
  std::int64_t span_id = 0;
  std::int64_t track_id = 0;
  TimeNs ts = 0;
  TimeNs end_ts = 0;
};
struct Findings {
  std::string text;
  std::vector<std::int32_t> name_ids;  // whose names hold it
  std::vector<FoundSpan> spans;        // by begin; at most kFoundMax
  bool is_cut = false;
};
inline constexpr std::size_t kFoundMax = 10'000;
// `text` in any case, somewhere in the name.
Result<Findings> find_spans(rundb::Reader& reader, const RunFacts& facts, const std::string& text);

}  // namespace sluice::gui
