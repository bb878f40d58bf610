// Which limit caps a memory plan, and what is said of one that does not fit.

#include <catch2/catch.hpp>

#include "core/plan/memory_plan.h"
#include "core/settings/run_config.h"
#include "tests/base/made_system.h"

namespace sluice::plan {
namespace {

constexpr std::int64_t kSmallBytes = 420'000'000;
constexpr const char* kSmall = "cgroup memory.max of /sys/fs/cgroup/small";

settings::RunConfig asking(std::int64_t host_memory_bytes) {
  settings::RunConfig config;
  config.resources.host_memory_bytes = host_memory_bytes;
  return config;
}

struct SmallGroup : MadeSystem {
  SmallGroup() {
    mount_version_2("/small");
    write("/sys/fs/cgroup/small/memory.max", std::to_string(kSmallBytes) + "\n");
  }
};

MemoryPlan plan_of(std::int64_t total_bytes, const MemoryCap& cap) {
  MemoryPlan plan;
  plan.items = {{"everything", total_bytes}};
  plan.total_bytes = total_bytes;
  plan.set_cap(cap);
  return plan;
}

TEST_CASE("host_memory caps a plan unless this process may not have that much") {
  const MadeSystem free;
  MemoryCap cap = memory_cap(asking(400'000'000), free.facts());
  CHECK(cap.size_bytes == 400'000'000);
  CHECK(cap.what == "host_memory");
  // More than other programs leave free now: they may end.
  CHECK(memory_cap(asking(8'000'000'000), free.facts()).size_bytes == 8'000'000'000);

  const SmallGroup small;
  cap = memory_cap(asking(400'000'000), small.facts());
  CHECK(cap.size_bytes == 400'000'000);
  CHECK(cap.source == MemoryCap::Source::host_memory);
  cap = memory_cap(asking(8'000'000'000), small.facts());
  CHECK(cap.size_bytes == kSmallBytes);
  CHECK(cap.what == kSmall);
}

TEST_CASE("without host_memory the smallest limit of this process is the cap") {
  const MadeSystem free;
  CHECK(memory_cap(asking(0), free.facts()).source == MemoryCap::Source::machine);
  CHECK(memory_cap(asking(0), free.facts()).what == "what the machine has available");
  const SmallGroup small;
  const MemoryCap cap = memory_cap(asking(0), small.facts());
  CHECK(cap.size_bytes == kSmallBytes);
  CHECK(cap.source == MemoryCap::Source::set_limit);
  CHECK(cap.what == kSmall);
}

TEST_CASE("a plan says which limit it is held to, and a refusal what would do") {
  const SmallGroup small;
  const MemoryPlan plan = plan_of(575'000'000, memory_cap(asking(0), small.facts()));
  CHECK_THAT(describe(plan), Catch::Contains("575 MB  of 420 MB (" + std::string(kSmall) + ")"));
  const Status refused = check_plan(plan);
  REQUIRE(!refused.ok());
  CHECK_THAT(refused.error().message(), Catch::Contains("the cap is 420 MB (cgroup memory.max"));
  CHECK_THAT(
      refused.error().message(),
      Catch::Contains("the smallest limit that would do is 148MiB more (" + std::string(kSmall)));
  CHECK(check_plan(plan_of(kSmallBytes, memory_cap(asking(0), small.facts()))).ok());
}

TEST_CASE("where the machine or host_memory counts, host_memory is what would do") {
  const MadeSystem free;
  for (const std::int64_t asked : {std::int64_t{0}, std::int64_t{1'000'000}}) {
    const Status refused =
        check_plan(plan_of(7'500'000'000, memory_cap(asking(asked), free.facts())));
    REQUIRE(!refused.ok());
    CHECK_THAT(refused.error().message(),
               Catch::Contains("the smallest host_memory that would do is 7153MiB"));
  }
}

}  // namespace
}  // namespace sluice::plan
