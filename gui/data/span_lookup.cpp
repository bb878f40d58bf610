#include "gui/data/span_lookup.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "gui/data/span_cells.h"

namespace sluice::gui {
namespace {

// An effect follows its cause by less than two steps: how far behind the cause its row may lie.
constexpr std::int64_t kEffectRowsMax = 100'000;

bool holds(const std::string& name, const std::string& text) {
  const auto same = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) ==
           std::tolower(static_cast<unsigned char>(b));
  };
  return !std::ranges::search(name, text, same).empty();
}

}  // namespace

Result<ChosenSpan> read_span(rundb::Reader& reader, std::int64_t span_id) {
  ChosenSpan chosen;
  bool is_there = false;
  RETURN_IF_ERROR(
      reader.each_row(fmt::format("SELECT {} FROM span WHERE id = {}", kSpanColumns, span_id),
                      [&](std::span<const rundb::Cell> row) {
                        chosen.row = span_of(row);
                        is_there = true;
                        return ok_status();
                      }));
  if (!is_there) return make_error(ErrorCode::not_found, "there is no span {}", span_id);
  const auto add = [&](const std::string& where, bool is_cause) {
    return reader.each_row(
        fmt::format("SELECT {} FROM flow CROSS JOIN span ON span.id = flow.{} WHERE {} LIMIT 64",
                    kSpanColumns, is_cause ? "from_span" : "to_span", where),
        [&chosen, is_cause](std::span<const rundb::Cell> row) {
          chosen.flows.push_back({span_of(row), is_cause});
          return ok_status();
        });
  };
  RETURN_IF_ERROR(add(fmt::format("flow.to_span = {}", span_id), true));
  RETURN_IF_ERROR(add(fmt::format("flow.to_span BETWEEN {} AND {} AND flow.from_span = {}",
                                  span_id - kEffectRowsMax, span_id + kEffectRowsMax, span_id),
                      false));
  return chosen;
}

Result<Findings> find_spans(rundb::Reader& reader, const RunFacts& facts, const std::string& text) {
  Findings found;
  found.text = text;
  if (text.empty()) return found;
  for (const auto& [id, name] : facts.info.strings) {
    if (holds(name, text)) found.name_ids.push_back(static_cast<std::int32_t>(id));
  }
  std::ranges::sort(found.name_ids);
  if (found.name_ids.empty()) return found;
  RETURN_IF_ERROR(reader.each_row(
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
