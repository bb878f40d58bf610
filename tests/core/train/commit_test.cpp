// commit_every: how often the state becomes durable, and that nothing else depends on it.

#include <catch2/catch.hpp>

#include "tests/core/train/failing_run.h"

using namespace sluice;

namespace {

std::int64_t committed_step(const SmallRun& files) {
  const auto store = state::StateStore::open_read_only({files.folder.file("state")});
  REQUIRE(store.ok());
  return (*store)->committed().position.step;
}

}  // namespace

TEST_CASE("how often is committed changes no bit, whatever the way") {
  const std::vector<std::vector<std::string>> ways = {
      {"method=host", "pipeline=serial"},
      {"method=csd", "pipeline=handover", "wire=native"},
      {"method=host", "gradient_tier=memory", "buffers=1"},
      {"method=csd", "buffers=4", "device_map=3,1"},
      {"method=csd", "density=0.05", "error_feedback=true"},
      {"method=host", "precision=fp16", "initial_loss_scale=4294967296"},
      {"method=csd", "optimizer=sgd", "clock=emulated", "time_scale=0.01"},
  };
  for (const std::vector<std::string>& way : ways) {
    std::optional<Trained> each;
    for (const char* commits :
         {"commit_every=1", "commit_every=2", "commit_every=4", "commit_every=1000"}) {
      const SmallRun files;
      std::vector<std::string> settings = way;
      settings.emplace_back(commits);
      INFO(fmt::format("{}", fmt::join(settings, " ")));
      const auto trained = train_small(files, settings);
      INFO((trained.ok() ? std::string() : trained.error().message()));
      REQUIRE(trained.ok());
      if (!each) each = *trained;
      CHECK(trained->losses == each->losses);
      CHECK(trained->digest == each->digest);
      CHECK(committed_step(files) == 6);  // the end of a run commits
    }
  }
}

TEST_CASE("after a failure the last commit stands, and a resume ends as an undisturbed run does") {
  for (const char* pipeline : {"pipeline=serial", "pipeline=handover", "pipeline=nbuffer"}) {
    for (const char* method : {"method=host", "method=csd"}) {
      const std::vector<std::string> settings = {pipeline, method, "commit_every=3", "steps=8"};
      INFO(pipeline << " " << method);
      check_last_commit_stands(settings, {.first = 60, .end = 1200, .by = 97});
    }
  }
}
