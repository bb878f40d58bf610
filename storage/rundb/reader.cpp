#include "storage/rundb/reader.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <utility>

#include "storage/rundb/detail/connection.h"
#include "storage/rundb/detail/row_bounds.h"
#include "storage/rundb/detail/schema.h"
#include "storage/rundb/lod.h"
#include "storage/rundb/sql_text.h"

namespace sluice::rundb {
namespace {

using detail::Connection;
using detail::Statement;

Direction direction_from(std::string_view text) {
  return text == "read" ? Direction::read : Direction::write;
}

Severity severity_from(std::string_view text) {
  if (text == "info") return Severity::info;
  return text == "loss" ? Severity::loss : Severity::error;
}

// The bins of a level that a window of time touches.
struct LodWindow {
  int level;
  std::int64_t first_bin;
  std::int64_t last_bin;
  LodWindow(int of_level, TimeNs begin, TimeNs end)
      : level(of_level), first_bin(begin >> lod_shift(level)), last_bin(end >> lod_shift(level)) {}
  TimeNs begin() const { return first_bin << lod_shift(level); }
  TimeNs end() const { return (last_bin + 1) << lod_shift(level); }
};

}  // namespace

struct Reader::Impl {
  using Statements = std::map<std::string, Statement, std::less<>>;  // by their text

  // A statement that is being run. Idle again afterwards; asked for meanwhile, it is made anew.
  class Asked {
   public:
    Asked(Statements& idle, Statements::node_type node) : idle_(&idle), node_(std::move(node)) {}
    Asked(Asked&&) noexcept = default;
    Asked& operator=(Asked&&) = delete;
    ~Asked() {
      if (node_ && node_.mapped().reset().ok()) idle_->insert(std::move(node_));
    }
    Statement* operator->() { return &node_.mapped(); }
    Statement& operator*() { return node_.mapped(); }

   private:
    Statements* idle_;
    Statements::node_type node_;
  };

  Connection connection;
  Statements idle;  // a window asks the same many times a second, and to prepare them is a tenth

  Result<Asked> ask(std::string_view sql) {
    if (const auto found = idle.find(sql); found != idle.end())
      return Asked(idle, idle.extract(found));
    ASSIGN_OR_RETURN(Statement statement, connection.prepare(sql));
    Statements made;
    return Asked(idle, made.extract(made.emplace(sql, std::move(statement)).first));
  }

  template <typename Row>
  Status check_bounds(const Row& row) const {
    const char* table = detail::out_of_bounds(row);
    if (table == nullptr) return ok_status();
    return make_error(ErrorCode::corrupt,
                      "{}: table {} has a row with a time, size or id that no run has; the file is "
                      "damaged, or another program wrote into it",
                      connection.path(), table);
  }

  // `rows` are those that the file has.
  Result<std::vector<LodRow>> with_spans_without_lod(std::vector<LodRow> rows,
                                                     const LodWindow& window,
                                                     std::optional<std::int64_t> track_id);

  // The rows of one query of reads.sql, each made by `row_from`.
  template <typename RowFrom, typename UseRow, typename... Parameters>
  Status each(const char* query_name, RowFrom&& row_from, UseRow&& use_row,
              const Parameters&... parameters) {
    ASSIGN_OR_RETURN(Asked statement, ask(detail::named_sql(detail::kReadsSql, query_name)));
    RETURN_IF_ERROR(statement->bind_all(parameters...));
    while (true) {
      ASSIGN_OR_RETURN(const bool has_row, statement->step());
      if (!has_row) return ok_status();
      auto row = row_from(*statement);
      RETURN_IF_ERROR(check_bounds(row));
      use_row(std::move(row));
    }
  }
  template <typename RowFrom, typename... Parameters>
  auto read(const char* query_name, RowFrom&& row_from, const Parameters&... parameters)
      -> Result<std::vector<decltype(row_from(std::declval<const Statement&>()))>> {
    std::vector<decltype(row_from(std::declval<const Statement&>()))> rows;
    RETURN_IF_ERROR(each(
        query_name, row_from, [&rows](auto&& row) { rows.push_back(std::move(row)); },
        parameters...));
    return rows;
  }
};

Reader::Reader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Reader::~Reader() = default;

Result<std::unique_ptr<Reader>> Reader::open(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error))
    return make_error(ErrorCode::not_found, "{}: there is no such run database", path);
  if (std::filesystem::is_directory(path, error))
    return make_error(ErrorCode::corrupt, "{}: is a folder, not a run database", path);
  if (std::filesystem::is_regular_file(path, error) && std::filesystem::file_size(path, error) == 0)
    return make_error(ErrorCode::corrupt,
                      "{}: is empty: it is no run database, or its run was killed as it began",
                      path);
  ASSIGN_OR_RETURN(Connection connection, Connection::open(path, Connection::Mode::read));
  RETURN_IF_ERROR(detail::check_schema(connection));
  return std::unique_ptr<Reader>(
      new Reader(std::unique_ptr<Impl>(new Impl{.connection = std::move(connection), .idle = {}})));
}

Result<Reader::Snapshot> Reader::snapshot() {
  RETURN_IF_ERROR(impl_->connection.execute("BEGIN"));
  Snapshot snapshot(*this);
  // BEGIN alone looks at nothing; the first read fixes what is seen.
  ASSIGN_OR_RETURN([[maybe_unused]] const std::int64_t version,
                   impl_->connection.query_int64("PRAGMA user_version"));
  return snapshot;
}

void Reader::end_snapshot() {
  (void)impl_->connection.execute("COMMIT");  // nothing was written: it cannot lose anything
}

Result<std::vector<MetaRow>> Reader::meta() {
  return impl_->read("meta",
                     [](const Statement& row) { return MetaRow{row.text_at(0), row.text_at(1)}; });
}

namespace {
StepRow step_from(const Statement& row) {
  return {.id = row.int64_at(0),
          .ts = row.int64_at(1),
          .dur = row.int64_at(2),
          .loss = row.double_at(3),
          .grad_norm = row.double_at(4),
          .loss_scale = row.double_at(5),
          .tokens = row.int64_at(6),
          .skipped = row.int64_at(7) != 0};
}

StatRow stat_from(const Statement& row) {
  return {row.text_at(0), severity_from(row.text_at(1)), row.int64_at(2), row.text_at(3)};
}
}  // namespace

Result<std::vector<StepRow>> Reader::steps() { return impl_->read("steps", step_from); }

Result<std::vector<StepRow>> Reader::last_steps(std::int64_t count) {
  return impl_->read("last_steps", step_from, count);
}

Result<TimeNs> Reader::stretch_begin() {
  ASSIGN_OR_RETURN(const std::vector<TimeNs> begins,
                   impl_->read("last_clock_snapshot",
                               [](const Statement& row) { return TimeNs{row.int64_at(0)}; }));
  return begins.empty() ? 0 : begins.front();
}

Result<std::vector<std::pair<std::int64_t, std::string>>> Reader::strings() {
  return impl_->read(
      "strings", [](const Statement& row) { return std::pair(row.int64_at(0), row.text_at(1)); });
}

Result<std::vector<TrackRow>> Reader::tracks() {
  return impl_->read("tracks", [](const Statement& row) {
    return TrackRow{row.int64_at(0), row.is_null(1) ? -1 : row.int64_at(1), row.text_at(2),
                    row.text_at(3)};
  });
}

Result<std::vector<LinkRow>> Reader::links() {
  return impl_->read("links", [](const Statement& row) {
    return LinkRow{row.int64_at(0),  row.text_at(1),  row.double_at(2),
                   row.double_at(3), row.int64_at(4), row.text_at(5) == "full"};
  });
}

Result<std::vector<DeviceRow>> Reader::devices() {
  return impl_->read("devices", [](const Statement& row) {
    return DeviceRow{row.int64_at(0), row.text_at(1), row.text_at(2), row.int64_at(3),
                     row.int64_at(4)};
  });
}

Result<std::vector<TrackLinkRow>> Reader::track_links() {
  return impl_->read("track_links", [](const Statement& row) {
    return TrackLinkRow{row.int64_at(0), row.int64_at(1), direction_from(row.text_at(2))};
  });
}

Result<std::vector<StageRow>> Reader::stages() {
  return impl_->read("stages", [](const Statement& row) {
    return StageRow{row.int64_at(0), row.text_at(1),       row.text_at(2),
                    row.text_at(3),  row.text_at(4),       row.text_at(5),
                    row.text_at(6),  row.int64_at(7) != 0, row.text_at(8)};
  });
}

Result<std::vector<ModeRow>> Reader::modes() {
  return impl_->read("modes", [](const Statement& row) {
    return ModeRow{row.int64_at(0), row.int64_at(1), row.text_at(2)};
  });
}

Result<std::vector<KnobRow>> Reader::knobs() {
  return impl_->read("knobs", [](const Statement& row) {
    return KnobRow{row.text_at(0),   row.text_at(1), row.text_at(2), row.double_at(3),
                   row.double_at(4), row.text_at(5), row.text_at(6)};
  });
}

Result<std::vector<KnobChangeRow>> Reader::knob_changes() {
  return impl_->read("knob_changes", [](const Statement& row) {
    return KnobChangeRow{row.int64_at(0), row.int64_at(1), row.text_at(2),
                         row.text_at(3),  row.text_at(4),  row.text_at(5)};
  });
}

Result<std::vector<VerdictRow>> Reader::verdicts(std::int64_t first_step) {
  return impl_->read(
      "verdicts",
      [](const Statement& row) {
        return VerdictRow{row.int64_at(0), row.text_at(1), row.double_at(2)};
      },
      first_step);
}

namespace {
SpanRow span_from(const Statement& row) {
  return {.id = row.int64_at(0),
          .track_id = row.int64_at(1),
          .name_id = row.int64_at(2),
          .submit_ts = row.int64_at(3),
          .ts = row.int64_at(4),
          .dur = row.int64_at(5),
          .step_id = row.int64_at(6),
          .subgroup_id = row.int64_at(7),
          .device_id = row.int64_at(8),
          .layer_id = row.int64_at(9),
          .bytes = row.int64_at(10),
          .padding_bytes = row.int64_at(11),
          .status = static_cast<SpanStatus>(row.int64_at(12))};
}

// By begin, then by id, in which they come. SQLite would carry all columns through its sort.
std::vector<SpanRow> by_begin(std::vector<SpanRow> rows) {
  if (std::ranges::is_sorted(rows, {}, &SpanRow::ts)) return rows;
  std::vector<std::pair<TimeNs, std::size_t>> order(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) order[i] = {rows[i].ts, i};
  std::ranges::sort(order);
  std::vector<SpanRow> sorted;
  sorted.reserve(rows.size());
  for (const auto& [ts, i] : order) sorted.push_back(rows[i]);
  return sorted;
}
}  // namespace

Result<std::vector<SpanRow>> Reader::spans_between(TimeNs begin, TimeNs end) {
  ASSIGN_OR_RETURN(std::vector<SpanRow> rows,
                   impl_->read("spans_between", span_from, std::int64_t{begin}, std::int64_t{end}));
  return by_begin(std::move(rows));
}

Status Reader::each_span_between(TimeNs begin, TimeNs end,
                                 const std::function<void(const SpanRow&)>& use_span) {
  return impl_->each("spans_between", span_from, use_span, std::int64_t{begin}, std::int64_t{end});
}

Status Reader::each_span_of_ids(std::int64_t first_id, std::int64_t last_id, TimeNs begin,
                                TimeNs end, const std::function<void(const SpanRow&)>& use_span) {
  return impl_->each("spans_of_ids", span_from, use_span, first_id, last_id, std::int64_t{begin},
                     std::int64_t{end});
}

Result<std::vector<SpanRow>> Reader::spans_of_track(std::int64_t track_id, TimeNs begin,
                                                    TimeNs end) {
  ASSIGN_OR_RETURN(std::vector<SpanRow> rows, impl_->read("spans_of_track", span_from, track_id,
                                                          std::int64_t{begin}, std::int64_t{end}));
  return by_begin(std::move(rows));
}

namespace {
LodRow lod_from(const Statement& row) {
  return {row.int64_at(0), static_cast<int>(row.int64_at(1)),
          row.int64_at(2), row.int64_at(3),
          row.int64_at(4), row.int64_at(5),
          row.int64_at(6)};
}
}  // namespace

Result<std::vector<LodRow>> Reader::lod_of_all_tracks(int level, TimeNs begin, TimeNs end) {
  const LodWindow window(level, begin, end);
  ASSIGN_OR_RETURN(
      std::vector<LodRow> rows,
      impl_->read("lod_of_all_tracks", lod_from, std::int64_t{level}, window.first_bin,
                  window.last_bin, lod_chunk_of(window.first_bin), lod_chunk_of(window.last_bin)));
  return impl_->with_spans_without_lod(std::move(rows), window, std::nullopt);
}

Result<std::vector<LodRow>> Reader::lod(std::int64_t track_id, int level, TimeNs begin,
                                        TimeNs end) {
  const LodWindow window(level, begin, end);
  ASSIGN_OR_RETURN(
      std::vector<LodRow> rows,
      impl_->read("lod", lod_from, track_id, std::int64_t{level}, window.first_bin, window.last_bin,
                  lod_chunk_of(window.first_bin), lod_chunk_of(window.last_bin)));
  return impl_->with_spans_without_lod(std::move(rows), window, track_id);
}

Result<std::vector<LodRow>> Reader::Impl::with_spans_without_lod(
    std::vector<LodRow> rows, const LodWindow& window, std::optional<std::int64_t> track_id) {
  if (window.level >= kFinestLodLevelMax) return rows;
  const auto span_from = [](const Statement& row) {
    return SpanRow{.id = row.int64_at(0),
                   .track_id = row.int64_at(1),
                   .name_id = row.int64_at(2),
                   .ts = row.int64_at(3),
                   .dur = row.int64_at(4)};
  };
  ASSIGN_OR_RETURN(const std::vector<SpanRow> spans,
                   read("spans_without_lod", span_from, std::int64_t{window.level},
                        std::int64_t{window.begin()}, std::int64_t{window.end()}, track_id));
  if (spans.empty()) return rows;
  LodBatch together;
  for (const LodRow& row : rows) together.add(row);
  for (const SpanRow& span : spans) together.add(span, window.level);
  rows = together.bins_of(window.level);
  std::erase_if(rows, [&](const LodRow& row) {
    return row.bin < window.first_bin || row.bin > window.last_bin;
  });
  return rows;
}

Result<std::vector<LongSpanRow>> Reader::long_spans(std::int64_t track_id, int level, TimeNs begin,
                                                    TimeNs end) {
  const auto long_from = [](const Statement& row) {
    return LongSpanRow{row.int64_at(0), static_cast<int>(row.int64_at(1)), row.int64_at(2),
                       row.int64_at(3), row.int64_at(4)};
  };
  return impl_->read("long_spans", long_from, track_id, std::int64_t{level}, std::int64_t{begin},
                     std::int64_t{end});
}

namespace {
// Spans a column that are still drawn one by one: the eye tells no more apart.
constexpr std::int64_t kSpansAColumn = 2;
// A bin may be this many columns wide where there are more spans than that. A window in which bins
// would be wider is so short that reading all of its spans costs no more.
constexpr TimeNs kColumnsABin = 16;

std::int64_t span_count(const TrackView& view) {
  std::int64_t count = std::ssize(view.long_spans);
  for (const LodRow& bin : view.bins) count += bin.count;
  return count;
}
}  // namespace

Result<TrackView> Reader::view_of_track(std::int64_t track_id, TimeNs begin, TimeNs end,
                                        int columns) {
  const TimeNs column_ns = (end - begin) / std::max(1, columns);
  TrackView view;
  if (column_ns * kColumnsABin >= lod_width_ns(0)) {
    view.level = lod_level_for(column_ns);
    ASSIGN_OR_RETURN(view.bins, lod(track_id, view.level, begin, end));
    ASSIGN_OR_RETURN(view.long_spans, long_spans(track_id, view.level, begin, end));
    const bool is_as_fine_as_columns = column_ns >= lod_width_ns(0);
    if (is_as_fine_as_columns || span_count(view) > kSpansAColumn * columns) return view;
  }
  view = {};
  ASSIGN_OR_RETURN(view.spans, spans_of_track(track_id, begin, end));
  return view;
}

Result<std::vector<CounterRow>> Reader::counters_between(TimeNs begin, TimeNs end) {
  return impl_->read(
      "counters_between",
      [](const Statement& row) {
        return CounterRow{row.int64_at(0), row.int64_at(1), row.double_at(2)};
      },
      std::int64_t{begin}, std::int64_t{end});
}

Result<std::vector<FlowRow>> Reader::flows_between(TimeNs begin, TimeNs end) {
  return impl_->read(
      "flows_between",
      [](const Statement& row) { return FlowRow{row.int64_at(0), row.int64_at(1)}; },
      std::int64_t{begin}, std::int64_t{end});
}

Result<std::vector<NamedSpan>> Reader::spans_ended(TimeNs after, TimeNs until) {
  const auto span_from = [](const Statement& row) {
    return NamedSpan{{.track_id = row.int64_at(0),
                      .name_id = row.int64_at(1),
                      .submit_ts = row.int64_at(2),
                      .ts = row.int64_at(3),
                      .dur = row.int64_at(4),
                      .step_id = row.int64_at(5),
                      .subgroup_id = row.int64_at(6),
                      .device_id = row.int64_at(7),
                      .layer_id = row.int64_at(8),
                      .bytes = row.int64_at(9),
                      .padding_bytes = row.int64_at(10)},
                     row.text_at(11)};
  };
  return impl_->read("spans_ended", span_from, std::int64_t{after}, std::int64_t{until});
}

Result<std::vector<SpanTotals>> Reader::span_totals() {
  return impl_->read("span_totals", [](const Statement& row) {
    return SpanTotals{.name = row.text_at(0),
                      .count = row.int64_at(1),
                      .dur_total = row.int64_at(2),
                      .dur_mean = row.int64_at(2) / row.int64_at(1),
                      .dur_max = row.int64_at(3),
                      .bytes = row.int64_at(4),
                      .padding_bytes = row.int64_at(5)};
  });
}

Result<std::vector<LinkTotals>> Reader::link_totals() {
  return impl_->read("link_totals", [](const Statement& row) {
    const std::int64_t bytes_of_ended_steps = row.int64_at(4);
    const std::int64_t step_count = row.int64_at(5);
    return LinkTotals{.link = row.text_at(0),
                      .direction = direction_from(row.text_at(1)),
                      .bytes = row.int64_at(2),
                      .padding_bytes = row.int64_at(3),
                      .bytes_per_step_mean = step_count == 0
                                                 ? 0.0
                                                 : static_cast<double>(bytes_of_ended_steps) /
                                                       static_cast<double>(step_count)};
  });
}

Result<std::vector<StatRow>> Reader::stats() { return impl_->read("stats", stat_from); }
Result<std::vector<StatRow>> Reader::losses() { return impl_->read("losses", stat_from); }

Result<std::vector<TableInfo>> Reader::tables() {
  ASSIGN_OR_RETURN(const std::vector<detail::SchemaEntity> entities, detail::schema_of_sluice());
  std::vector<TableInfo> tables;
  for (const detail::SchemaEntity& entity : entities) {
    TableInfo& table = tables.emplace_back();
    table.name = entity.name;
    table.is_view = entity.type == "view";
    ASSIGN_OR_RETURN(table.columns,
                     impl_->read(
                         "columns", [](const Statement& row) { return row.text_at(0); },
                         std::string_view(entity.name)));
  }
  return tables;
}

Result<TextTable> Reader::query(const std::string& sql) {
  ASSIGN_OR_RETURN(Statement statement, impl_->connection.prepare(sql));
  TextTable table;
  for (int i = 0; i < statement.column_count(); ++i)
    table.columns.push_back(statement.column_name(i));
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, statement.step());
    if (!has_row) return table;
    std::vector<std::string>& row = table.rows.emplace_back();
    for (int i = 0; i < statement.column_count(); ++i)
      row.push_back(statement.is_null(i) ? "NULL" : statement.text_at(i));
  }
}

namespace {
Status each_row_of(Statement& statement,
                   const std::function<Status(std::span<const Cell>)>& use_row) {
  std::vector<Cell> cells(static_cast<std::size_t>(statement.column_count()));
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, statement.step());
    if (!has_row) return ok_status();
    for (std::size_t i = 0; i < cells.size(); ++i)
      cells[i] = statement.cell_at(static_cast<int>(i));
    RETURN_IF_ERROR(use_row(cells));
  }
}
}  // namespace

Status Reader::each_row(const std::string& sql,
                        const std::function<Status(std::span<const Cell>)>& use_row) {
  ASSIGN_OR_RETURN(Statement statement, impl_->connection.prepare(sql));
  return each_row_of(statement, use_row);
}

Status Reader::each_row_with(std::string_view sql, std::initializer_list<std::int64_t> parameters,
                             const std::function<Status(std::span<const Cell>)>& use_row) {
  ASSIGN_OR_RETURN(Impl::Asked statement, impl_->ask(sql));
  int index = 0;
  for (const std::int64_t parameter : parameters)
    RETURN_IF_ERROR(statement->bind_from(++index, parameter));
  return each_row_of(*statement, use_row);
}

}  // namespace sluice::rundb
