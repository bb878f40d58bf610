#pragma once
// Runs by a seed: small models on platforms that a test draws.

#include <functional>
#include <random>

#include "core/simulate/sharded_run.h"

namespace sluice::simulate {

struct Drawn {
  explicit Drawn(std::uint64_t seed) : random(seed) {}
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  }
  std::mt19937_64 random;
};

inline ShardedRun drawn_run(Drawn& drawn, const std::function<platform::Platform()>& platform,
                            std::int64_t micro_batches_max) {
  ShardedRun run;
  run.shape = {.name = "drawn",
               .layers = drawn.between(1, 3),
               .hidden = 64 * drawn.between(1, 4),
               .heads = 4,
               .sequence = 128,
               .vocabulary = drawn.between(100, 2000)};
  run.platform = platform();
  run.batch = drawn.between(1, 8);
  run.sequence = 32 * drawn.between(1, 4);
  run.micro_batches = drawn.between(1, micro_batches_max);
  run.bucket_bytes = 1 << drawn.between(16, 22);
  return run;
}

}  // namespace sluice::simulate
