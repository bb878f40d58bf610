#pragma once
// Ranks that are threads, each with a run of its own.

#include <functional>
#include <thread>
#include <vector>

#include "core/collective/thread_ranks.h"
#include "core/train/ranks.h"

namespace sluice {

// What each rank's `run` comes to, by rank. A rank that fails ends the others, as a process would.
template <typename Value>
std::vector<Result<Value>> on_communicators(
    const collective::ThreadWorldOptions& options,
    const std::function<Result<Value>(train::Ranks&, const collective::Communicator&)>& run) {
  const auto world = collective::ThreadWorld::make(options);
  std::vector<Result<Value>> outcomes(static_cast<std::size_t>(options.rank_count),
                                      make_error(ErrorCode::internal, "it has not run"));
  const auto as_rank = [&](int rank) -> Result<Value> {
    ASSIGN_OR_RETURN(const std::unique_ptr<collective::Communicator> communicator,
                     collective::Communicator::open(
                         [&]() -> Result<std::unique_ptr<collective::Transport>> {
                           return world->transport(rank);
                         },
                         {.checks = collective::CallChecks::on}));
    ASSIGN_OR_RETURN(const std::unique_ptr<train::Ranks> ranks, train::Ranks::make(*communicator));
    Result<Value> outcome = run(*ranks, *communicator);
    if (!outcome.ok() && !ranks->is_ended()) {
      communicator->end_all(outcome.error());
      return outcome;
    }
    const Status closed = communicator->close();  // also where all ranks know why they end
    if (outcome.ok()) RETURN_IF_ERROR(closed);
    return outcome;
  };
  std::vector<std::thread> threads;
  for (int rank = 0; rank < options.rank_count; ++rank) {
    threads.emplace_back([&, rank] { outcomes[static_cast<std::size_t>(rank)] = as_rank(rank); });
  }
  for (std::thread& thread : threads) thread.join();
  return outcomes;
}

template <typename Value>
std::vector<Result<Value>> on_ranks(const collective::ThreadWorldOptions& options,
                                    const std::function<Result<Value>(train::Ranks&)>& run) {
  return on_communicators<Value>(
      options,
      [&](train::Ranks& ranks, const collective::Communicator& /*communicator*/) -> Result<Value> {
        return run(ranks);
      });
}

}  // namespace sluice
