#pragma once
// The way from a thread that works to the thread that collects: a bounded queue with one producer
// and one consumer. A full ring drops the record and counts it; it never waits, allocates or locks.
//
// Thread contract: try_push from one producer thread, drain from one consumer thread,
// dropped_count and capacity from any.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "profiler/record/record.h"

namespace sluice::record {

class Ring {
 public:
  // In records; rounded up to a power of two. `index` is the ring's in its recorder, for SpanRef.
  explicit Ring(std::size_t capacity, std::uint32_t index = 0);
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  // False: the ring was full, the record is lost and counted.
  bool try_push(const Record& record) noexcept {
    const std::uint64_t tail = tail_.load(std::memory_order_relaxed);
    if (tail - head_seen_ > mask_) {
      head_seen_ = head_.load(std::memory_order_acquire);
      if (tail - head_seen_ > mask_) {
        // Only the producer writes this count: a plain addition, not a locked one.
        dropped_count_.store(dropped_count_.load(std::memory_order_relaxed) + 1,
                             std::memory_order_relaxed);
        return false;
      }
    }
    slots_[tail & mask_] = record;
    tail_.store(tail + 1, std::memory_order_release);
    return true;
  }

  // The same, for a span that flows will refer to; kNoSpan where it was dropped.
  SpanRef try_push_span(const SpanRecord& span) noexcept {
    const std::uint64_t number = tail_.load(std::memory_order_relaxed);
    return try_push(span) ? span_ref(index_, number) : kNoSpan;
  }

  // Appends what is there, oldest first, `at_most` records; returns how many.
  std::size_t drain(std::vector<Record>& into, std::size_t at_most);

  std::size_t capacity() const { return static_cast<std::size_t>(mask_) + 1; }
  std::uint32_t index() const { return index_; }
  std::uint64_t dropped_count() const { return dropped_count_.load(std::memory_order_relaxed); }

 private:
  const std::uint64_t mask_;
  const std::uint32_t index_;
  const std::unique_ptr<Record[]> slots_;  // written once at construction: no page fault in a push

  // Head and tail count records since the start and never wrap (2^64 of them).
  //
  // The producer's line. It keeps the last head it saw and looks again only when the ring seems
  // full: otherwise each push would fetch the line that the consumer has just written. The consumer
  // takes many records a drain, so it needs no such copy of the tail.
  alignas(kCacheLineBytes) std::atomic<std::uint64_t> tail_{0};
  std::uint64_t head_seen_ = 0;
  std::atomic<std::uint64_t> dropped_count_{0};
  // The consumer's line: on one with the tail, each drain would take the line from the producer.
  alignas(kCacheLineBytes) std::atomic<std::uint64_t> head_{0};
};

}  // namespace sluice::record
