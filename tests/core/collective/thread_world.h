#pragma once
// Ranks as threads: each runs the same function with its communicator, and says what is wrong.
//
// Thread contract: the test's thread; the function runs on one thread a rank.

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "conformance.h"
#include "core/collective/thread_ranks.h"

namespace sluice::collective {

// Collected over all ranks. Catch2 is not made for several threads, so nothing is asserted there.
inline Problems on_ranks(const ThreadWorldOptions& world_options,
                         const CommunicatorOptions& options,
                         const std::function<Problems(Communicator&)>& check) {
  const std::shared_ptr<ThreadWorld> world = ThreadWorld::make(world_options);
  std::vector<Problems> by_rank(static_cast<std::size_t>(world_options.rank_count));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < world_options.rank_count; ++rank) {
    threads.emplace_back([&, rank] {
      const auto opener = [&]() -> Result<std::unique_ptr<Transport>> {
        return world->transport(rank);
      };
      auto communicator = Communicator::open(opener, options);
      Problems& problems = by_rank[static_cast<std::size_t>(rank)];
      if (!communicator.ok()) {
        problems.push_back(communicator.error().message());
        return;
      }
      problems = check(**communicator);
    });
  }
  for (std::thread& thread : threads) thread.join();
  Problems all;
  for (const Problems& problems : by_rank) all.insert(all.end(), problems.begin(), problems.end());
  return all;
}

}  // namespace sluice::collective
