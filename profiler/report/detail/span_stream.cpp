#include "profiler/report/detail/span_stream.h"

#include <algorithm>
#include <limits>

#include "profiler/report/detail/cells.h"
#include "storage/rundb/query.h"
#include "storage/rundb/span_reader.h"

namespace sluice::report::detail {
namespace {

constexpr TimeNs kEndOfTime = std::numeric_limits<TimeNs>::max();

}  // namespace

Result<SpanStream> SpanStream::open(rundb::Reader& reader, const RunPart& part,
                                    std::int64_t window_spans) {
  SpanStream stream(reader, part, window_spans);
  RETURN_IF_ERROR(rundb::Query(reader).each_row(
      "SELECT first_id, last_id, ts, end_ts FROM span_run ORDER BY ts, first_id",
      [&stream](std::span<const rundb::Cell> row) -> Status {
        const Run run{integer(row[0]), integer(row[1]), integer(row[2]), integer(row[3])};
        if (run.first_id < 0 || run.last_id < run.first_id) {
          return make_error(ErrorCode::corrupt,
                            "table span_run says that spans {} to {} stand side by "
                            "side; the file is damaged",
                            run.first_id, run.last_id);
        }
        if (!stream.part_.may_have_spans_of(run.ts, run.end_ts)) return ok_status();
        stream.runs_.push_back(run);
        stream.all_count_ += run.count();
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
  read_count_ += static_cast<std::int64_t>(spans.size());
  std::erase_if(spans,
                [this](const rundb::SpanRow& span) { return !part_.has_span(span.ts, span.dur); });
  window_begin_ts_ = end_ts;
  // The last window holds all that is left, whatever the end of a run is said to be.
  const bool is_last = next_run_ == runs_.size();
  std::erase_if(begun_, [&](const Run& run) { return is_last || run.end_ts < end_ts; });
  return true;
}

Status SpanStream::read(std::int64_t first_id, std::int64_t last_id, TimeNs end_ts,
                        std::vector<rundb::SpanRow>& spans) {
  return rundb::SpanReader(*reader_).each_span_of_ids(
      first_id, last_id, window_begin_ts_, end_ts,
      [&spans](const rundb::SpanRow& row) { spans.push_back(row); });
}

double SpanStream::share_done() const {
  return all_count_ == 0 ? 1 : static_cast<double>(read_count_) / static_cast<double>(all_count_);
}

}  // namespace sluice::report::detail
