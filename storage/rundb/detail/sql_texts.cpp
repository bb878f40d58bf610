#include "storage/rundb/detail/sql_texts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "storage/rundb/detail/tables.h"
#include "storage/rundb/lod.h"
#include "storage/rundb/rows.h"
#include "storage/rundb/sql_text.h"

namespace sluice::rundb::detail {
namespace {

template <typename... Rows>
std::vector<DeclaredTable> tables_of() {
  const auto columns_of = [](const auto&... columns) {
    return std::vector<DeclaredColumn>{{columns.name, columns.kSqlType, columns.kIsNullable}...};
  };
  return {{kTable<Rows>.name, std::apply(columns_of, kTable<Rows>.columns)}...};
}

const DeclaredTable& declared_table(std::string_view name) {
  const auto found = std::ranges::find(declared_tables(), name, &DeclaredTable::name);
  CHECK(found != declared_tables().end());
  return *found;
}

std::string in_columns(const DeclaredTable& table) {
  std::vector<std::string> names;
  for (const DeclaredColumn& column : table.columns) {
    const bool is_of_another = column.name.find('.') != std::string_view::npos;
    names.push_back(is_of_another ? std::string(column.name)
                                  : fmt::format("{}.{}", table.name, column.name));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string in_updates(const std::vector<std::string_view>& names) {
  std::vector<std::string> updates;
  for (const std::string_view name : names)
    updates.push_back(fmt::format("{0} = excluded.{0}", name));
  return fmt::format("{}", fmt::join(updates, ", "));
}

std::string in_marks(std::size_t count) {
  return fmt::format("{}", fmt::join(std::vector<std::string_view>(count, "?"), ", "));
}

// The text that a place asks for: "row span but id".
std::string filled(std::string_view place) {
  const auto take_word = [&place] {
    const std::string_view word = place.substr(0, place.find(' '));
    place.remove_prefix(std::min(place.size(), word.size() + 1));
    return word;
  };
  const std::string_view form = take_word();
  const DeclaredTable& table = declared_table(take_word());
  std::vector<std::string_view> names;
  for (const DeclaredColumn& column : table.columns) names.push_back(column.name);
  if (take_word() == "but") CHECK_EQ(std::erase(names, take_word()), std::size_t{1});
  const std::string joined = fmt::format("{}", fmt::join(names, ", "));
  if (form == "columns") return in_columns(table);
  if (form == "names") return joined;
  if (form == "marks") return in_marks(names.size());
  if (form == "updates") return in_updates(names);
  CHECK(form == "row");
  return fmt::format("{} ({}) VALUES ({})", table.name, joined, in_marks(names.size()));
}

using Texts = std::map<std::string, std::string, std::less<>>;

// Each statement is what follows its `-- name:` line.
Texts statements_of(std::string_view file_text) {
  constexpr std::string_view kMarker = "-- name: ";
  Texts texts;
  for (std::size_t at = file_text.find(kMarker); at != std::string_view::npos;) {
    const std::string_view rest = file_text.substr(at + kMarker.size());
    const std::size_t name_size = rest.find('\n');
    const std::size_t next = rest.find(kMarker);
    const std::string_view text = rest.substr(0, next).substr(name_size + 1);
    texts.emplace(rest.substr(0, name_size), with_columns(text));
    at = next == std::string_view::npos ? next : at + kMarker.size() + next;
  }
  return texts;
}

std::string_view statement_of(const Texts& texts, std::string_view name) {
  const auto found = texts.find(name);
  CHECK(found != texts.end());
  return found->second;
}

}  // namespace

const std::vector<DeclaredTable>& declared_tables() {
  static const std::vector<DeclaredTable> tables =
      tables_of<MetaRow, ClockRow, ClockOffsetRow, StatRow, StringRow, TrackRow, StepRow,
                ValidationRow, SpanRow, CounterRow, SpanRunRow, SpanBatchRow, LodRow, LongSpanRow,
                FlowRow, DeviceRow, LinkRow, TrackLinkRow, StageRow, ModeRow, SubgroupRow, KnobRow,
                KnobChangeRow, LatenessRow, VerdictRow, SampledThreadRow, SampledFunctionRow,
                CallRow, CallSampleRow, ProcessorTimeRow>();
  return tables;
}

std::string with_columns(std::string_view text) {
  std::string whole;
  while (true) {
    const std::size_t begin = text.find('{');
    whole += text.substr(0, begin);
    if (begin == std::string_view::npos) return whole;
    const std::size_t end = text.find('}', begin);
    CHECK_NE(end, std::string_view::npos);
    whole += filled(text.substr(begin + 1, end - begin - 1));
    text.remove_prefix(end + 1);
  }
}

std::string_view read_sql(std::string_view name) {
  static const Texts texts = statements_of(kReadsSql);
  return statement_of(texts, name);
}

std::string_view write_sql(std::string_view name) {
  static const Texts texts = statements_of(kWritesSql);
  return statement_of(texts, name);
}

}  // namespace sluice::rundb::detail
