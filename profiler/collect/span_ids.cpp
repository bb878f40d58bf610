#include "profiler/collect/span_ids.h"

namespace sluice::collect {

std::uint64_t SpanIds::note_drained(std::uint32_t ring, std::uint64_t count) {
  if (rings_.size() <= ring) rings_.resize(ring + 1);
  const std::uint64_t first_number = rings_[ring].drained_count;
  rings_[ring].drained_count += count;
  return first_number;
}

void SpanIds::note_written(record::SpanRef span, std::int64_t id) {
  std::vector<std::int64_t>& ids = rings_[record::ring_of(span)].ids;
  if (ids.empty()) ids.assign(kRememberedIds, 0);
  ids[record::number_of(span) % kRememberedIds] = id;
}

std::int64_t SpanIds::id_of(record::SpanRef span) const {
  const std::uint32_t ring = record::ring_of(span);
  if (span == record::kNoSpan || ring >= rings_.size() || rings_[ring].ids.empty()) return 0;
  const std::uint64_t number = record::number_of(span);
  const std::uint64_t drained = rings_[ring].drained_count;
  if (number >= drained || drained - number > kRememberedIds) return 0;
  return rings_[ring].ids[number % kRememberedIds];
}

}  // namespace sluice::collect
