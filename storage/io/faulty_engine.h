#pragma once
// An engine that fails on purpose, by seed or by plan: what the tests of everything above use in
// place of a broken disk.

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
  std::vector<Planned> planned;
  std::uint64_t seed = 0;            // for which bit, how short, and the order of completions
  bool shuffle_completions = false;  // completions come back in a seeded order
};

std::unique_ptr<IoEngine> make_faulty_engine(std::unique_ptr<IoEngine> inner, FaultPlan plan);

}  // namespace sluice::io
