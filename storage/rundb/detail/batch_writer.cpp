#include "storage/rundb/detail/batch_writer.h"

#include <algorithm>
#include <optional>
#include <ranges>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "storage/rundb/detail/row_io.h"
#include "storage/rundb/detail/sql_texts.h"
#include "storage/rundb/lod.h"

namespace sluice::rundb::detail {
namespace {

// The INSERT of one row, made an INSERT of `row_count` rows.
Result<Statement> prepare_rows(Connection& connection, std::string_view name,
                               std::size_t row_count) {
  std::string sql(write_sql(name));
  const std::size_t begin = sql.find('(', sql.find("VALUES"));
  const std::size_t end = sql.find(')', begin) + 1;
  const std::string row = ", " + sql.substr(begin, end - begin);
  for (std::size_t i = 1; i < row_count; ++i) sql.insert(end, row);
  return connection.prepare(sql);
}

// The tables that get many rows a batch. A statement of many rows costs SQLite less a row than as
// many statements do (bench_record ingest).
class RowInserts {
 public:
  static Result<RowInserts> prepare(Connection& connection, std::string_view name) {
    ASSIGN_OR_RETURN(Statement one, prepare_rows(connection, name, 1));
    ASSIGN_OR_RETURN(Statement many, prepare_rows(connection, name, kRowsAtOnce));
    return RowInserts(std::move(one), std::move(many));
  }

  template <typename Row>
  Status add_all(std::span<const Row> rows) {
    const auto bind_all = [](Statement& insert, int first, const Row& row) {
      return bind_row(insert, first, row);
    };
    return add_all(rows, kTable<Row>.kColumnCount, bind_all);
  }
  // `bind` binds a row to the parameters from an index on, of which a row has `column_count`.
  template <typename Row, typename Bind>
  Status add_all(std::span<const Row> rows, int column_count, Bind&& bind) {
    for (; rows.size() >= kRowsAtOnce; rows = rows.subspan(kRowsAtOnce)) {
      int parameter = 1;
      for (const Row& row : rows.first(kRowsAtOnce)) {
        RETURN_IF_ERROR(bind(many_, parameter, row));
        parameter += column_count;
      }
      RETURN_IF_ERROR(many_.run_bound());
    }
    for (const Row& row : rows) {
      RETURN_IF_ERROR(bind(one_, 1, row));
      RETURN_IF_ERROR(one_.run_bound());
    }
    return ok_status();
  }

 private:
  static constexpr std::size_t kRowsAtOnce = 32;

  RowInserts(Statement one, Statement many) : one_(std::move(one)), many_(std::move(many)) {}

  Statement one_;
  Statement many_;
};

std::span<const SpanRow> spans_of(const SpanRunRow& run, std::span<const SpanRow> spans) {
  const auto first = static_cast<std::size_t>(run.first_id - spans.front().id);
  return spans.subspan(first, static_cast<std::size_t>(run.last_id - run.first_id + 1));
}

std::vector<SpanRunRow> runs_of(std::span<const SpanRow> spans) {
  std::vector<SpanRunRow> runs;
  for (const SpanRow& span : spans) {
    const TimeNs end_ts = span.end_ts();
    if (runs.empty() || runs.back().track_id != span.track_id) {
      runs.push_back({span.id, span.id, span.track_id, span.ts, end_ts, 0});
      continue;
    }
    SpanRunRow& run = runs.back();
    CHECK_EQ(span.id, run.last_id + 1);
    run.last_id = span.id;
    run.ts = std::min(run.ts, span.ts);
    run.end_ts = std::max(run.end_ts, end_ts);
  }
  for (SpanRunRow& run : runs) run.lod_level = finest_lod_level(spans_of(run, spans));
  return runs;
}

// The tables that get few rows a batch.
struct SingleInserts {
  Statement step;
  Statement long_span;
  Statement stat;
  Statement knob_change;
  Statement verdict;
  Statement clock;
  Statement clock_offset;
  Statement mode;
  Statement lateness;
  Statement validation;

  static Result<SingleInserts> prepare(Connection& connection) {
    ASSIGN_OR_RETURN(Statement step, prepare_write(connection, "insert_step"));
    ASSIGN_OR_RETURN(Statement long_span, prepare_write(connection, "insert_long_span"));
    ASSIGN_OR_RETURN(Statement stat, prepare_write(connection, "add_to_stat"));
    ASSIGN_OR_RETURN(Statement knob_change, prepare_write(connection, "insert_knob_change"));
    ASSIGN_OR_RETURN(Statement verdict, prepare_write(connection, "insert_verdict"));
    ASSIGN_OR_RETURN(Statement clock, prepare_write(connection, "insert_clock_snapshot"));
    ASSIGN_OR_RETURN(Statement clock_offset, prepare_write(connection, "insert_clock_offset"));
    ASSIGN_OR_RETURN(Statement mode, prepare_write(connection, "insert_mode"));
    ASSIGN_OR_RETURN(Statement lateness, prepare_write(connection, "add_to_lateness"));
    ASSIGN_OR_RETURN(Statement validation, prepare_write(connection, "insert_validation"));
    return SingleInserts{.step = std::move(step),
                         .long_span = std::move(long_span),
                         .stat = std::move(stat),
                         .knob_change = std::move(knob_change),
                         .verdict = std::move(verdict),
                         .clock = std::move(clock),
                         .clock_offset = std::move(clock_offset),
                         .mode = std::move(mode),
                         .lateness = std::move(lateness),
                         .validation = std::move(validation)};
  }

  Statement& of(const StepRow&) { return step; }
  Statement& of(const LongSpanRow&) { return long_span; }
  Statement& of(const StatRow&) { return stat; }
  Statement& of(const KnobChangeRow&) { return knob_change; }
  Statement& of(const VerdictRow&) { return verdict; }
  Statement& of(const ClockRow&) { return clock; }
  Statement& of(const ClockOffsetRow&) { return clock_offset; }
  Statement& of(const ModeRow&) { return mode; }
  Statement& of(const LatenessRow&) { return lateness; }
  Statement& of(const ValidationRow&) { return validation; }
};

}  // namespace

// The statements that every batch uses.
struct BatchWriter::Statements {
  Statement first_span;
  RowInserts next_spans;
  RowInserts span_run;
  Statement span_batch;
  RowInserts lod;
  RowInserts flow;
  RowInserts counter;
  SingleInserts few;
  LodBatch lod_batch = {};  // reused

  static Result<Statements> prepare(Connection& connection) {
    ASSIGN_OR_RETURN(Statement first_span, prepare_write(connection, "insert_first_span"));
    ASSIGN_OR_RETURN(RowInserts next_spans, RowInserts::prepare(connection, "insert_next_span"));
    ASSIGN_OR_RETURN(RowInserts span_run, RowInserts::prepare(connection, "insert_span_run"));
    ASSIGN_OR_RETURN(Statement span_batch, prepare_write(connection, "insert_span_batch"));
    ASSIGN_OR_RETURN(RowInserts lod, RowInserts::prepare(connection, "add_to_lod"));
    ASSIGN_OR_RETURN(RowInserts flow, RowInserts::prepare(connection, "insert_flow"));
    ASSIGN_OR_RETURN(RowInserts counter, RowInserts::prepare(connection, "insert_counter"));
    ASSIGN_OR_RETURN(SingleInserts few, SingleInserts::prepare(connection));
    return Statements{.first_span = std::move(first_span),
                      .next_spans = std::move(next_spans),
                      .span_run = std::move(span_run),
                      .span_batch = std::move(span_batch),
                      .lod = std::move(lod),
                      .flow = std::move(flow),
                      .counter = std::move(counter),
                      .few = std::move(few)};
  }

  // Only the first span's id is given. SQLite gives the others the ones that follow, which it does
  // without looking where they belong.
  Status add_all(std::span<const SpanRow> rows) {
    if (rows.empty()) return ok_status();
    RETURN_IF_ERROR(write_row(first_span, rows.front()));
    const auto bind_all_but_id = [](Statement& insert, int first, const SpanRow& row) {
      static_assert(std::get<0>(kTable<SpanRow>.columns).name == "id");
      return bind_row<1>(insert, first, row);
    };
    return next_spans.add_all(rows.subspan(1), kTable<SpanRow>.kColumnCount - 1, bind_all_but_id);
  }
  Status add_all(std::span<const LodRow> rows) {
    const auto bind_with_chunk = [](Statement& insert, int first, const LodRow& row) -> Status {
      RETURN_IF_ERROR(bind_row(insert, first, row));
      return insert.bind_from(first + kTable<LodRow>.kColumnCount, lod_chunk_of(row.bin));
    };
    return lod.add_all(rows, kTable<LodRow>.kColumnCount + 1, bind_with_chunk);
  }
  Status add_all(std::span<const FlowRow> rows) { return flow.add_all(rows); }
  Status add_all(std::span<const CounterRow> rows) { return counter.add_all(rows); }
  Status add_all(std::span<const SpanRunRow> rows) { return span_run.add_all(rows); }
  Status add_batch(std::span<const SpanRunRow> runs) {
    if (runs.empty()) return ok_status();
    const auto begin = std::ranges::min_element(runs, {}, &SpanRunRow::ts);
    const auto end = std::ranges::max_element(runs, {}, &SpanRunRow::end_ts);
    return write_row(span_batch, SpanBatchRow{runs.front().first_id, runs.back().last_id, begin->ts,
                                              end->end_ts});
  }

  template <typename Row>
  Status add_all(std::span<const Row> rows) {
    for (const Row& row : rows) RETURN_IF_ERROR(write_row(few.of(row), row));
    return ok_status();
  }
  template <typename Row>
  Status add_all(const std::vector<Row>& rows) {
    return add_all(std::span<const Row>(rows));
  }

  Status add_derived(std::span<const SpanRow> spans) {
    const std::vector<SpanRunRow> runs = runs_of(spans);
    RETURN_IF_ERROR(add_all(runs));
    RETURN_IF_ERROR(add_batch(runs));
    lod_batch.clear();
    for (const SpanRunRow& run : runs)
      for (const SpanRow& span : spans_of(run, spans)) lod_batch.add(span, run.lod_level);
    RETURN_IF_ERROR(add_all(lod_batch.bins()));
    return add_all(lod_batch.long_spans());
  }
};

BatchWriter::BatchWriter(std::unique_ptr<Statements> statements)
    : statements_(std::move(statements)) {}
BatchWriter::BatchWriter(BatchWriter&&) noexcept = default;
BatchWriter& BatchWriter::operator=(BatchWriter&&) noexcept = default;
BatchWriter::~BatchWriter() = default;

Result<BatchWriter> BatchWriter::prepare(Connection& connection) {
  ASSIGN_OR_RETURN(Statements statements, Statements::prepare(connection));
  return BatchWriter(std::make_unique<Statements>(std::move(statements)));
}

Status BatchWriter::write(const Batch& batch, std::span<const SpanRow> spans) {
  RETURN_IF_ERROR(statements_->add_all(spans));
  RETURN_IF_ERROR(statements_->add_derived(spans));
  RETURN_IF_ERROR(statements_->add_all(batch.flows));
  RETURN_IF_ERROR(statements_->add_all(batch.counters));
  RETURN_IF_ERROR(statements_->add_all(batch.steps));
  RETURN_IF_ERROR(statements_->add_all(batch.stats));
  RETURN_IF_ERROR(statements_->add_all(batch.knob_changes));
  RETURN_IF_ERROR(statements_->add_all(batch.verdicts));
  RETURN_IF_ERROR(statements_->add_all(batch.modes));
  RETURN_IF_ERROR(statements_->add_all(batch.clock_offsets));
  RETURN_IF_ERROR(statements_->add_all(batch.lateness));
  RETURN_IF_ERROR(statements_->add_all(batch.validations));
  return statements_->add_all(batch.clocks);
}

Status BatchWriter::write(std::span<const StatRow> stats) { return statements_->add_all(stats); }

}  // namespace sluice::rundb::detail
