#include "profiler/collect/batch_rows.h"

#include <algorithm>
#include <numeric>

namespace sluice::collect {
namespace {

static_assert(static_cast<int>(record::SpanStatus::ok) == static_cast<int>(rundb::SpanStatus::ok));
static_assert(static_cast<int>(record::SpanStatus::failed) ==
              static_cast<int>(rundb::SpanStatus::failed));
static_assert(static_cast<int>(record::SpanStatus::cancelled) ==
              static_cast<int>(rundb::SpanStatus::cancelled));

rundb::StepRow row_from(const record::StepRecord& step) {
  return {.id = step.step,
          .ts = step.ts,
          .dur = step.dur,
          .loss = step.loss,
          .grad_norm = step.grad_norm,
          .loss_scale = step.loss_scale,
          .lr = step.lr,
          .tokens = step.tokens,
          .skipped = step.skipped};
}

rundb::SpanRow row_from(const record::SpanRecord& span, const DatabaseIds& ids) {
  return {.track_id = ids.of(span.track),
          .name_id = ids.of(span.name),
          .submit_ts = span.submit_ts,
          .ts = span.ts,
          .dur = span.dur,
          .step_id = span.step,
          .subgroup_id = span.subgroup,
          .device_id = span.device,
          .layer_id = span.layer,
          .bytes = span.bytes,
          .padding_bytes = span.padding_bytes,
          .status = static_cast<rundb::SpanStatus>(span.status)};
}

rundb::CounterRow row_from(const record::CounterRecord& counter, const DatabaseIds& ids) {
  return {ids.of(counter.track), counter.ts, counter.value};
}

}  // namespace

void BatchRows::clear() {
  batch_.steps.clear();
  batch_.spans.clear();
  batch_.counters.clear();
  batch_.flows.clear();
  span_refs_.clear();
  flows_.clear();
}

void BatchRows::add(const DrainedRecords& drained) {
  std::uint64_t number = drained.first_number;
  for (const record::Record& record : drained.records) {
    switch (record.kind()) {
      case record::RecordKind::step:
        batch_.steps.push_back(row_from(record.step));
        break;
      case record::RecordKind::span:
        batch_.spans.push_back(row_from(record.span, ids_));
        span_refs_.push_back(record::span_ref(drained.ring, number));
        break;
      case record::RecordKind::counter:
        batch_.counters.push_back(row_from(record.counter, ids_));
        break;
      case record::RecordKind::flow:
        flows_.push_back(record.flow);
        break;
    }
    number += 1;
  }
}

void BatchRows::add(const OwnRecords& own) {
  for (const record::SpanRecord& span : own.spans()) {
    batch_.spans.push_back(row_from(span, ids_));
    span_refs_.push_back(record::kNoSpan);
  }
  for (const record::CounterRecord& counter : own.counters())
    batch_.counters.push_back(row_from(counter, ids_));
}

void BatchRows::finish(std::int64_t first_id) {
  order_spans();
  number_spans(first_id);
  add_flows();
}

// By track, which takes a count of each; then by time, which most are in already.
void BatchRows::order_spans() {
  const auto track_of = [](const rundb::SpanRow& span) {
    return static_cast<std::size_t>(span.track_id);
  };
  track_begins_.assign(static_cast<std::size_t>(ids_.last_track_id()) + 2, 0);
  for (const rundb::SpanRow& span : batch_.spans) ++track_begins_[track_of(span)];
  std::partial_sum(track_begins_.begin(), track_begins_.end(), track_begins_.begin());
  // Those were the ends. From the last span to the first, each end moves to its track's begin.
  order_.resize(batch_.spans.size());
  for (std::size_t i = batch_.spans.size(); i-- > 0;)
    order_[--track_begins_[track_of(batch_.spans[i])]] = {batch_.spans[i].ts, i};
  for (std::size_t t = 0; t + 1 < track_begins_.size(); ++t) {
    const std::span track =
        std::span(order_).subspan(track_begins_[t], track_begins_[t + 1] - track_begins_[t]);
    if (!std::ranges::is_sorted(track)) std::ranges::sort(track);
  }
}

void BatchRows::number_spans(std::int64_t first_id) {
  std::int64_t id = first_id;
  ordered_spans_.clear();
  for (const SpanPlace& place : order_) {
    ordered_spans_.push_back(batch_.spans[place.index]);
    ordered_spans_.back().id = id;
    if (const record::SpanRef ref = span_refs_[place.index]; ref != record::kNoSpan)
      span_ids_.note_written(ref, id);
    ++id;
  }
  batch_.spans.swap(ordered_spans_);
}

void BatchRows::add_flows() {
  for (const record::FlowRecord& flow : flows_) {
    const rundb::FlowRow row{span_ids_.id_of(flow.from), span_ids_.id_of(flow.to)};
    // One end may have been dropped by a full ring, which counted it.
    if (row.from_span != 0 && row.to_span != 0) batch_.flows.push_back(row);
  }
}

}  // namespace sluice::collect
