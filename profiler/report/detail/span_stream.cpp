#include "profiler/report/detail/span_stream.h"

#include <algorithm>
#include <limits>

namespace sluice::report::detail {
namespace {

std::int64_t integer(const rundb::Cell& cell) {
  const auto* value = std::get_if<std::int64_t>(&cell);
  return value == nullptr ? -1 : *value;  // NULL: none
}

constexpr TimeNs kEndOfTime = std::numeric_limits<TimeNs>::max();

}  // namespace

Result<SpanStream> SpanStream::open(rundb::Reader& reader, std::int64_t window_spans) {
  SpanStream stream(reader, window_spans);
  RETURN_IF_ERROR(
      reader.each_row("SELECT first_id, last_id, ts, end_ts FROM span_run ORDER BY ts, first_id",
                      [&stream](std::span<const rundb::Cell> row) {
                        stream.runs_.push_back(
                            {integer(row[0]), integer(row[1]), integer(row[2]), integer(row[3])});
                        stream.all_count_ += stream.runs_.back().count();
                        return ok_status();
                      }));
  stream.window_begin_ts_ = std::numeric_limits<TimeNs>::min();
  return stream;
}

Result<bool> SpanStream::next(std::vector<rundb::SpanRow>& spans) {
  spans.clear();
  if (next_run_ == runs_.size() && begun_.empty()) return false;
  std::int64_t count = 0;
  do {
    if (next_run_ == runs_.size()) break;
    count += runs_[next_run_].count();
    begun_.push_back(runs_[next_run_++]);
  } while (count < window_spans_);
  // All of the runs that begin together are in.
  while (next_run_ < runs_.size() && runs_[next_run_].ts == begun_.back().ts)
    begun_.push_back(runs_[next_run_++]);
  const TimeNs end_ts = next_run_ < runs_.size() ? runs_[next_run_].ts : kEndOfTime;

  std::ranges::sort(begun_, {}, &Run::first_id);
  for (std::size_t i = 0; i < begun_.size();) {
    std::size_t last = i;  // neighbours are read as one
    while (last + 1 < begun_.size() && begun_[last + 1].first_id == begun_[last].last_id + 1)
      ++last;
    RETURN_IF_ERROR(read(begun_[i].first_id, begun_[last].last_id, end_ts, spans));
    i = last + 1;
  }
  std::ranges::sort(spans, {},
                    [](const rundb::SpanRow& span) { return std::pair(span.ts, span.id); });
  given_count_ += static_cast<std::int64_t>(spans.size());
  window_begin_ts_ = end_ts;
  std::erase_if(begun_, [end_ts](const Run& run) { return run.end_ts < end_ts; });
  return true;
}

Status SpanStream::read(std::int64_t first_id, std::int64_t last_id, TimeNs end_ts,
                        std::vector<rundb::SpanRow>& spans) {
  const std::string sql = fmt::format(
      "SELECT id, track_id, name_id, submit_ts, ts, dur, step_id, subgroup_id, device_id, layer_id,"
      " bytes, padding_bytes, status FROM span WHERE id BETWEEN {} AND {} AND ts >= {} AND ts < {}",
      first_id, last_id, window_begin_ts_, end_ts);
  return reader_->each_row(sql, [&spans](std::span<const rundb::Cell> row) {
    spans.push_back({.id = integer(row[0]),
                     .track_id = integer(row[1]),
                     .name_id = integer(row[2]),
                     .submit_ts = integer(row[3]),
                     .ts = integer(row[4]),
                     .dur = integer(row[5]),
                     .step_id = integer(row[6]),
                     .subgroup_id = integer(row[7]),
                     .device_id = integer(row[8]),
                     .layer_id = integer(row[9]),
                     .bytes = integer(row[10]),
                     .padding_bytes = integer(row[11]),
                     .status = static_cast<rundb::SpanStatus>(integer(row[12]))});
    return ok_status();
  });
}

double SpanStream::share_done() const {
  return all_count_ == 0 ? 1 : static_cast<double>(given_count_) / static_cast<double>(all_count_);
}

}  // namespace sluice::report::detail
