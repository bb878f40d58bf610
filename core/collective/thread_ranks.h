#pragma once
// Ranks that are threads of one process: a world for tests and sanitizers, whose delays and faults
// come from a seed. A rank takes what it is sent out of the sender's memory, in its own time, so a
// buffer that is given back or filled too early shows.
//
// Delays and faults count the receiver's polls, not time: a schedule that steps ranks one by one
// (tests) repeats exactly.
//
// Thread contract: the world any thread; each transport on its own thread. The world outlives no
// transport: they share it.

#include <cstdint>
#include <memory>

#include "core/collective/transport.h"

namespace sluice::collective {

struct ThreadWorldOptions {
  int rank_count = 1;
  int ranks_per_node = 1 << 20;
  std::uint64_t seed = 0;
  // Each message waits for a random number of its receiver's polls, up to this.
  std::int64_t delay_polls_max = 0;
  // From its n-th exchange on this rank does nothing at all, as one that is stopped. -1: none.
  int lost_rank = -1;
  std::int64_t lost_exchange = 0;
  // This rank's n-th exchange fails. -1: none.
  int failing_rank = -1;
  std::int64_t failing_exchange = 0;
};

class ThreadWorld {
 public:
  static std::shared_ptr<ThreadWorld> make(const ThreadWorldOptions& options);
  virtual ~ThreadWorld() = default;
  // The end of one rank; each once.
  virtual std::unique_ptr<Transport> transport(int rank) = 0;
};

}  // namespace sluice::collective
