#include "storage/rundb/writer.h"

#include <time.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "storage/rundb/detail/batch_writer.h"
#include "storage/rundb/detail/connection.h"
#include "storage/rundb/detail/name_tables.h"
#include "storage/rundb/detail/recording_file.h"
#include "storage/rundb/detail/row_io.h"
#include "storage/rundb/detail/sample_tables.h"
#include "storage/rundb/detail/schema.h"
#include "storage/rundb/detail/sql_texts.h"
#include "storage/rundb/detail/writer_lock.h"

namespace sluice::rundb {
namespace {

using detail::Connection;
using detail::Statement;

// Another program may hold the file's lock: one that looks at it with BEGIN EXCLUSIVE, a backup.
// For so long a batch waits, in the thread that records; what finds no room in a ring meanwhile is
// dropped and counted, and the run goes on. The last batch waits less: the run is to end.
constexpr int kPatienceMs = 10'000;
constexpr int kLastPatienceMs = 2'000;

constexpr std::int64_t kAllSteps = std::numeric_limits<std::int64_t>::max();

// Joins the clock of the spans with the calendar, once each time a run begins or goes on.
Status write_clock_snapshot(Connection& connection) {
  timespec realtime;
  const TimeNs ts = monotonic_now_ns();
  clock_gettime(CLOCK_REALTIME, &realtime);
  const TimeNs realtime_ts = TimeNs{realtime.tv_sec} * 1'000'000'000 + realtime.tv_nsec;
  return detail::write_rows<ClockRow>(connection, "insert_clock_snapshot",
                                      std::array{ClockRow{"monotonic", ts, realtime_ts}});
}

// The begin of another stretch of the recording.
Status forget_uncommitted_steps(Connection& connection, detail::BatchWriter& batches,
                                std::int64_t first_step) {
  return connection.transaction([&]() -> Status {
    // Together with what goes: a copy that sees the new stretch sees no row of an old attempt.
    RETURN_IF_ERROR(write_clock_snapshot(connection));
    ASSIGN_OR_RETURN(Statement detach, detail::prepare_write(connection, "detach_spans_from_step"));
    RETURN_IF_ERROR(detach.run(first_step));
    for (const char* sql : {"delete_knob_changes_from", "delete_modes_from", "delete_lateness_from",
                            "delete_verdicts_from", "delete_validations_from"}) {
      ASSIGN_OR_RETURN(Statement erase, detail::prepare_write(connection, sql));
      RETURN_IF_ERROR(erase.run(first_step));
    }
    ASSIGN_OR_RETURN(Statement erase, detail::prepare_write(connection, "delete_steps_from"));
    RETURN_IF_ERROR(erase.run(first_step));
    ASSIGN_OR_RETURN(const std::int64_t redone_count, connection.query_int64("SELECT changes()"));
    if (redone_count == 0) return ok_status();
    return batches.write(std::array{StatRow{
        "steps_redone", Severity::info, redone_count,
        "steps that had run but were not committed when the run stopped, and ran again after the "
        "resume; spans of the first attempt have no step"}});
  });
}

// Steps that ended between the last batch and a kill have no rows: the file says how many they
// were.
Status count_unrecorded_steps(Connection& connection, detail::BatchWriter& batches,
                              std::int64_t first_step) {
  return connection.transaction([&]() -> Status {
    ASSIGN_OR_RETURN(const std::int64_t recorded,
                     connection.query_int64("SELECT count(*) FROM step"));
    ASSIGN_OR_RETURN(
        const std::int64_t counted,
        connection.query_int64(
            "SELECT coalesce(sum(value), 0) FROM stat WHERE name = 'steps_not_recorded'"));
    const std::int64_t missing_count = first_step - recorded - counted;
    if (missing_count <= 0) return ok_status();
    return batches.write(std::array{StatRow{
        "steps_not_recorded", Severity::loss, missing_count,
        "steps that were committed and have no rows here: the run was killed before its last batch "
        "was written, or another file recorded them"}});
  });
}

}  // namespace

struct Writer::Impl {
  // Destroyed from the last to the first: the lock is held until the connection is closed.
  detail::WriterLock lock;
  Connection connection;
  detail::NameTables names;
  std::optional<detail::BatchWriter> batches;
  std::optional<detail::SampleWriter> samples;  // from the first sample on
  Retention retention;
  std::int64_t thinned_steps = 0;
  std::int64_t steps_since_thinned = 0;
  std::int64_t next_span_id = 1;
  std::vector<SpanRow> spans_with_ids;  // of a batch that left that to us; reused
  Status status;                        // the first error; recording has stopped with it
  bool closed = false;

  Impl(detail::WriterLock held_lock, Connection open_connection)
      : lock(std::move(held_lock)), connection(std::move(open_connection)) {}

  Status begin_recording(ClockOf clock_of) {
    RETURN_IF_ERROR(detail::prepare_for_recording(connection));
    connection.set_busy_timeout_ms(kPatienceMs);
    if (clock_of == ClockOf::this_machine) RETURN_IF_ERROR(write_clock_snapshot(connection));
    ASSIGN_OR_RETURN(names, detail::NameTables::load(connection));
    ASSIGN_OR_RETURN(const std::int64_t last_span_id,
                     connection.query_int64(detail::read_sql("last_span_id")));
    next_span_id = last_span_id + 1;
    ASSIGN_OR_RETURN(thinned_steps,
                     connection.query_int64(
                         "SELECT coalesce(sum(value), 0) FROM stat WHERE name = 'steps_thinned'"));
    ASSIGN_OR_RETURN(batches, detail::BatchWriter::prepare(connection));
    return ok_status();
  }

  // One transaction, with the names that it needs in front. The first failure stays.
  template <typename Change>
  Status commit(Change&& change) {
    CHECK(!closed);
    if (!status.ok()) return status;
    status = connection.transaction([&]() -> Status {
      RETURN_IF_ERROR(names.write_new(connection));
      return change();
    });
    if (status.ok()) names.forget_new();
    return status;
  }

  Status write_facts(const Facts& facts) {
    using detail::write_rows;
    RETURN_IF_ERROR(write_rows<MetaRow>(connection, "insert_meta", facts.meta));
    RETURN_IF_ERROR(write_rows<DeviceRow>(connection, "insert_device", facts.devices));
    RETURN_IF_ERROR(write_links(facts.links));
    RETURN_IF_ERROR(write_rows<StageRow>(connection, "insert_stage", facts.stages));
    RETURN_IF_ERROR(write_rows<SubgroupRow>(connection, "insert_subgroup", facts.subgroups));
    return write_rows<KnobRow>(connection, "insert_knob", facts.knobs);
  }

  // Ids of links are the file's own: those of a run that goes on may stand for others.
  Status write_links(const std::vector<LinkRow>& links) {
    ASSIGN_OR_RETURN(Statement insert, detail::prepare_write(connection, "insert_link"));
    ASSIGN_OR_RETURN(Statement find, connection.prepare(detail::read_sql("link_id_of")));
    for (const LinkRow& row : links) {
      RETURN_IF_ERROR(detail::write_row(insert, row));
      RETURN_IF_ERROR(detail::bind_row(find, 1, row));
      ASSIGN_OR_RETURN([[maybe_unused]] const bool has_row, find.step());
      names.set_link_id(row.id, find.int64_at(0));
      RETURN_IF_ERROR(find.reset());
    }
    return ok_status();
  }

  std::span<const SpanRow> with_ids(std::span<const SpanRow> spans) {
    if (spans.empty()) return spans;
    const std::int64_t first_id = std::exchange(next_span_id, next_span_id + std::ssize(spans));
    if (spans.front().id > 0) {
      CHECK_EQ(spans.front().id, first_id);
      return spans;
    }
    spans_with_ids.assign(spans.begin(), spans.end());
    for (std::int64_t i = 0; SpanRow & span : spans_with_ids) span.id = first_id + i++;
    return spans_with_ids;
  }

  Status write_samples(const SampleRows& rows) {
    if (rows.is_empty()) return ok_status();
    if (!samples) {
      ASSIGN_OR_RETURN(samples, detail::SampleWriter::prepare(connection));
    }
    return samples->write(rows);
  }

  // Thins when there are steps for it, not each batch: a tenth more than is asked for is kept
  // meanwhile.
  Status thin() {
    if (steps_since_thinned == 0) return ok_status();
    std::int64_t keep = retention.full_steps > 0 ? retention.full_steps : kAllSteps;
    if (retention.size_bytes > 0) {
      ASSIGN_OR_RETURN(const std::int64_t used, used_bytes());
      if (used > retention.size_bytes / 10 * 9) {
        ASSIGN_OR_RETURN(const std::int64_t full, full_step_count());
        keep = std::min(keep, std::max<std::int64_t>(1, full / 2));
      }
    }
    if (keep == kAllSteps) return ok_status();
    ASSIGN_OR_RETURN(const std::int64_t full, full_step_count());
    if (full <= keep + keep / 10) return ok_status();
    steps_since_thinned = 0;
    return thin_to(keep, full - keep);
  }

  Result<std::int64_t> used_bytes() {
    ASSIGN_OR_RETURN(const std::int64_t pages, connection.query_int64("PRAGMA page_count"));
    ASSIGN_OR_RETURN(const std::int64_t free, connection.query_int64("PRAGMA freelist_count"));
    ASSIGN_OR_RETURN(const std::int64_t page_bytes, connection.query_int64("PRAGMA page_size"));
    return (pages - free) * page_bytes;
  }

  Result<std::int64_t> full_step_count() {
    ASSIGN_OR_RETURN(const std::int64_t steps, connection.query_int64("SELECT count(*) FROM step"));
    return steps - thinned_steps;
  }

  Status thin_to(std::int64_t keep, std::int64_t fewer) {
    ASSIGN_OR_RETURN(Statement begin, connection.prepare(detail::read_sql("step_begin")));
    RETURN_IF_ERROR(begin.bind_all(keep - 1));
    ASSIGN_OR_RETURN(const bool has_step, begin.step());
    if (!has_step) return ok_status();
    const TimeNs from_ts = begin.int64_at(0);
    RETURN_IF_ERROR(begin.reset());
    ASSIGN_OR_RETURN(Statement last,
                     connection.prepare(detail::read_sql("last_span_ended_before")));
    RETURN_IF_ERROR(last.bind_all(std::int64_t{from_ts}));
    ASSIGN_OR_RETURN([[maybe_unused]] const bool has_row, last.step());
    const std::int64_t last_id = last.int64_at(0);
    RETURN_IF_ERROR(last.reset());
    for (const char* sql : {"delete_flows_before", "delete_spans_before", "delete_runs_before",
                            "delete_batches_before"}) {
      ASSIGN_OR_RETURN(Statement erase, detail::prepare_write(connection, sql));
      RETURN_IF_ERROR(erase.run(last_id));
    }
    for (const char* sql : {"delete_long_spans_before", "delete_counters_before"}) {
      ASSIGN_OR_RETURN(Statement erase, detail::prepare_write(connection, sql));
      RETURN_IF_ERROR(erase.run(std::int64_t{from_ts}));
    }
    ASSIGN_OR_RETURN(Statement erase, detail::prepare_write(connection, "delete_lod_before"));
    RETURN_IF_ERROR(erase.run(std::int64_t{from_ts}, std::int64_t{kKeptLodLevel}));
    if (samples) RETURN_IF_ERROR(samples->delete_before(from_ts));
    thinned_steps += fewer;
    return batches->write(std::array{StatRow{
        "steps_thinned", Severity::info, fewer,
        "steps whose spans, flows and counters were removed to keep the file as small as was asked "
        "for; their rows in table step are here"}});
  }

  Status write_last_words(std::span<const StatRow> last_stats) {
    lock.release_space();
    connection.set_busy_timeout_ms(kLastPatienceMs);
    return connection.transaction([&]() -> Status {
      RETURN_IF_ERROR(batches->write(last_stats));
      if (status.ok()) return ok_status();
      return batches->write(
          std::array{StatRow{"recording_stopped", Severity::error, 1,
                             "recording stopped before the run did: " + status.error().message()}});
    });
  }
};

Writer::Writer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Writer::~Writer() {
  if (!impl_->closed) (void)close();
}

const std::string& Writer::path() const { return impl_->connection.path(); }

Status Writer::check_path(const std::string& path) { return detail::check_is_ours(path); }

Result<std::unique_ptr<Writer>> Writer::create(const std::string& path, IfExists if_exists,
                                               ClockOf clock_of) {
  ASSIGN_OR_RETURN(detail::WriterLock lock, detail::WriterLock::acquire(path));
  std::error_code error;
  if (std::filesystem::exists(path, error)) {
    if (if_exists == IfExists::refuse)
      return make_error(ErrorCode::config,
                        "{}: exists; name another file with --db, or go on with it with --resume",
                        path);
    RETURN_IF_ERROR(detail::remove_database(path));
  }
  ASSIGN_OR_RETURN(Connection connection, Connection::open(path, Connection::Mode::create));
  // Before the write-ahead log is on: from here on the file itself says what it is.
  RETURN_IF_ERROR(detail::create_schema(connection));
  auto impl = std::make_unique<Impl>(std::move(lock), std::move(connection));
  RETURN_IF_ERROR(impl->begin_recording(clock_of));
  return std::unique_ptr<Writer>(new Writer(std::move(impl)));
}

Result<std::unique_ptr<Writer>> Writer::open_append(const std::string& path,
                                                    std::int64_t first_step) {
  std::error_code error;
  if (!std::filesystem::exists(path, error))
    return make_error(ErrorCode::not_found,
                      "{}: there is no run database to go on with; without --resume one is created",
                      path);
  ASSIGN_OR_RETURN(detail::WriterLock lock, detail::WriterLock::acquire(path));
  ASSIGN_OR_RETURN(Connection connection, Connection::open(path, Connection::Mode::write));
  RETURN_IF_ERROR(detail::check_schema(connection));
  auto impl = std::make_unique<Impl>(std::move(lock), std::move(connection));
  RETURN_IF_ERROR(impl->begin_recording(ClockOf::the_batches));
  RETURN_IF_ERROR(forget_uncommitted_steps(impl->connection, *impl->batches, first_step));
  RETURN_IF_ERROR(count_unrecorded_steps(impl->connection, *impl->batches, first_step));
  return std::unique_ptr<Writer>(new Writer(std::move(impl)));
}

void Writer::set_retention(const Retention& retention) { impl_->retention = retention; }

std::int64_t Writer::next_span_id() const { return impl_->next_span_id; }

std::int64_t Writer::string_id(std::string_view text) { return impl_->names.string_id(text); }

std::int64_t Writer::track_id(std::optional<std::int64_t> parent_id, std::string_view kind,
                              std::string_view name, std::span<const TrackLink> links) {
  return impl_->names.track_id(parent_id, kind, name, links);
}

Status Writer::write_facts(const Facts& facts) {
  return impl_->commit([&] { return impl_->write_facts(facts); });
}

Status Writer::append(const Batch& batch) {
  return impl_->commit([&]() -> Status {
    RETURN_IF_ERROR(impl_->batches->write(batch, impl_->with_ids(batch.spans)));
    RETURN_IF_ERROR(impl_->write_samples(batch.samples));
    impl_->steps_since_thinned += std::ssize(batch.steps);
    return impl_->thin();
  });
}

Status Writer::close(std::span<const StatRow> last_stats) {
  CHECK(!impl_->closed);
  impl_->closed = true;
  Status last_words = impl_->write_last_words(last_stats);
  impl_->batches.reset();
  impl_->samples.reset();
  Status folded = detail::fold_log(impl_->connection);
  if (!impl_->status.ok()) return impl_->status;
  return last_words.ok() ? folded : last_words;
}

}  // namespace sluice::rundb
