// Whole runs on devices whose kernels and copies complete elsewhere: late, in any order, noted
// twice, or never.

#include <catch2/catch.hpp>

#include "tests/core/csd/answering_csd.h"
#include "tests/core/train/small_run.h"

using namespace sluice;

namespace {

Result<Trained> train_on(csd::DeviceFactory& devices, const SmallRun& files,
                         const std::vector<std::string>& settings,
                         session::StartFrom start = session::StartFrom::new_state) {
  std::vector<std::string> all = settings;
  all.push_back("method=csd");
  return train_small(files, all, start, {}, {}, &devices);
}

}  // namespace

TEST_CASE("devices that answer in any order, and twice, give the bits of emulated ones") {
  const auto pipeline = GENERATE("serial", "handover", "nbuffer");
  const auto way =
      GENERATE(std::vector<std::string>{"wire=fp32"}, std::vector<std::string>{"wire=native"},
               std::vector<std::string>{"density=0.05", "error_feedback=true"});
  std::vector<std::string> settings = way;
  settings.push_back(std::string("pipeline=") + pipeline);
  const SmallRun plain_files;
  csd::EmulatedFactory emulated(csd::Payload::real);
  const auto plain = train_on(emulated, plain_files, settings);
  REQUIRE(plain.ok());
  for (const std::uint64_t seed : {1, 2}) {
    const SmallRun files;
    csd::AnsweringFactory answering({.seed = seed, .reorders = true, .notes_twice = true});
    const auto trained = train_on(answering, files, settings);
    REQUIRE(trained.ok());
    REQUIRE(trained->digest == plain->digest);
    REQUIRE(trained->losses == plain->losses);
  }
}

TEST_CASE("a device that stops answering ends the run by name; a resume ends where it would have") {
  const auto pipeline = GENERATE("serial", "handover", "nbuffer");
  const std::vector<std::string> settings = {std::string("pipeline=") + pipeline};
  const SmallRun plain_files;
  csd::EmulatedFactory emulated(csd::Payload::real);
  const auto plain = train_on(emulated, plain_files, settings);
  REQUIRE(plain.ok());
  for (const std::int64_t unanswered : {0, 7, 23}) {
    const SmallRun files;
    csd::AnsweringFactory hanging({.unanswered = unanswered, .patience_ns = 30'000'000});
    const auto stopped = train_on(hanging, files, settings);
    REQUIRE_FALSE(stopped.ok());
    CHECK(stopped.error().code() == ErrorCode::io);
    CHECK_THAT(stopped.error().message(), Catch::Contains("was started and has not ended for"));
    const auto resumed = train_on(emulated, files, settings, session::StartFrom::last_commit);
    REQUIRE(resumed.ok());
    REQUIRE(resumed->digest == plain->digest);
  }
}
