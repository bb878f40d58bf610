// overlap=exact: a step that is updated before its decision has the numbers of one that is not,
// whatever the decision turns out to be.

#include <catch2/catch.hpp>
#include <random>

#include "core/train/step_context.h"
#include "core/train/step_parts.h"
#include "tests/core/train/failing_run.h"
#include "tests/core/train/offload_ways.h"
#include "tests/core/train/planted_model.h"
#include "tests/sanitizer.h"

using namespace sluice;

namespace {

// Half of the steps are clipped or overflow: two in a row among them, in the first layer and the
// last.
PlantedSteps random_steps(std::uint64_t seed, int count) {
  std::mt19937_64 random(seed);
  PlantedSteps steps;
  for (int i = 0; i < count; ++i) {
    const std::uint64_t what = random() % 4;
    const std::int32_t layers[] = {0, 1, 2, 3};
    steps.push_back({what == 0   ? Planted::clipped
                     : what == 1 ? Planted::overflow
                                 : Planted::nothing,
                     layers[random() % 4], static_cast<std::int64_t>(random() % 5000)});
  }
  return steps;
}

// A run whose steps are all updated ahead of their decision, whatever the last ones were.
struct Overlapped {
  Trained trained;
  std::int64_t ahead_count = 0;
  std::int64_t refuted_count = 0;
};

Result<Overlapped> train_overlapped(const SmallRun& files, const std::vector<std::string>& settings,
                                    const PlantedSteps& steps,
                                    session::StartFrom start = session::StartFrom::new_state,
                                    const WrapEngine& wrap = {}) {
  const model::ModelFactory factory = planted_factory(steps);
  ASSIGN_OR_RETURN(const settings::RunConfig config, files.config(settings));
  train::TrainingRun::Request request;
  request.config = &config;
  request.factory = &factory;
  request.start = start;
  request.wrap_engine = wrap;
  ASSIGN_OR_RETURN(const std::unique_ptr<train::TrainingRun> run,
                   train::TrainingRun::open(request));
  RETURN_IF_ERROR(run->prepare(start));
  run->step().context().speculation = session::SpeculationPolicy(0);
  ASSIGN_OR_RETURN(const train::TrainReport report, train::train(*run, {}));
  ASSIGN_OR_RETURN(const state::StateDigest digest,
                   state::digest_state(run->session().state().store(), nullptr, nullptr));
  Overlapped result;
  result.trained.losses = report.losses;
  result.trained.digest = digest.digest;
  result.ahead_count = report.ahead_count;
  result.refuted_count = report.refuted_count;
  return result;
}

// With fp16, where what overflows is skipped, and a norm that nothing but what is planted exceeds.
const std::vector<std::string> kPlantable = {"precision=fp16", "initial_loss_scale=64",
                                             "max_grad_norm=100", "lr=0.01"};

}  // namespace

TEST_CASE("a request that fails while refuted work is done again leaves the last commit") {
  constexpr int kSteps = 8;
  PlantedSteps steps(kSteps, {Planted::clipped, 0, 7});
  steps[3].what = steps[4].what = Planted::overflow;
  std::set<std::int64_t> committed;
  std::int64_t refuted = 0;
  for (const std::vector<std::string>& way : {std::vector<std::string>{"method=host", "buffers=3"},
                                              {"method=csd", "pipeline=handover"}}) {
    const std::vector<std::string> settings =
        with(with(kPlantable, way), {"steps=8", "overlap=exact"});
    const SmallRun undisturbed;
    const auto whole = train_overlapped(undisturbed, settings, steps);
    REQUIRE(whole.ok());
    refuted += whole->refuted_count;
    for (std::uint64_t request = 60; request < 1200; request += kIsSanitized ? 92 : 23) {
      const SmallRun files;
      const auto failed =
          train_overlapped(files, settings, steps, session::StartFrom::new_state, failing(request));
      if (failed.ok()) continue;  // it made fewer requests
      const auto store = state::StateStore::open_read_only({files.folder.file("state")});
      REQUIRE(store.ok());
      const std::int64_t step = (*store)->committed().position.step;
      committed.insert(step);
      const PlantedSteps left(steps.begin() + step, steps.end());
      INFO("request " << request << " step " << step << ": " << text_of(settings));
      const auto rest = train_overlapped(files, settings, left, session::StartFrom::last_commit);
      REQUIRE(rest.ok());
      CHECK(rest->trained.digest == whole->trained.digest);
    }
  }
  CHECK(committed.size() > (kIsSanitized ? 1 : 3));
  CHECK(refuted > 0);
}

TEST_CASE("overlap changes no bit, in any way to offload") {
  std::int64_t ahead = 0;
  for (const OffloadWay& way : ways_to_offload()) {
    const SmallRun plain_files;
    const auto plain = train_small(plain_files, with(way, {"max_grad_norm=0"}));
    const SmallRun files;
    const auto trained =
        train_overlapped(files, with(way, {"max_grad_norm=0", "overlap=exact"}), PlantedSteps(1));
    INFO(text_of(way));
    REQUIRE(plain.ok());
    REQUIRE(trained.ok());
    CHECK(trained->trained.losses == plain->losses);
    CHECK(trained->trained.digest == plain->digest);
    CHECK(trained->refuted_count == 0);
    ahead += trained->ahead_count;
  }
  CHECK(ahead > 0);
}

TEST_CASE("1,000 planted decisions: clipped norms and overflows, updated ahead and done again") {
  constexpr int kSteps = 40;
  const std::vector<std::vector<std::string>> ways = {
      {"method=host", "pipeline=nbuffer", "buffers=3"},
      {"method=csd", "pipeline=nbuffer", "buffers=2"},
      {"method=host", "pipeline=serial", "gradient_tier=memory"},
      {"method=csd", "pipeline=handover"},
      {"method=csd", "pipeline=nbuffer", "wire=native", "density=0.05", "error_feedback=true"},
      {"method=host", "pipeline=nbuffer", "state_cache=40KiB", "buffers=4"},
      {"method=csd", "pipeline=nbuffer", "state_cache=30KiB", "commit_every=3"},
      {"method=csd", "pipeline=serial", "state_cache=30KiB", "grad_accum_steps=2"},
      {"method=host", "pipeline=handover", "state_cache=40KiB", "commit_every=2"},
      {"method=host", "pipeline=nbuffer", "parameter_tier=storage", "buffers=3"},
      {"method=csd", "pipeline=handover", "parameter_tier=storage", "activations=offload"},
      {"method=csd", "pipeline=nbuffer", "prefetch=false", "subgroup_elements=700", "devices=3"},
  };
  int decisions = 0;
  std::int64_t refuted = 0;
  for (std::uint64_t seed = 0; decisions < (kIsSanitized ? 480 : 1000); ++seed) {
    const PlantedSteps steps = random_steps(seed, kSteps);
    const std::vector<std::string> settings =
        with(with(kPlantable, ways[seed % ways.size()]), {"steps=" + std::to_string(kSteps)});
    const SmallRun plain_files;
    const auto plain = train_overlapped(plain_files, settings, steps);
    const SmallRun files;
    const auto trained = train_overlapped(files, with(settings, {"overlap=exact"}), steps);
    INFO("seed " << seed << ": " << text_of(settings));
    INFO((trained.ok() ? std::string() : trained.error().message()));
    REQUIRE(plain.ok());
    REQUIRE(trained.ok());
    REQUIRE(plain->ahead_count == 0);
    REQUIRE(trained->trained.losses == plain->trained.losses);
    REQUIRE(trained->trained.digest == plain->trained.digest);
    decisions += kSteps;
    refuted += trained->refuted_count;
  }
  CHECK(refuted > 0);
}
