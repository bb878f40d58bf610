#include "gui/data/side_by_side.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

#include "gui/data/cells.h"
#include "profiler/analyze/rank_records.h"
#include "storage/rundb/query.h"
#include "storage/rundb/reader.h"

namespace sluice::gui {
namespace {

Status add_sums(rundb::Reader& reader, Stretch stretch, NameSum NamePair::* side,
                std::map<std::string, NamePair>& pairs) {
  return rundb::Query(reader).each_row(
      fmt::format(
          "SELECT string.value, count(*), sum(inside), sum(bytes * (1.0 * inside / max(dur, 1))) "
          "FROM (SELECT name_id, dur, bytes + padding_bytes AS bytes, "
          "min(ts + dur, {1}) - max(ts, {0}) AS inside FROM span "
          "WHERE ts < {1} AND ts + dur > {0}) AS part "
          "JOIN string ON string.id = part.name_id GROUP BY string.value",
          stretch.begin, stretch.end),
      [&](std::span<const rundb::Cell> row) {
        NameSum& sum = pairs[text_of(row[0])].*side;
        sum = {integer_of(row[1]), number_of(row[2]), number_of(row[3])};
        return ok_status();
      });
}

Result<std::vector<NamePair>> name_pairs(const std::string& database, Stretch a, Stretch b) {
  ASSIGN_OR_RETURN(const std::unique_ptr<rundb::Reader> reader, rundb::Reader::open(database));
  ASSIGN_OR_RETURN(const rundb::Reader::Snapshot snapshot, reader->snapshot());
  std::map<std::string, NamePair> pairs;
  RETURN_IF_ERROR(add_sums(*reader, a, &NamePair::a, pairs));
  RETURN_IF_ERROR(add_sums(*reader, b, &NamePair::b, pairs));
  std::vector<NamePair> names;
  for (auto& [name, pair] : pairs) {
    pair.name = name;
    names.push_back(std::move(pair));
  }
  std::ranges::stable_sort(names, std::greater<>(), [](const NamePair& pair) {
    return std::max(pair.a.busy_ns, pair.b.busy_ns);
  });
  return names;
}

}  // namespace

RunPair compare_two_runs(const std::string& database_a, const std::string& database_b) {
  RunPair pair;
  // Facts that several ranks have once are those of rank 0.
  pair.a = analyze::databases_of({database_a}).front();
  pair.b = analyze::databases_of({database_b}).front();
  Result<analyze::Comparison> comparison = analyze::compare_runs(pair.a, pair.b);
  if (!comparison.ok()) {
    pair.problem = comparison.error().message();
    return pair;
  }
  pair.comparison = *std::move(comparison);
  Result<std::vector<analyze::CausePair>> causes =
      analyze::cause_pairs(pair.a, pair.b, pair.comparison);
  if (causes.ok()) {
    pair.causes = *std::move(causes);
  } else {
    pair.problem = causes.error().message();
  }
  return pair;
}

StretchPair compare_two_stretches(const std::string& database, Stretch a, Stretch b) {
  StretchPair pair;
  pair.a = a;
  pair.b = b;
  Result<std::vector<NamePair>> names = name_pairs(database, a, b);
  if (names.ok()) {
    pair.names = *std::move(names);
  } else {
    pair.problem = names.error().message();
  }
  return pair;
}

}  // namespace sluice::gui
