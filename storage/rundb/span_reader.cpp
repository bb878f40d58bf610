#include "storage/rundb/span_reader.h"

#include <limits>

#include "storage/rundb/detail/by_begin.h"
#include "storage/rundb/detail/read_connection.h"

namespace sluice::rundb {

Result<std::vector<SpanRow>> SpanReader::spans_between(TimeNs begin, TimeNs end) {
  ASSIGN_OR_RETURN(std::vector<SpanRow> rows, file_->read<SpanRow>("spans_between", begin, end));
  return detail::by_begin(std::move(rows));
}

Status SpanReader::each_span_between(TimeNs begin, TimeNs end, const UseSpan& use_span) {
  return file_->each<SpanRow>("spans_between", use_span, begin, end);
}

Status SpanReader::each_span_of_ids(std::int64_t first_id, std::int64_t last_id, TimeNs begin,
                                    TimeNs end, const UseSpan& use_span) {
  return file_->each<SpanRow>("spans_of_ids", use_span, first_id, last_id, begin, end);
}

Status SpanReader::each_span_of_ids(std::int64_t first_id, std::int64_t last_id,
                                    const UseSpan& use_span) {
  return each_span_of_ids(first_id, last_id, std::numeric_limits<TimeNs>::min(),
                          std::numeric_limits<TimeNs>::max(), use_span);
}

Result<std::vector<NamedSpan>> SpanReader::spans_ended(TimeNs after, TimeNs until) {
  std::vector<NamedSpan> spans;
  const auto named_span_from = [](const detail::Statement& from) {
    return NamedSpan{detail::row_at<SpanRow>(from), from.text_at(kTable<SpanRow>.kColumnCount)};
  };
  const auto keep = [&](NamedSpan&& span) -> Status {
    RETURN_IF_ERROR(file_->check_bounds(span.row));
    spans.push_back(std::move(span));
    return ok_status();
  };
  RETURN_IF_ERROR(file_->each_from("spans_ended", named_span_from, keep, after, until));
  return spans;
}

Result<std::vector<FlowRow>> SpanReader::flows_between(TimeNs begin, TimeNs end) {
  return file_->read<FlowRow>("flows_between", begin, end);
}

Result<std::vector<SpanRow>> SpanReader::causes_of(std::int64_t span_id, std::int64_t count_max) {
  return file_->read<SpanRow>("causes_of_span", span_id, count_max);
}

Result<std::vector<SpanRow>> SpanReader::effects_of(std::int64_t span_id, std::int64_t first_id,
                                                    std::int64_t last_id, std::int64_t count_max) {
  return file_->read<SpanRow>("effects_of_span", span_id, first_id, last_id, count_max);
}

Result<std::vector<CounterRow>> SpanReader::counters_between(TimeNs begin, TimeNs end) {
  return file_->read<CounterRow>("counters_between", begin, end);
}

}  // namespace sluice::rundb
