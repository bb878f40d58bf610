// A run whose activations leave: the same bits as one that keeps them, drives that fail and lie,
// nothing left behind.

#include <catch2/catch.hpp>
#include <filesystem>

#include "tests/core/train/file_requests.h"

using namespace sluice;
using io::FaultPlan;

namespace {

Result<Trained> run_small(const SmallRun& files, std::vector<std::string> settings,
                          const WrapEngine& wrap = {}) {
  return train_small(files, settings, session::StartFrom::new_state, wrap);
}

}  // namespace

TEST_CASE("whatever is kept, recomputed or offloaded, the numbers are the same to the bit") {
  for (const std::string micro : {"grad_accum_steps=1", "grad_accum_steps=3"}) {
    const SmallRun files;
    const auto plain = run_small(files, {micro});
    REQUIRE(plain.ok());
    const std::vector<std::vector<std::string>> variants = {
        {"activations=offload"},
        {"activations=offload_inputs", "devices=3"},
        {"activations=offload:1,recompute:2,keep", "clock=emulated"},
        {"activations=recompute:1,offload", "method=host", "io_engine=posix"},
        {"activations=offload", "activation_buffer=4096", "clock=emulated", "time_scale=1"},
        {"activations=offload:2-3,offload_inputs:1,keep", "activation_buffer=1GiB"},
    };
    for (std::vector<std::string> settings : variants) {
      settings.push_back(micro);
      const SmallRun fresh;
      const auto trained = run_small(fresh, settings);
      INFO(fmt::format("{}", fmt::join(settings, " ")));
      INFO((trained.ok() ? std::string() : trained.error().message()));
      REQUIRE(trained.ok());
      CHECK(trained->losses == plain->losses);
      CHECK(trained->digest == plain->digest);
      CHECK_FALSE(std::filesystem::exists(fresh.folder.file("state/activations.slc")));
    }
  }
}

TEST_CASE("with room for everything nothing moves, and no file is made to move it to") {
  for (const std::string activations : {"activations=keep", "activations=offload"}) {
    const SmallRun files;
    FileRequests::Counts counts;
    const auto trained = run_small(
        files, {activations, "activation_buffer=1GiB"}, [&](std::unique_ptr<io::IoEngine> inner) {
          return std::make_unique<FileRequests>(std::move(inner), "activations.slc", counts);
        });
    REQUIRE(trained.ok());
    CHECK(counts.requests > 0);
    CHECK(counts.writes.empty());
    CHECK(counts.reads.empty());
  }
}

TEST_CASE("a run goes on with other knobs while its activations leave") {
  const SmallRun files;
  const auto plain = run_small(files, {"steps=6"});
  REQUIRE(plain.ok());
  const std::vector<session::PlannedChange> changes = {{2, {"method=host", "buffers=2"}},
                                                       {4, {"queue_depth=1", "io_bytes=4096"}}};
  const SmallRun fresh;
  const auto changed = train_small(fresh, {"steps=6", "activations=offload"},
                                   session::StartFrom::new_state, {}, changes);
  REQUIRE(changed.ok());
  CHECK(changed->losses == plain->losses);
  CHECK(changed->digest == plain->digest);
}

TEST_CASE("what layers keep changes while the run goes on, and no bit of its numbers") {
  const std::vector<session::PlannedChange> changes = {
      {1, {"activations=offload", "activation_buffer=4096"}},
      {2, {"activations=offload_inputs:1,recompute:2,keep"}},
      {3, {"activations=keep"}},
      {4, {"activations=offload:1-2,keep", "activation_buffer=1GiB"}},
      {5, {"activations=recompute", "activation_buffer=0"}}};
  for (const std::string more : {"method=csd", "method=host", "parameter_tier=storage"}) {
    const SmallRun files;
    const auto plain = run_small(files, {"grad_accum_steps=2", "steps=7"});
    REQUIRE(plain.ok());
    const SmallRun fresh;
    FileRequests::Counts counts;
    const auto changed = train_small(
        fresh, {"grad_accum_steps=2", "steps=7", more}, session::StartFrom::new_state,
        [&](std::unique_ptr<io::IoEngine> inner) {
          return std::make_unique<FileRequests>(std::move(inner), "activations.slc", counts);
        },
        changes);
    INFO(more);
    REQUIRE(changed.ok());
    CHECK(changed->losses == plain->losses);
    CHECK(changed->digest == plain->digest);
    CHECK_FALSE(counts.writes.empty());
    CHECK_FALSE(counts.reads.empty());
  }
}

TEST_CASE("a drive that fails under activations is named with the layer, or no number changes") {
  // One layer in memory at a time, so that all of the others come back from the drive.
  const std::vector<std::string> settings = {"activations=offload", "activation_buffer=4096",
                                             "devices=1", "steps=2"};
  FileRequests::Counts counts;
  const SmallRun files;
  const auto undisturbed = run_small(files, settings, [&](std::unique_ptr<io::IoEngine> inner) {
    return std::make_unique<FileRequests>(std::move(inner), "activations.slc", counts);
  });
  REQUIRE(undisturbed.ok());
  using enum FaultPlan::Fault;
  const std::vector<std::pair<FaultPlan::Fault, ErrorCode>> faults = {
      {no_space, ErrorCode::no_space},
      {eio, ErrorCode::io},
      {cut_transfer, ErrorCode::io},
      {flip_bit, ErrorCode::corrupt},
      {short_transfer, ErrorCode{}}};
  for (const auto& [fault, code] : faults) {
    // Which request is the n-th depends on what ends first, so not every one hits the activations.
    int named = 0;
    int unharmed = 0;
    const auto& places = fault == no_space ? counts.writes : counts.reads;
    for (const std::uint64_t place : places) {
      const SmallRun fresh;
      const auto trained = run_small(fresh, settings, [&](std::unique_ptr<io::IoEngine> inner) {
        FaultPlan plan;
        plan.planned.push_back({place, fault});
        return io::make_faulty_engine(std::move(inner), plan);
      });
      if (trained.ok()) {
        CHECK(trained->losses == undisturbed->losses);
        CHECK(trained->digest == undisturbed->digest);
        unharmed += 1;
        continue;
      }
      const std::string message(trained.error().message());
      INFO(message);
      CHECK(fault != short_transfer);
      if (message.find("activations.slc") == std::string::npos) continue;
      CHECK(trained.error().code() == code);
      CHECK_THAT(message, Catch::Contains("layer "));
      named += 1;
    }
    CHECK((fault == short_transfer ? unharmed : named) > 0);
  }
}

TEST_CASE("what cannot be offloaded is refused in words") {
  const SmallRun files;
  const auto layer = run_small(files, {"activations=offload:7,keep"});
  REQUIRE_FALSE(layer.ok());
  CHECK_THAT(layer.error().message(), Catch::Contains("there is no layer 7"));
}
