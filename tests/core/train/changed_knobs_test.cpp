// Knobs that change between steps: what they move, and what they leave alone.

#include <catch2/catch.hpp>

#include "core/control/knob.h"
#include "tests/core/train/small_run.h"

using namespace sluice;

TEST_CASE("knobs that change between steps move no bit of a dense run") {
  const SmallRun files;
  const auto plain = train_small(files, {});
  REQUIRE(plain.ok());
  const std::vector<std::vector<session::PlannedChange>> variants = {
      {{1, {"pipeline=serial"}}, {3, {"pipeline=handover"}}, {5, {"pipeline=nbuffer"}}},
      {{2, {"buffers=1"}}, {4, {"buffers=5", "prefetch=false"}}},
      {{1, {"method=host"}},
       {2, {"gradient_tier=memory"}},
       {4, {"gradient_tier=storage", "method=csd", "wire=native"}}},
      {{1, {"device_map=3,1"}}, {3, {"device_map=0,1"}}, {5, {"device_map=even"}}},
      {{1, {"device_map=3,1", "pipeline=serial"}}, {2, {"device_map=0,1", "pipeline=handover"}}},
      {{1, {"device_map=1,0", "wire=native"}}, {2, {"device_map=0,1", "buffers=1"}}},
      {{2, {"device_map=1,0", "method=host", "pipeline=serial"}}, {4, {"bounce_memory=8MiB"}}},
      {{0, {"error_feedback=true"}}, {3, {"density=1"}}},
  };
  for (const auto& changes : variants) {
    const SmallRun fresh;
    const auto trained = train_small(fresh, {}, session::StartFrom::new_state, {}, changes);
    INFO(fmt::format("{}", fmt::join(changes[0].settings, " ")));
    INFO((trained.ok() ? std::string() : trained.error().message()));
    REQUIRE(trained.ok());
    CHECK(trained->losses == plain->losses);
    CHECK(trained->digest == plain->digest);
  }
}

TEST_CASE("knobs that change between commits move no bit: what has ended is committed first") {
  const SmallRun files;
  const auto plain = train_small(files, {});
  REQUIRE(plain.ok());
  const std::vector<std::vector<session::PlannedChange>> variants = {
      {{1, {"pipeline=serial"}}, {2, {"method=host"}}, {4, {"method=csd", "pipeline=handover"}}},
      {{1, {"device_map=3,1"}}, {2, {"device_map=0,1"}}, {5, {"device_map=even"}}},
      {{2, {"commit_every=1"}}, {4, {"commit_every=5"}}},
  };
  for (const auto& changes : variants) {
    const SmallRun fresh;
    const auto trained =
        train_small(fresh, {"commit_every=4"}, session::StartFrom::new_state, {}, changes);
    INFO(fmt::format("{}", fmt::join(changes[0].settings, " ")));
    INFO((trained.ok() ? std::string() : trained.error().message()));
    REQUIRE(trained.ok());
    CHECK(trained->losses == plain->losses);
    CHECK(trained->digest == plain->digest);
  }
}

TEST_CASE("what moves in a step that is skipped stays, and moves with the next") {
  const std::vector<std::string> fp16 = {"precision=fp16", "initial_loss_scale=4294967296"};
  const SmallRun files;
  const auto plain = train_small(files, fp16);
  REQUIRE(plain.ok());
  REQUIRE(plain->steps[0].skipped);
  REQUIRE(plain->steps[1].skipped);
  for (const char* pipeline : {"pipeline=serial", "pipeline=handover", "pipeline=nbuffer"}) {
    for (const char* commits : {"commit_every=1", "commit_every=3"}) {
      const SmallRun fresh;
      std::vector<std::string> settings = fp16;
      settings.insert(settings.end(), {pipeline, commits});
      const auto moved = train_small(fresh, settings, session::StartFrom::new_state, {},
                                     std::vector<session::PlannedChange>{{1, {"device_map=0,1"}}});
      INFO(pipeline << " " << commits);
      REQUIRE(moved.ok());
      CHECK(moved->losses == plain->losses);
      CHECK(moved->digest == plain->digest);
    }
  }
}

TEST_CASE("knobs that change between steps keep the residual, and density takes effect") {
  const std::vector<std::string> sparse = {"density=0.05", "error_feedback=true"};
  const SmallRun a;
  const auto plain = train_small(a, sparse);
  REQUIRE(plain.ok());
  const SmallRun b;
  const auto moved = train_small(
      b, sparse, session::StartFrom::new_state, {},
      std::vector<session::PlannedChange>{{2, {"method=host"}}, {3, {"device_map=1,3"}}});
  REQUIRE(moved.ok());
  CHECK(moved->losses == plain->losses);
  CHECK(moved->digest == plain->digest);
  // A run that is dense for three steps, and then as sparse as another that resumes there.
  const SmallRun c;
  const auto later = train_small(c, {"error_feedback=true"}, session::StartFrom::new_state, {},
                                 std::vector<session::PlannedChange>{{3, {"density=0.05"}}});
  REQUIRE(later.ok());
  const SmallRun d;
  REQUIRE(train_small(d, {"steps=3", "schedule_steps=6"}).ok());
  const auto resumed = train_small(d, sparse, session::StartFrom::last_commit);
  REQUIRE(resumed.ok());
  CHECK(later->digest == resumed->digest);
}

TEST_CASE("who watches a run is told which knobs changed, from what to what, before which step") {
  const SmallRun files;
  const std::vector<session::PlannedChange> planned = {
      {1, {"buffers=2", "pipeline=serial"}}, {2, {"pipeline=serial"}}, {3, {"device_map=3,1"}}};
  const auto trained = train_small(files, {"density=0.01", "density_warmup_steps=4"},
                                   session::StartFrom::new_state, {}, planned);
  REQUIRE(trained.ok());
  CHECK(trained->knobs == std::vector<std::string>{
                              "0: density 0.01 -> 1", "1: pipeline nbuffer -> serial",
                              "1: buffers 3 -> 2", "1: density 1 -> 0.31622776601683794",
                              "2: density 0.31622776601683794 -> 0.1", "3: device_map even -> 3,1",
                              "3: density 0.1 -> 0.03162277660168379",
                              "4: density 0.03162277660168379 -> 0.01"});
}

TEST_CASE("each knob is a setting, with its type and range") {
  const std::vector<control::Knob> knobs = settings::knobs({});
  const auto buffers = std::ranges::find(knobs, "buffers", &control::Knob::key);
  REQUIRE(buffers != knobs.end());
  CHECK(buffers->type == "integer");
  CHECK(buffers->default_value == "3");
  CHECK(buffers->value == "3");
  CHECK(buffers->min == 1);
  REQUIRE(buffers->max.has_value());
  const auto method = std::ranges::find(knobs, "method", &control::Knob::key);
  REQUIRE(method != knobs.end());
  CHECK(method->type == "word");
  CHECK(method->words == std::vector<std::string>{"host", "csd"});
  CHECK_FALSE(method->min.has_value());
}

TEST_CASE("what is no knob cannot change between steps") {
  const SmallRun files;
  const auto trained =
      train_small(files, {}, session::StartFrom::new_state, {},
                  std::vector<session::PlannedChange>{{2, {"subgroup_elements=1000"}}});
  REQUIRE_FALSE(trained.ok());
  CHECK(trained.error().code() == ErrorCode::config);
  CHECK_THAT(trained.error().message(),
             Catch::Contains("subgroup_elements") && Catch::Contains("device_map"));
}
