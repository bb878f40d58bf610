#include "storage/rundb/detail/batch_writer.h"

#include <algorithm>
#include <optional>
#include <ranges>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "storage/rundb/detail/schema.h"
#include "storage/rundb/lod.h"
#include "storage/rundb/sql_text.h"

namespace sluice::rundb::detail {
namespace {

std::string_view text_of(Severity severity) {
  switch (severity) {
    case Severity::info:
      return "info";
    case Severity::loss:
      return "loss";
    case Severity::error:
      return "error";
  }
  CHECK(false);
}

// Of an INSERT of one row, the same of `row_count`.
Result<Statement> prepare_rows(Connection& connection, std::string_view name,
                               std::size_t row_count) {
  std::string sql(named_sql(kWritesSql, name));
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

  // `bind_row` binds a row to the parameters from an index on, of which a row has `column_count`.
  template <typename Row, typename BindRow>
  Status add_all(std::span<const Row> rows, int column_count, BindRow&& bind_row) {
    for (; rows.size() >= kRowsAtOnce; rows = rows.subspan(kRowsAtOnce)) {
      int parameter = 1;
      for (const Row& row : rows.first(kRowsAtOnce)) {
        RETURN_IF_ERROR(bind_row(many_, parameter, row));
        parameter += column_count;
      }
      RETURN_IF_ERROR(many_.run_bound());
    }
    for (const Row& row : rows) {
      RETURN_IF_ERROR(bind_row(one_, 1, row));
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

// Spans of one track, whose ids follow each other.
struct SpanRun {
  std::int64_t first_id;
  std::int64_t last_id;
  std::int64_t track_id;
  TimeNs ts;
  TimeNs end_ts;
  int lod_level;
};

std::span<const SpanRow> spans_of(const SpanRun& run, std::span<const SpanRow> spans) {
  const auto first = static_cast<std::size_t>(run.first_id - spans.front().id);
  return spans.subspan(first, static_cast<std::size_t>(run.last_id - run.first_id + 1));
}

std::vector<SpanRun> runs_of(std::span<const SpanRow> spans) {
  std::vector<SpanRun> runs;
  for (const SpanRow& span : spans) {
    const TimeNs end_ts = span.ts + span.dur;
    if (runs.empty() || runs.back().track_id != span.track_id) {
      runs.push_back({span.id, span.id, span.track_id, span.ts, end_ts, 0});
      continue;
    }
    SpanRun& run = runs.back();
    CHECK_EQ(span.id, run.last_id + 1);
    run.last_id = span.id;
    run.ts = std::min(run.ts, span.ts);
    run.end_ts = std::max(run.end_ts, end_ts);
  }
  for (SpanRun& run : runs) run.lod_level = finest_lod_level(spans_of(run, spans));
  return runs;
}

}  // namespace

// The statements that every batch uses.
struct BatchWriter::Statements {
  Statement step;
  Statement first_span;
  RowInserts next_spans;
  RowInserts span_run;
  Statement span_batch;
  RowInserts lod;
  Statement long_span;
  RowInserts flow;
  RowInserts counter;
  Statement stat;
  Statement knob_change;
  Statement verdict;
  Statement clock;
  Statement mode;
  LodBatch lod_batch;  // reused

  static Result<Statements> prepare(Connection& connection) {
    ASSIGN_OR_RETURN(Statement step, prepare_write(connection, "insert_step"));
    ASSIGN_OR_RETURN(Statement first_span, prepare_write(connection, "insert_first_span"));
    ASSIGN_OR_RETURN(RowInserts next_spans, RowInserts::prepare(connection, "insert_next_span"));
    ASSIGN_OR_RETURN(RowInserts span_run, RowInserts::prepare(connection, "insert_span_run"));
    ASSIGN_OR_RETURN(Statement span_batch, prepare_write(connection, "insert_span_batch"));
    ASSIGN_OR_RETURN(RowInserts lod, RowInserts::prepare(connection, "add_to_lod"));
    ASSIGN_OR_RETURN(Statement long_span, prepare_write(connection, "insert_long_span"));
    ASSIGN_OR_RETURN(RowInserts flow, RowInserts::prepare(connection, "insert_flow"));
    ASSIGN_OR_RETURN(RowInserts counter, RowInserts::prepare(connection, "insert_counter"));
    ASSIGN_OR_RETURN(Statement stat, prepare_write(connection, "add_to_stat"));
    ASSIGN_OR_RETURN(Statement knob_change, prepare_write(connection, "insert_knob_change"));
    ASSIGN_OR_RETURN(Statement verdict, prepare_write(connection, "insert_verdict"));
    ASSIGN_OR_RETURN(Statement clock, prepare_write(connection, "insert_clock_snapshot"));
    ASSIGN_OR_RETURN(Statement mode, prepare_write(connection, "insert_mode"));
    return Statements{std::move(step),      std::move(first_span),  std::move(next_spans),
                      std::move(span_run),  std::move(span_batch),  std::move(lod),
                      std::move(long_span), std::move(flow),        std::move(counter),
                      std::move(stat),      std::move(knob_change), std::move(verdict),
                      std::move(clock),     std::move(mode),        {}};
  }

  Status add(const StepRow& row) {
    return step.run(row.id, row.ts, row.dur, row.loss, row.grad_norm, row.loss_scale, row.tokens,
                    std::int64_t{row.skipped});
  }
  // Only the first span's id is given. SQLite gives the others the ones that follow, which it does
  // without looking where they belong.
  Status add_all(std::span<const SpanRow> rows) {
    if (rows.empty()) return ok_status();
    RETURN_IF_ERROR(first_span.bind_from(13, rows.front().id));
    RETURN_IF_ERROR(bind_span(first_span, 1, rows.front()));
    RETURN_IF_ERROR(first_span.run_bound());
    return next_spans.add_all(rows.subspan(1), 12, bind_span);
  }
  static Status bind_span(Statement& insert, int first, const SpanRow& row) {
    return insert.bind_from(first, row.track_id, row.name_id, row.submit_ts, row.ts, row.dur,
                            null_if_none(row.step_id), null_if_none(row.subgroup_id),
                            null_if_none(row.device_id), null_if_none(row.layer_id), row.bytes,
                            row.padding_bytes, static_cast<std::int64_t>(row.status));
  }
  Status add_all(std::span<const FlowRow> rows) {
    return flow.add_all(rows, 2, [](Statement& insert, int first, const FlowRow& row) {
      return insert.bind_from(first, row.to_span, row.from_span);
    });
  }
  Status add_all(std::span<const CounterRow> rows) {
    return counter.add_all(rows, 3, [](Statement& insert, int first, const CounterRow& row) {
      return insert.bind_from(first, row.track_id, row.ts, row.value);
    });
  }
  Status add_all(std::span<const SpanRun> rows) {
    return span_run.add_all(rows, 6, [](Statement& insert, int first, const SpanRun& run) {
      return insert.bind_from(first, run.first_id, run.last_id, run.track_id, run.ts, run.end_ts,
                              std::int64_t{run.lod_level});
    });
  }
  Status add_batch(std::span<const SpanRun> runs) {
    if (runs.empty()) return ok_status();
    const auto begin = std::ranges::min_element(runs, {}, &SpanRun::ts);
    const auto end = std::ranges::max_element(runs, {}, &SpanRun::end_ts);
    return span_batch.run(runs.front().first_id, runs.back().last_id, begin->ts, end->end_ts);
  }
  Status add_all(std::span<const LodRow> rows) {
    return lod.add_all(rows, 8, [](Statement& insert, int first, const LodRow& row) {
      return insert.bind_from(first, std::int64_t{row.level}, lod_chunk_of(row.bin), row.track_id,
                              row.bin, row.count, row.busy_ns, row.longest_ns, row.longest_name_id);
    });
  }
  Status add(const LongSpanRow& row) {
    return long_span.run(row.track_id, row.ts, row.span_id, row.end_ts, std::int64_t{row.level});
  }
  Status add(const StatRow& row) {
    return stat.run(std::string_view(row.name), text_of(row.severity), row.value,
                    std::string_view(row.description));
  }
  Status add(const KnobChangeRow& row) {
    return knob_change.run(row.ts, row.step_id, std::string_view(row.knob),
                           std::string_view(row.old_value), std::string_view(row.new_value),
                           std::string_view(row.who));
  }
  Status add(const VerdictRow& row) {
    return verdict.run(row.step_id, std::string_view(row.cause), row.share);
  }
  Status add(const ClockRow& row) {
    return clock.run(std::string_view(row.clock), row.ts, row.realtime_ts);
  }
  Status add(const ModeRow& row) {
    return mode.run(row.ts, row.step_id, std::string_view(row.line));
  }
  template <typename Row>
  Status add_all(std::span<const Row> rows) {
    for (const Row& row : rows) RETURN_IF_ERROR(add(row));
    return ok_status();
  }
  template <typename Row>
  Status add_all(const std::vector<Row>& rows) {
    return add_all(std::span<const Row>(rows));
  }

  Status add_derived(std::span<const SpanRow> spans) {
    const std::vector<SpanRun> runs = runs_of(spans);
    RETURN_IF_ERROR(add_all(runs));
    RETURN_IF_ERROR(add_batch(runs));
    lod_batch.clear();
    for (const SpanRun& run : runs)
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
  return statements_->add_all(batch.clocks);
}

Status BatchWriter::write(std::span<const StatRow> stats) { return statements_->add_all(stats); }

}  // namespace sluice::rundb::detail
