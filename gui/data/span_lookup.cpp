#include "gui/data/span_lookup.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "base/small_letters.h"
#include "gui/data/cells.h"
#include "storage/rundb/query.h"
#include "storage/rundb/span_reader.h"

namespace sluice::gui {
namespace {

// An effect follows its cause by less than two steps: how far behind the cause its row may lie.
constexpr std::int64_t kEffectRowsMax = 100'000;
constexpr std::int64_t kEndsMax = 64;  // of each: causes and effects

}  // namespace

Result<ChosenSpan> read_span(rundb::Reader& reader, std::int64_t span_id) {
  rundb::SpanReader spans(reader);
  ChosenSpan chosen;
  bool is_there = false;
  RETURN_IF_ERROR(spans.each_span_of_ids(span_id, span_id, [&](const rundb::SpanRow& row) {
    chosen.row = row;
    is_there = true;
  }));
  if (!is_there) return make_error(ErrorCode::not_found, "there is no span {}", span_id);
  ASSIGN_OR_RETURN(const auto causes, spans.causes_of(span_id, kEndsMax));
  for (const rundb::SpanRow& row : causes) chosen.flows.push_back({row, true});
  ASSIGN_OR_RETURN(const auto effects, spans.effects_of(span_id, span_id - kEffectRowsMax,
                                                        span_id + kEffectRowsMax, kEndsMax));
  for (const rundb::SpanRow& row : effects) chosen.flows.push_back({row, false});
  return chosen;
}

Result<SpanRank> rank_of(rundb::Reader& reader, std::int64_t span_id) {
  SpanRank rank{.span_id = span_id};
  RETURN_IF_ERROR(rundb::Query(reader).each_row_with(
      "SELECT count(*), sum(other.dur < chosen.dur), sum(other.dur > chosen.dur) "
      "FROM span AS chosen JOIN span AS other ON other.name_id = chosen.name_id "
      "WHERE chosen.id = ?1",
      {span_id}, [&rank](std::span<const rundb::Cell> row) {
        rank.count = integer_of(row[0]);
        rank.shorter_count = integer_of(row[1]);
        rank.longer_count = integer_of(row[2]);
        return ok_status();
      }));
  if (rank.count == 0) return make_error(ErrorCode::not_found, "there is no span {}", span_id);
  return rank;
}

Result<Findings> find_spans(rundb::Reader& reader, const RunFacts& facts, const std::string& text) {
  Findings found;
  found.text = text;
  if (text.empty()) return found;
  const std::string wanted = small_letters(text);
  for (const auto& [id, name] : facts.info.strings) {
    if (small_letters(name).find(wanted) != std::string::npos)
      found.name_ids.push_back(static_cast<std::int32_t>(id));
  }
  std::ranges::sort(found.name_ids);
  if (found.name_ids.empty()) return found;
  RETURN_IF_ERROR(rundb::Query(reader).each_row(
      fmt::format("SELECT id, track_id, ts, ts + dur FROM span WHERE name_id IN ({}) "
                  "ORDER BY ts LIMIT {}",
                  fmt::join(found.name_ids, ", "), kFoundMax + 1),
      [&found](std::span<const rundb::Cell> row) {
        if (found.spans.size() == kFoundMax) {
          found.is_cut = true;
          return ok_status();
        }
        found.spans.push_back(
            {integer_of(row[0]), integer_of(row[1]), integer_of(row[2]), integer_of(row[3])});
        return ok_status();
      }));
  return found;
}

}  // namespace sluice::gui
