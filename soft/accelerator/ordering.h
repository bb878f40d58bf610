#pragma once
// The order of accesses, reckoned with vector clocks when work is enqueued, so that an answer
// depends on the program and never on how fast a thread was.
//
// Thread contract: plain values; accelerator.h's lock guards them.

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace sluice::soft_accelerator {

// Job number `ticket` (1-based) of a stream.
struct StreamTicket {
  int stream = 0;
  std::uint64_t ticket = 0;
  const char* what = "";  // the job's name, for messages; it lives as long as the process
};

// For each stream, the last job that is known to be over. What an actor knows: a stream before its
// next job, an event, the host.
class Clock {
 public:
  bool knows(StreamTicket job) const { return job.ticket <= at(job.stream); }
  void raise(StreamTicket job) {
    const auto index = static_cast<std::size_t>(job.stream);
    if (known_.size() <= index) known_.resize(index + 1, 0);
    known_[index] = std::max(known_[index], job.ticket);
  }
  void merge(const Clock& other) {
    if (known_.size() < other.known_.size()) known_.resize(other.known_.size(), 0);
    for (std::size_t i = 0; i < other.known_.size(); ++i)
      known_[i] = std::max(known_[i], other.known_[i]);
  }

 private:
  std::uint64_t at(int stream) const {
    const auto index = static_cast<std::size_t>(stream);
    return index < known_.size() ? known_[index] : 0;
  }
  std::vector<std::uint64_t> known_;
};

enum class AccessKind : std::uint8_t { read, write };

struct ByteRange {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
};

struct Access {
  StreamTicket job;
  AccessKind kind = AccessKind::read;
};

// Who used which bytes of a block last.
class AccessHistory {
 public:
  // An earlier access that this one must come after, and does not by what `clock` knows.
  std::optional<Access> conflict(ByteRange range, AccessKind kind, const Clock& clock) const;
  void add(ByteRange range, AccessKind kind, StreamTicket job);

  // The first access of all for which `is_over` is false.
  template <typename IsOver>
  std::optional<Access> unfinished(IsOver&& is_over) const {
    for (const auto& [begin, segment] : segments_) {
      if (segment.writer && !is_over(*segment.writer))
        return Access{*segment.writer, AccessKind::write};
      for (const StreamTicket& reader : segment.readers)
        if (!is_over(reader)) return Access{reader, AccessKind::read};
    }
    return std::nullopt;
  }

 private:
  struct Segment {
    std::uintptr_t end = 0;
    std::optional<StreamTicket> writer;
    std::vector<StreamTicket> readers;  // since then; one a stream
  };
  using Segments = std::map<std::uintptr_t, Segment>;

  void split_at(std::uintptr_t address);
  void fill_gaps(ByteRange range);

  Segments segments_;  // by their first bytes; they do not overlap
};

}  // namespace sluice::soft_accelerator
