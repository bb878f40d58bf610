#include "storage/rundb/detail/sample_tables.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "storage/rundb/detail/row_io.h"
#include "storage/rundb/detail/schema.h"

namespace sluice::rundb::detail {

Result<bool> has_sample_tables(Connection& connection) {
  ASSIGN_OR_RETURN(const std::vector<SchemaEntity> wanted, sample_tables_of_sluice());
  ASSIGN_OR_RETURN(const std::vector<SchemaEntity> found, entities_of(connection));
  std::size_t count = 0;
  for (const SchemaEntity& table : wanted) {
    const auto same_name = std::ranges::find(found, table.name, &SchemaEntity::name);
    if (same_name == found.end()) continue;
    if (*same_name != table)
      return make_error(ErrorCode::corrupt,
                        "{}: its {} '{}' is not as Sluice makes it: another program changed the "
                        "file, or made it",
                        connection.path(), same_name->type, table.name);
    ++count;
  }
  if (count == 0 || count == wanted.size()) return count > 0;
  return make_error(ErrorCode::corrupt,
                    "{}: has some of the tables of processor samples, and not all: another program "
                    "changed the file",
                    connection.path());
}

Status make_sample_tables(Connection& connection) {
  ASSIGN_OR_RETURN(const bool has_tables, has_sample_tables(connection));
  return has_tables ? ok_status() : connection.execute(sample_tables_sql());
}

struct SampleWriter::Statements {
  Statement thread;
  Statement function;
  Statement call;
  Statement sample;
  Statement time;
  Statement delete_samples;
  Statement delete_times;
  // What ids of this stretch of the recording are counted from.
  std::int64_t thread_base = 0;
  std::int64_t function_base = 0;
  std::int64_t call_base = 0;
};

SampleWriter::SampleWriter(std::unique_ptr<Statements> statements)
    : statements_(std::move(statements)) {}
SampleWriter::SampleWriter(SampleWriter&&) noexcept = default;
SampleWriter& SampleWriter::operator=(SampleWriter&&) noexcept = default;
SampleWriter::~SampleWriter() = default;

Result<SampleWriter> SampleWriter::prepare(Connection& connection) {
  RETURN_IF_ERROR(make_sample_tables(connection));
  ASSIGN_OR_RETURN(Statement thread, prepare_write(connection, "insert_sampled_thread"));
  ASSIGN_OR_RETURN(Statement function, prepare_write(connection, "insert_sampled_function"));
  ASSIGN_OR_RETURN(Statement call, prepare_write(connection, "insert_call"));
  ASSIGN_OR_RETURN(Statement sample, prepare_write(connection, "insert_call_sample"));
  ASSIGN_OR_RETURN(Statement time, prepare_write(connection, "insert_processor_time"));
  ASSIGN_OR_RETURN(Statement delete_samples,
                   prepare_write(connection, "delete_call_samples_before"));
  ASSIGN_OR_RETURN(Statement delete_times,
                   prepare_write(connection, "delete_processor_times_before"));
  ASSIGN_OR_RETURN(Statement last, connection.prepare(read_sql("last_sample_ids")));
  ASSIGN_OR_RETURN([[maybe_unused]] const bool has_row, last.step());
  return SampleWriter(
      std::make_unique<Statements>(Statements{.thread = std::move(thread),
                                              .function = std::move(function),
                                              .call = std::move(call),
                                              .sample = std::move(sample),
                                              .time = std::move(time),
                                              .delete_samples = std::move(delete_samples),
                                              .delete_times = std::move(delete_times),
                                              .thread_base = last.int64_at(0),
                                              .function_base = last.int64_at(1),
                                              .call_base = last.int64_at(2)}));
}

Status SampleWriter::write(const SampleRows& rows) {
  Statements& to = *statements_;
  for (SampledThreadRow row : rows.threads) {
    row.id += to.thread_base;
    RETURN_IF_ERROR(write_row(to.thread, row));
  }
  for (SampledFunctionRow row : rows.functions) {
    row.id += to.function_base;
    RETURN_IF_ERROR(write_row(to.function, row));
  }
  for (CallRow row : rows.calls) {
    row.id += to.call_base;
    if (row.caller_id >= 0) row.caller_id += to.call_base;
    row.function_id += to.function_base;
    RETURN_IF_ERROR(write_row(to.call, row));
  }
  for (CallSampleRow row : rows.samples) {
    row.thread_id += to.thread_base;
    row.call_id += to.call_base;
    RETURN_IF_ERROR(write_row(to.sample, row));
  }
  for (ProcessorTimeRow row : rows.times) {
    row.thread_id += to.thread_base;
    RETURN_IF_ERROR(write_row(to.time, row));
  }
  return ok_status();
}

Status SampleWriter::delete_before(TimeNs ts) {
  RETURN_IF_ERROR(statements_->delete_samples.run(std::int64_t{ts}));
  return statements_->delete_times.run(std::int64_t{ts});
}

}  // namespace sluice::rundb::detail
