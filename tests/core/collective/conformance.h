#pragma once
// What every transport of core/collective promises, as checks that all ranks of a world run
// together. They say what is wrong instead of failing a test, since each rank is a thread or a
// process of its own: core_collective_test runs them on threads, collective_ranks under mpirun.
//
// Thread contract: each rank on a thread of its own, with its communicator.

#include <span>
#include <string>
#include <vector>

#include "core/collective/communicator.h"

namespace sluice::collective {

using Problems = std::vector<std::string>;

struct Promise {
  const char* name;
  Problems (*check)(Communicator& communicator);
};
std::span<const Promise> promises();

}  // namespace sluice::collective
