#pragma once
// Runs whose ranks have parts of parameters and optimizer state, and the run of one rank that has
// the same global batch.

#include <catch2/catch.hpp>

#include "core/shard/triple.h"
#include "tests/core/train/rank_world.h"
#include "tests/core/train/small_run.h"
#include "tests/sanitizer.h"

namespace sluice {

// A model of which eight ranks can have parts: its block has eight blocks of the norm.
inline SmallRun cut_in_eight() { return SmallRun(1, 104); }

inline std::vector<std::string> settings_of(const shard::Triple& triple,
                                            const platform::Scope& mesh) {
  return {"mesh=" + platform::scope_text(mesh),
          "shard_parameters=" + platform::scope_text(triple.parameters),
          "shard_gradients=" + platform::scope_text(triple.gradients),
          "shard_state=" + platform::scope_text(triple.state)};
}

// The sum over ranks is in their order where one group makes it.
inline bool sums_in_order(const shard::Triple& triple, const platform::Scope& mesh) {
  return triple.parameters.size() == 1 || triple.parameters == mesh;
}

struct RankRuns {
  int rank_count = 1;
  std::vector<std::string> settings;
  session::StartFrom start = session::StartFrom::new_state;
  std::vector<session::PlannedChange> changes = {};
  std::function<WrapEngine(int rank)> wrap_of = {};
  std::uint64_t seed = 5;  // of the delays
  std::int64_t delay_polls_max = 3;
};

inline std::vector<Result<Trained>> train_ranks(const SmallRun& files, const RankRuns& runs) {
  return on_ranks<Trained>(
      {.rank_count = runs.rank_count, .seed = runs.seed, .delay_polls_max = runs.delay_polls_max},
      [&](train::Ranks& ranks) {
        return train_small(files, runs.settings, runs.start,
                           runs.wrap_of ? runs.wrap_of(ranks.rank()) : WrapEngine(), runs.changes,
                           nullptr, arithmetic_factory(), &ranks);
      });
}

// All ranks have trained, to the same numbers; those of the first.
inline Trained require_alike(const std::vector<Result<Trained>>& ranks) {
  for (const Result<Trained>& rank : ranks) {
    INFO(message_of(rank));
    REQUIRE(rank.ok());
    CHECK(rank->digest == ranks.front()->digest);
    CHECK(rank->losses == ranks.front()->losses);
  }
  return *ranks.front();
}

inline Trained one_rank(const SmallRun& files, const std::vector<std::string>& settings,
                        std::int64_t micro_steps) {
  const auto trained =
      train_small(files, with(settings, {fmt::format("grad_accum_steps={}", micro_steps)}));
  INFO(message_of(trained));
  REQUIRE(trained.ok());
  return *trained;
}

}  // namespace sluice
