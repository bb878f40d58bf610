#include "soft/accelerator/ordering.h"

namespace sluice::soft_accelerator {

std::optional<Access> AccessHistory::conflict(ByteRange range, AccessKind kind,
                                              const Clock& clock) const {
  auto at = segments_.upper_bound(range.begin);
  if (at != segments_.begin()) --at;
  for (; at != segments_.end() && at->first < range.end; ++at) {
    const Segment& segment = at->second;
    if (segment.end <= range.begin) continue;
    if (segment.writer && !clock.knows(*segment.writer))
      return Access{*segment.writer, AccessKind::write};
    if (kind == AccessKind::read) continue;
    for (const StreamTicket& reader : segment.readers)
      if (!clock.knows(reader)) return Access{reader, AccessKind::read};
  }
  return std::nullopt;
}

void AccessHistory::add(ByteRange range, AccessKind kind, StreamTicket job) {
  if (range.begin >= range.end) return;
  split_at(range.begin);
  split_at(range.end);
  if (kind == AccessKind::write) {
    segments_.erase(segments_.lower_bound(range.begin), segments_.lower_bound(range.end));
    segments_[range.begin] = {range.end, job, {}};
    return;
  }
  fill_gaps(range);
  for (auto at = segments_.lower_bound(range.begin); at != segments_.end() && at->first < range.end;
       ++at) {
    std::vector<StreamTicket>& readers = at->second.readers;
    const auto same = std::find_if(readers.begin(), readers.end(), [&](const StreamTicket& reader) {
      return reader.stream == job.stream;
    });
    if (same == readers.end())
      readers.push_back(job);
    else
      *same = job;
  }
}

void AccessHistory::split_at(std::uintptr_t address) {
  auto at = segments_.upper_bound(address);
  if (at == segments_.begin()) return;
  --at;
  if (at->first == address || at->second.end <= address) return;
  Segment later = at->second;
  at->second.end = address;
  segments_.emplace(address, std::move(later));
}

void AccessHistory::fill_gaps(ByteRange range) {
  std::uintptr_t next = range.begin;
  auto at = segments_.lower_bound(range.begin);
  while (next < range.end) {
    const bool is_last = at == segments_.end() || at->first >= range.end;
    const std::uintptr_t until = is_last ? range.end : at->first;
    if (next < until) segments_[next] = {until, std::nullopt, {}};
    if (is_last) return;
    next = at->second.end;
    ++at;
  }
}

}  // namespace sluice::soft_accelerator
