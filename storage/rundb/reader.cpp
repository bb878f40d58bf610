#include "storage/rundb/reader.h"

#include <filesystem>

#include "storage/rundb/detail/read_connection.h"
#include "storage/rundb/detail/schema.h"

namespace sluice::rundb {

using detail::Connection;
using detail::Statement;

Reader::Reader(std::unique_ptr<detail::ReadConnection> file) : file_(std::move(file)) {}
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
      new Reader(std::make_unique<detail::ReadConnection>(std::move(connection))));
}

Result<Reader::Snapshot> Reader::snapshot() {
  Connection& connection = file_->connection();
  RETURN_IF_ERROR(connection.execute("BEGIN"));
  Snapshot snapshot(*this);
  // BEGIN alone looks at nothing; the first read fixes what is seen.
  ASSIGN_OR_RETURN([[maybe_unused]] const std::int64_t version,
                   connection.query_int64("PRAGMA user_version"));
  return snapshot;
}

void Reader::end_snapshot() {
  (void)file_->connection().execute("COMMIT");  // nothing was written: it cannot lose anything
}

Result<std::vector<MetaRow>> Reader::meta() { return file_->read<MetaRow>("meta"); }
Result<std::vector<StepRow>> Reader::steps() { return file_->read<StepRow>("steps"); }
Result<std::vector<StepRow>> Reader::steps_after(std::int64_t step_id) {
  return file_->read<StepRow>("steps_after", step_id);
}
Result<std::vector<ValidationRow>> Reader::validations() {
  return file_->read<ValidationRow>("validations");
}
Result<std::vector<ModeRow>> Reader::modes() { return file_->read<ModeRow>("modes"); }
Result<std::vector<ClockOffsetRow>> Reader::clock_offsets() {
  return file_->read<ClockOffsetRow>("clock_offsets");
}
Result<std::vector<KnobRow>> Reader::knobs() { return file_->read<KnobRow>("knobs"); }
Result<std::vector<KnobChangeRow>> Reader::knob_changes() {
  return file_->read<KnobChangeRow>("knob_changes");
}
Result<std::vector<LatenessRow>> Reader::lateness() { return file_->read<LatenessRow>("lateness"); }
Result<std::vector<VerdictRow>> Reader::verdicts(std::int64_t first_step) {
  return file_->read<VerdictRow>("verdicts", first_step);
}
Result<std::vector<StatRow>> Reader::stats() { return file_->read<StatRow>("stats"); }
Result<std::vector<StatRow>> Reader::losses() { return file_->read<StatRow>("losses"); }

Result<TimeNs> Reader::stretch_begin() {
  ASSIGN_OR_RETURN(const std::vector<ClockRow> last, file_->read<ClockRow>("last_clock_snapshot"));
  return last.empty() ? 0 : last.front().ts;
}

Result<std::vector<SpanTotals>> Reader::span_totals() {
  return file_->read_from<SpanTotals>("span_totals", [](const Statement& row) {
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
  return file_->read_from<LinkTotals>("link_totals", [](const Statement& row) {
    const std::int64_t bytes_of_ended_steps = row.int64_at(4);
    const std::int64_t step_count = row.int64_at(5);
    return LinkTotals{
        .link = row.text_at(0),
        .direction = row.text_at(1) == kDirectionWords[0] ? Direction::read : Direction::write,
        .bytes = row.int64_at(2),
        .padding_bytes = row.int64_at(3),
        .bytes_per_step_mean = step_count == 0 ? 0.0
                                               : static_cast<double>(bytes_of_ended_steps) /
                                                     static_cast<double>(step_count)};
  });
}

}  // namespace sluice::rundb
