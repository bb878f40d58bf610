#pragma once
// An engine that fails on purpose, by plan and seed: what the tests of everything above use in
// place of a broken disk. All faults but flip_bit act at the border to the kernel, before an
// attempt of a transfer, so that continuing, retrying and reporting are the wrapped engine's own.
//
// Thread contract: that of IoEngine: one owner thread.

#include <cstdint>
#include <memory>
#include <vector>

#include "storage/io/io_engine.h"

namespace sluice::io {

struct FaultPlan {
  enum class Fault : std::uint8_t {
    eio,             // the request completes with EIO
    no_space,        // ENOSPC (writes)
    short_transfer,  // the kernel transfers only part; the engine must continue
    cut_transfer,    // transfers part, then reports an error
    flip_bit,        // one bit of the data is wrong and nobody says so
    again,           // EAGAIN once, then fine
    interrupted,     // EINTR once, then fine
  };
  struct Planned {
    std::uint64_t request_index;  // the n-th request submitted, 0-based
    Fault fault;
  };
  // Several faults of one request follow one another, attempt by attempt.
  std::vector<Planned> planned;
  std::uint64_t seed = 0;  // for which bit, how short, and the order of completions
  // Completions come back in a seeded order that does not depend on timing: nothing is handed out
  // before all that is in flight has finished.
  bool shuffle_completions = false;
};

// `inner` comes from open_io_engine().
std::unique_ptr<IoEngine> make_faulty_engine(std::unique_ptr<IoEngine> inner, FaultPlan plan);

}  // namespace sluice::io
