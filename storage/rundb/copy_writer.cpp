#include "storage/rundb/copy_writer.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "base/units.h"
#include "storage/rundb/detail/batch_writer.h"
#include "storage/rundb/detail/recording_file.h"
#include "storage/rundb/detail/row_io.h"
#include "storage/rundb/detail/sample_tables.h"
#include "storage/rundb/detail/schema.h"
#include "storage/rundb/detail/writer_lock.h"
#include "storage/rundb/lod.h"

namespace sluice::rundb {
namespace {

using detail::Connection;
using detail::Statement;

constexpr const char* kFollowedTable =
    "CREATE TABLE followed (at INTEGER PRIMARY KEY, number INTEGER NOT NULL) STRICT";
constexpr int kFollowedPatienceMs = 10'000;

// A span adds a row to each bin of the coarsest level that it touches. Those of one piece may touch
// so many: together 4 years, in pieces of a tenth of a second to some seconds.
constexpr std::int64_t kCoarseBinsMax = 1 << 16;

Status check_spans(std::span<const SpanRow> spans, std::int64_t last_id) {
  std::int64_t bins = 0;
  for (const SpanRow& span : spans) {
    if (span.id <= last_id || span.id > kAmountMax) {
      return make_error(ErrorCode::corrupt, "span {} comes behind span {}: ids ascend", span.id,
                        last_id);
    }
    last_id = span.id;
    bins += span.dur >> lod_shift(kLodLevels - 1);
  }
  if (bins <= kCoarseBinsMax) return ok_status();
  return make_error(ErrorCode::corrupt, "spans up to {} are longer than those of any run", last_id);
}

// Those whose ids follow each other: what a batch of a writer is.
std::span<const SpanRow> first_stretch(std::span<const SpanRow> spans) {
  std::size_t count = 1;
  while (count < spans.size() && spans[count].id == spans[count - 1].id + 1) ++count;
  return spans.first(std::min(count, spans.size()));
}

Result<bool> is_copy(Connection& connection) {
  ASSIGN_OR_RETURN(const std::int64_t count,
                   connection.query_int64("SELECT count(*) FROM sqlite_schema WHERE type = 'table' "
                                          "AND name = 'followed'"));
  return count == 1;
}

Error no_copy(const std::string& path) {
  return make_error(ErrorCode::config,
                    "{}: is there and is no copy that follows a run, so it is left as it is; name "
                    "another file",
                    path);
}

}  // namespace

struct CopyWriter::Impl {
  // Destroyed from the last to the first: the lock is held until the connection is closed.
  detail::WriterLock lock;
  Connection connection;
  std::optional<detail::BatchWriter> batches;
  std::int64_t size_bytes_max;
  CopyCursor cursor;
  std::int64_t last_span_id = 0;
  bool closed = false;

  Impl(detail::WriterLock held_lock, Connection open_connection, std::int64_t size_max)
      : lock(std::move(held_lock)),
        connection(std::move(open_connection)),
        size_bytes_max(size_max) {}

  Status begin() {
    RETURN_IF_ERROR(detail::prepare_for_recording(connection));
    connection.set_busy_timeout_ms(kFollowedPatienceMs);
    ASSIGN_OR_RETURN(last_span_id, connection.query_int64(detail::read_sql("last_span_id")));
    ASSIGN_OR_RETURN(batches, detail::BatchWriter::prepare(connection));
    return read_cursor();
  }

  Status read_cursor() {
    ASSIGN_OR_RETURN(Statement statement,
                     connection.prepare("SELECT number FROM followed ORDER BY at"));
    std::vector<std::int64_t> numbers;
    while (true) {
      ASSIGN_OR_RETURN(const bool has_row, statement.step());
      if (!has_row) break;
      numbers.push_back(statement.int64_at(0));
    }
    // A copy of another version, or one in which nothing was written, begins anew.
    cursor = cursor_of(numbers).value_or(CopyCursor());
    return ok_status();
  }

  Status write_cursor(const CopyCursor& next) {
    ASSIGN_OR_RETURN(Statement insert,
                     connection.prepare("INSERT OR REPLACE INTO followed VALUES (?, ?)"));
    std::int64_t at = 0;
    for (const std::int64_t number : numbers_of(next)) RETURN_IF_ERROR(insert.run(at++, number));
    return ok_status();
  }

  Status check_size() {
    ASSIGN_OR_RETURN(const std::int64_t pages, connection.query_int64("PRAGMA page_count"));
    ASSIGN_OR_RETURN(const std::int64_t page_bytes, connection.query_int64("PRAGMA page_size"));
    if (pages <= size_bytes_max / page_bytes) return ok_status();
    return make_error(ErrorCode::config,
                      "{}: the copy would be larger than {}, which is as large as it may get; "
                      "allow more with --size-max",
                      connection.path(), format_bytes(size_bytes_max));
  }

  Status write(std::span<const CopiedPiece> pieces, const CopyCursor& next) {
    const std::int64_t last_before = last_span_id;
    const Status written = connection.transaction([&]() -> Status {
      for (const CopiedPiece& piece : pieces) {
        RETURN_IF_ERROR(write_piece(piece));
        RETURN_IF_ERROR(check_size());
      }
      return write_cursor(next);
    });
    if (!written.ok()) {
      last_span_id = last_before;
      return written;
    }
    cursor = next;
    return written;
  }

  Status write_piece(const CopiedPiece& piece) {
    ASSIGN_OR_RETURN(const CopiedRows rows, rows_of(piece));
    if (is_sample_table(piece.table)) RETURN_IF_ERROR(detail::make_sample_tables(connection));
    if (piece.replaces) RETURN_IF_ERROR(empty_table(piece.table));
    return std::visit([this](const auto& all) { return write_rows(all); }, rows);
  }

  // Names, operations and what leads to them are never taken back within a recording.
  Status empty_table(std::size_t table) {
    const std::string_view name = copied_table_name(table);
    if (table >= kFirstGrowing && name != kTable<StepRow>.name) {
      return make_error(ErrorCode::corrupt, "table {} is to be replaced, and it only grows", name);
    }
    return connection.execute(fmt::format("DELETE FROM {}", name));
  }

  Status write_rows(const std::vector<SpanRow>& rows) {
    RETURN_IF_ERROR(check_spans(rows, last_span_id));
    for (std::span<const SpanRow> left = rows; !left.empty();) {
      const std::span<const SpanRow> spans = first_stretch(left);
      RETURN_IF_ERROR(batches->write({}, spans));
      last_span_id = spans.back().id;
      left = left.subspan(spans.size());
    }
    return ok_status();
  }

  // What a batch of a recording has is written as one.
  Status write_rows(const std::vector<StepRow>& rows) { return write_batch(&Batch::steps, rows); }
  Status write_rows(const std::vector<FlowRow>& rows) { return write_batch(&Batch::flows, rows); }
  Status write_rows(const std::vector<CounterRow>& rows) {
    return write_batch(&Batch::counters, rows);
  }
  Status write_rows(const std::vector<StatRow>& rows) { return write_batch(&Batch::stats, rows); }
  Status write_rows(const std::vector<KnobChangeRow>& rows) {
    return write_batch(&Batch::knob_changes, rows);
  }
  Status write_rows(const std::vector<VerdictRow>& rows) {
    return write_batch(&Batch::verdicts, rows);
  }
  Status write_rows(const std::vector<ClockRow>& rows) { return write_batch(&Batch::clocks, rows); }
  Status write_rows(const std::vector<ClockOffsetRow>& rows) {
    return write_batch(&Batch::clock_offsets, rows);
  }
  Status write_rows(const std::vector<ModeRow>& rows) { return write_batch(&Batch::modes, rows); }
  Status write_rows(const std::vector<LatenessRow>& rows) {
    return write_batch(&Batch::lateness, rows);
  }
  Status write_rows(const std::vector<ValidationRow>& rows) {
    return write_batch(&Batch::validations, rows);
  }
  template <typename Row>
  Status write_batch(std::vector<Row> Batch::* member, const std::vector<Row>& rows) {
    Batch batch;
    batch.*member = rows;
    return batches->write(batch, {});
  }

  // The others by a statement of their own.
  template <typename Row>
  Status write_rows(const std::vector<Row>& rows) {
    const std::string insert = fmt::format("insert_{}", kTable<Row>.name);
    return detail::write_rows<Row>(connection, insert, rows);
  }
};

CopyWriter::CopyWriter(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

CopyWriter::~CopyWriter() {
  if (!impl_->closed) (void)close();
}

const std::string& CopyWriter::path() const { return impl_->connection.path(); }
const CopyCursor& CopyWriter::cursor() const { return impl_->cursor; }

Result<std::unique_ptr<CopyWriter>> CopyWriter::create(const std::string& path,
                                                       std::int64_t size_bytes_max) {
  std::error_code error;
  if (std::filesystem::exists(path, error)) {
    ASSIGN_OR_RETURN(std::unique_ptr<CopyWriter> there, open(path, size_bytes_max));
    RETURN_IF_ERROR(there->close());
  }
  ASSIGN_OR_RETURN(detail::WriterLock lock, detail::WriterLock::acquire(path));
  RETURN_IF_ERROR(detail::remove_database(path));
  ASSIGN_OR_RETURN(Connection connection, Connection::open(path, Connection::Mode::create));
  RETURN_IF_ERROR(detail::create_schema(connection));
  RETURN_IF_ERROR(connection.execute(kFollowedTable));
  auto impl = std::make_unique<Impl>(std::move(lock), std::move(connection), size_bytes_max);
  RETURN_IF_ERROR(impl->begin());
  return std::unique_ptr<CopyWriter>(new CopyWriter(std::move(impl)));
}

Result<std::unique_ptr<CopyWriter>> CopyWriter::open(const std::string& path,
                                                     std::int64_t size_bytes_max) {
  std::error_code error;
  if (!std::filesystem::exists(path, error))
    return make_error(ErrorCode::not_found, "{}: there is no copy to go on with", path);
  if (!std::filesystem::is_regular_file(path, error)) return no_copy(path);
  ASSIGN_OR_RETURN(const bool is_ours, detail::is_run_database_file(path));
  if (!is_ours) return no_copy(path);
  ASSIGN_OR_RETURN(detail::WriterLock lock, detail::WriterLock::acquire(path));
  ASSIGN_OR_RETURN(Connection connection, Connection::open(path, Connection::Mode::write));
  RETURN_IF_ERROR(detail::check_schema(connection));
  ASSIGN_OR_RETURN(const bool is_a_copy, is_copy(connection));
  if (!is_a_copy) return no_copy(path);
  auto impl = std::make_unique<Impl>(std::move(lock), std::move(connection), size_bytes_max);
  RETURN_IF_ERROR(impl->begin());
  return std::unique_ptr<CopyWriter>(new CopyWriter(std::move(impl)));
}

Status CopyWriter::write(std::span<const CopiedPiece> pieces, const CopyCursor& cursor) {
  return impl_->write(pieces, cursor);
}

Status CopyWriter::close() {
  impl_->closed = true;
  impl_->batches.reset();
  impl_->lock.release_space();
  return detail::fold_log(impl_->connection);
}

}  // namespace sluice::rundb
