// The collectives of a step against AMSP's table and formulas, for every legal triple on 2x4 and on
// 8x128 ranks.

#include "core/shard/collectives.h"

#include <catch2/catch.hpp>
#include <map>

namespace sluice::shard {
namespace {

// Modules and buckets of which every group on 8x128 ranks gets whole parts.
constexpr std::int64_t kUnit = 1024 * 12;
const StepShape kStep = {.module_elements = {7 * kUnit, 3 * kUnit, 3 * kUnit, 5 * kUnit},
                         .micro_batches = 4,
                         .bucket_bytes = 6 * 12};

struct Sum {
  std::int64_t count = 0;
  std::int64_t size_bytes = 0;
};

std::map<Purpose, Sum> sums_of(const Triple& triple, const Scope& mesh, const StepShape& step) {
  std::map<Purpose, Sum> sums;
  for (const CollectiveUse& use : step_collectives(step, triple, mesh)) {
    sums[use.purpose].count += use.count;
    sums[use.purpose].size_bytes += use.all_bytes();
  }
  return sums;
}

// The formulas of docs/sharding.md, in bytes; all divisions are whole.
void check_formulas(const Triple& triple, const Scope& mesh) {
  const std::int64_t parameters = kStep.parameter_count();
  const std::int64_t modules = std::ssize(kStep.module_elements);
  const std::int64_t batches = kStep.micro_batches;
  const std::int64_t p = triple.parameters.size();
  const std::int64_t g = triple.gradients.size();
  const std::int64_t os = triple.state.size();
  const std::int64_t dp = mesh.size();
  const std::int64_t buckets = 2 * parameters / (kStep.bucket_bytes * p);
  REQUIRE(buckets * kStep.bucket_bytes * p == 2 * parameters);
  std::map<Purpose, Sum> sums = sums_of(triple, mesh, kStep);
  const auto check = [&](Purpose purpose, bool is_there, std::int64_t count, std::int64_t bytes) {
    CHECK(sums[purpose].count == (is_there ? count : 0));
    CHECK(sums[purpose].size_bytes == (is_there ? bytes : 0));
  };
  check(Purpose::gather, p > 1, 2 * batches * modules, 2 * batches * 2 * parameters);
  check(Purpose::scatter, p > 1, batches * modules, batches * 2 * parameters);
  check(Purpose::accumulate, g > p, (batches - 1) * buckets, (batches - 1) * 2 * parameters / p);
  check(Purpose::reduce, dp > p, buckets, 2 * parameters / p);
  check(Purpose::share, os > p, os / p, 2 * parameters / p);
}

TEST_CASE("collectives and their bytes are AMSP's on each of 16 and of 121 triples") {
  for (const Scope& mesh : {Scope{2, 4}, Scope{8, 128}}) {
    for (const Triple& triple : all_triples(mesh)) {
      INFO(triple_text(triple));
      check_formulas(triple, mesh);
    }
  }
}

TEST_CASE("a rank holds and owns its share, and what does not divide is filled up") {
  const Triple triple{{2, 1}, {2, 1}, {2, 4}};
  CHECK(held_elements(kStep, triple) == 9 * kUnit);
  CHECK(owned_elements(kStep, triple) == 9 * kUnit / 4);
  const StepShape odd{.module_elements = {3, 5}, .bucket_bytes = 4};
  CHECK(held_elements(odd, triple) == 2 + 3);
  CHECK(owned_elements(odd, triple) == 2);
  std::map<Purpose, Sum> sums = sums_of(triple, {2, 4}, odd);
  CHECK(sums[Purpose::gather].size_bytes == 2 * 2 * (4 + 6));
  CHECK(sums[Purpose::reduce].count == 3);  // 10 bytes in buckets of 4
  CHECK(sums[Purpose::reduce].size_bytes == 10);
  CHECK(sums[Purpose::share].size_bytes == 4 * 2 * 2);
}

TEST_CASE("a third gather of a module is counted where backward does not keep the second") {
  StepShape step = kStep;
  step.gathers = 3;
  const Triple all{{2, 4}, {2, 4}, {2, 4}};
  CHECK(sums_of(all, {2, 4}, step)[Purpose::gather].count == 3 * 4 * 4);
}

}  // namespace
}  // namespace sluice::shard
