// state_cache: state that stays in memory between steps moves no bit of a run, and of the bytes
// that others move just the part that it should not.

#include <catch2/catch.hpp>

#include "tests/core/train/failing_run.h"
#include "tests/core/train/offload_ways.h"
#include "tests/sanitizer.h"

using namespace sluice;

namespace {

// In subgroups of this many elements, whose arrays are whole pages.
constexpr std::int64_t kElements = 1024;
constexpr std::int64_t kSubgroupBytes = 3 * 4 * kElements;

}  // namespace

TEST_CASE("state that stays in memory changes no bit, whatever the way to offload") {
  for (const OffloadWay& way : ways_to_offload()) {
    const SmallRun plain_files;
    const auto plain = train_small(plain_files, with(way, {"durability=never"}));
    REQUIRE(plain.ok());
    for (const OffloadWay& cache :
         {OffloadWay{"state_cache=60KB"}, OffloadWay{"state_cache=60KB", "commit_every=4"},
          OffloadWay{"state_cache=auto", "commit_every=4"}}) {
      const SmallRun files;
      const auto trained = train_small(files, with(with(way, cache), {"durability=never"}));
      INFO(fmt::format("{} {}", fmt::join(way, " "), fmt::join(cache, " ")));
      INFO((trained.ok() ? std::string() : trained.error().message()));
      REQUIRE(trained.ok());
      CHECK(trained->losses == plain->losses);
      CHECK(trained->digest == plain->digest);
    }
  }
}

TEST_CASE("knobs that change keep nothing stale in memory") {
  for (const OffloadChange& change : every_change_of_offload()) {
    const std::vector<session::PlannedChange> at_step_3 = {{3, change.to}};
    const SmallRun plain_files;
    const auto plain =
        train_small(plain_files, change.from, session::StartFrom::new_state, {}, at_step_3);
    REQUIRE(plain.ok());
    const SmallRun files;
    const auto trained =
        train_small(files, with(change.from, {"state_cache=60KB", "commit_every=4"}),
                    session::StartFrom::new_state, {}, at_step_3);
    INFO(fmt::format("{} -> {}", fmt::join(change.from, " "), fmt::join(change.to, " ")));
    INFO((trained.ok() ? std::string() : trained.error().message()));
    REQUIRE(trained.ok());
    CHECK(trained->losses == plain->losses);
    CHECK(trained->digest == plain->digest);
  }
  // And the cache itself.
  const SmallRun plain_files;
  const auto plain = train_small(plain_files, {});
  REQUIRE(plain.ok());
  const SmallRun files;
  const auto trained =
      train_small(files, {"state_cache=auto", "commit_every=4"}, session::StartFrom::new_state, {},
                  std::vector<session::PlannedChange>{{1, {"state_cache=40KB"}},
                                                      {3, {"state_cache=0"}},
                                                      {5, {"state_cache=auto", "method=host"}}});
  REQUIRE(trained.ok());
  CHECK(trained->losses == plain->losses);
  CHECK(trained->digest == plain->digest);
}

TEST_CASE("skipped steps leave what stays in memory as it is") {
  const OffloadWay fp16 = {"precision=fp16", "initial_loss_scale=4294967296", "steps=20"};
  const SmallRun plain_files;
  const auto plain = train_small(plain_files, fp16);
  REQUIRE(plain.ok());
  REQUIRE(plain->steps.front().skipped);
  REQUIRE_FALSE(plain->steps.back().skipped);
  for (const char* pipeline : {"pipeline=serial", "pipeline=handover", "pipeline=nbuffer"}) {
    for (const char* cache : {"state_cache=60KB", "state_cache=auto"}) {
      for (const char* commits : {"commit_every=1", "commit_every=3"}) {
        const SmallRun files;
        const auto trained = train_small(files, with(fp16, {pipeline, cache, commits}));
        INFO(pipeline << " " << cache << " " << commits);
        REQUIRE(trained.ok());
        CHECK(trained->losses == plain->losses);
        CHECK(trained->digest == plain->digest);
      }
    }
  }
}

TEST_CASE("kept state is read once and written with each commit, to the byte, by both clocks") {
  constexpr std::int64_t kStepCount = 6;
  for (const OffloadWay& clock :
       {OffloadWay{"clock=real"}, OffloadWay{"clock=emulated", "time_scale=0.01"}}) {
    for (const bool is_csd : {false, true}) {
      for (const std::int64_t kept : {0, 3, 1000}) {
        for (const std::int64_t commit_every : {1, 3}) {
          const SmallRun files;
          const auto trained =
              train_small(files, with(clock, {is_csd ? "method=csd" : "method=host", "devices=1",
                                              fmt::format("subgroup_elements={}", kElements),
                                              fmt::format("state_cache={}", kept * kSubgroupBytes),
                                              fmt::format("commit_every={}", commit_every)}));
          INFO(clock[0] << " csd " << is_csd << " " << kept << " every " << commit_every);
          REQUIRE(trained.ok());
          const std::int64_t all = trained->parameter_count;
          const std::int64_t stays = std::min(all, kept * kElements);
          const std::int64_t read = 12 * ((all - stays) * kStepCount + stays);
          const std::int64_t written =
              12 * ((all - stays) * kStepCount + stays * kStepCount / commit_every);
          const std::int64_t gradients = 4 * all * kStepCount;
          // The drive's link: behind the host's, and the accelerator's, which has none in real
          // time.
          const runtime::LinkBytes& drive = trained->link_bytes[clock.size() == 1 ? 1 : 2];
          CHECK(drive.size_bytes[0] == read + gradients);
          CHECK(drive.size_bytes[1] == written + gradients);
        }
      }
    }
  }
}

TEST_CASE("after a failure the last commit stands, with what was in memory gone") {
  for (const char* method : {"method=host", "method=csd"}) {
    const OffloadWay settings = {method, "commit_every=3", "steps=8", "state_cache=60KB"};
    INFO(method);
    check_last_commit_stands(settings, {.first = 40, .end = 900, .by = 61});
  }
}

TEST_CASE("a cache that does not fit is refused with the largest that does") {
  const SmallRun files;
  const auto message = [&](const OffloadWay& settings) {
    const auto trained = train_small(files, settings);
    REQUIRE_FALSE(trained.ok());
    return trained.error().message();
  };
  const std::string subgroup = fmt::format("subgroup_elements={}", kElements);
  CHECK_THAT(message({subgroup, "state_cache=4096"}),
             Catch::Contains("keeps nothing") && Catch::Contains("12KiB"));
  const OffloadWay csd = {subgroup, "method=csd", "devices=1", "buffers=1"};
  // A buffer set: three arrays and a gradient. 40 KB more hold three subgroups of 12 KiB.
  const std::string memory = fmt::format("device_memory={}", 16 * kElements + 40'000);
  CHECK_THAT(message(with(csd, {memory, "state_cache=60000"})),
             Catch::Contains("the largest state_cache that fits is 36864"));
  const auto fits = train_small(files, with(csd, {memory, "state_cache=36864"}));
  INFO((fits.ok() ? std::string() : fits.error().message()));
  CHECK(fits.ok());
  const SmallRun filled;
  CHECK(train_small(filled, with(csd, {memory, "state_cache=auto"})).ok());
}
