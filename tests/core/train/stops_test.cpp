// Each long loop of a run hears that it is to end: after so many polls it has ended, and what is
// committed is there to go on from.

#include <catch2/catch.hpp>
#include <filesystem>

#include "core/train/rank_requests.h"
#include "tests/core/train/shard_runs.h"

using namespace sluice;

namespace {

// A run of batches without end, almost.
const std::vector<std::string> kValidates = {"validation_fraction=0.5", "validation_every=1",
                                             "validation_batches=40", "batch=1"};

// Asks the run to stop when it is polled for the `after`th time.
struct StopAfter final : session::RunRequests {
  explicit StopAfter(int after_polls) : after(after_polls) {}
  bool wants_stop() override { return ++polls >= after; }
  int after;
  int polls = 0;
};

// Says so once it was armed and asked `after` times.
struct ArmedStop {
  bool is_armed = false;
  int after = 3;
  int polls = 0;
  Stops stops() {
    return [this] { return is_armed && ++polls >= after; };
  }
};

// Writes one letter a token, so many that nobody waits for the last.
struct EndlessText final : model::TextWriter {
  EndlessText(std::int32_t layers, std::int64_t& tokens) : layer_count(layers), written(tokens) {}
  bool is_done() const override { return written >= 1'000'000'000; }
  Status forward(LayerId layer) override {
    if (index_of(layer) + 1 == layer_count) written += 1;
    return ok_status();
  }
  const std::string& text() const override { return letters; }
  std::int64_t written_count() const override { return written; }
  std::int32_t layer_count;
  std::int64_t& written;
  std::string letters;
};

struct SmallTraining {
  settings::RunConfig config;
  model::ModelFactory factory = arithmetic_factory();
  std::unique_ptr<train::TrainingRun> run;

  // Errors of opening and of preparing.
  Status begin(const SmallRun& files, const std::vector<std::string>& settings,
               session::StartFrom start, const Stops& stops,
               ArmedStop* arm_before_prepare = nullptr) {
    ASSIGN_OR_RETURN(config, files.config(settings));
    train::TrainingRun::Request request;
    request.config = &config;
    request.factory = &factory;
    request.start = start;
    request.stops = stops;
    ASSIGN_OR_RETURN(run, train::TrainingRun::open(request));
    if (arm_before_prepare != nullptr) arm_before_prepare->is_armed = true;
    return run->prepare(start);
  }
};

Status begun(SmallTraining& training, const SmallRun& files,
             const std::vector<std::string>& settings) {
  return training.begin(files, settings, session::StartFrom::new_state, {});
}

void check_stopped(const Status& status, const std::string& doing) {
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().code() == ErrorCode::cancelled);
  CHECK_THAT(status.error().message(), Catch::Contains("stopped by request while " + doing));
}

}  // namespace

TEST_CASE("a validation that is asked to stop is left out, and the run ends committed") {
  for (const char* tier : {"parameter_tier=memory", "parameter_tier=storage"}) {
    INFO(tier);
    const SmallRun files;
    std::vector<std::string> settings = with(kValidates, {tier});
    {
      SmallTraining training;
      REQUIRE(begun(training, files, settings).ok());
      StopAfter stop(4);
      const auto report = train::train(*training.run, {{}, {&stop}});
      REQUIRE(report.ok());
      CHECK(stop.polls == 4);  // none of the other batches was computed
      CHECK(report->stopped);
      CHECK(report->last_step == 1);
      CHECK_FALSE(report->validation.has_value());
      CHECK(report->left_out == std::vector<std::string>{"validation"});
    }
    CHECK(train_small(files, settings, session::StartFrom::last_commit).ok());
  }
}

TEST_CASE("ranks leave out the same validation") {
  const SmallRun files;
  const auto outcomes = on_ranks<train::TrainReport>(
      {.rank_count = 3, .seed = 1}, [&](train::Ranks& ranks) -> Result<train::TrainReport> {
        ASSIGN_OR_RETURN(const settings::RunConfig config,
                         config_of_rank(files, kValidates, &ranks));
        const model::ModelFactory factory = arithmetic_factory();
        train::TrainingRun::Request request;
        request.config = &config;
        request.factory = &factory;
        request.ranks = &ranks;
        ASSIGN_OR_RETURN(const auto run, train::TrainingRun::open(request));
        RETURN_IF_ERROR(run->prepare(session::StartFrom::new_state));
        StopAfter stop(ranks.rank() == 2 ? 50 : 1'000'000);  // in the second step's validation
        train::RankRequests agreed(ranks, {&stop});
        return train::train(*run, {{&agreed}, {&agreed}});
      });
  for (const Result<train::TrainReport>& rank : outcomes) {
    INFO((rank.ok() ? std::string() : rank.error().message()));
    REQUIRE(rank.ok());
    CHECK(rank->last_step == 2);
    CHECK(rank->stopped);
    CHECK(rank->left_out == std::vector<std::string>{"validation"});
  }
}

TEST_CASE("a sample text that is asked to stop is left out") {
  std::int64_t written = 0;
  struct StopAtToken final : session::RunRequests {
    explicit StopAtToken(std::int64_t& tokens) : written(tokens) {}
    bool wants_stop() override { return written >= 100; }
    std::int64_t& written;
  };
  const SmallRun files;
  SmallTraining training;
  training.factory.make = [&written, make = arithmetic_factory().make](
                              const model::ModelShape& shape, const model::ModelOptions& options,
                              const ParameterSpan& parameters) -> Result<model::BuiltModel> {
    ASSIGN_OR_RETURN(model::BuiltModel built, make(shape, options, parameters));
    const std::int32_t layers = built.model->layout().layer_count();
    built.write_text =
        [&written,
         layers](const model::SampleOptions&) -> Result<std::unique_ptr<model::TextWriter>> {
      return std::unique_ptr<model::TextWriter>(std::make_unique<EndlessText>(layers, written));
    };
    return built;
  };
  REQUIRE(begun(training, files, {"steps=2", "sample_tokens=1000", "sample_prompt=a"}).ok());
  StopAtToken stop(written);
  const auto report = train::train(*training.run, {{}, {&stop}});
  REQUIRE(report.ok());
  CHECK(report->last_step == 2);
  CHECK_FALSE(report->stopped);  // all steps are done
  CHECK_FALSE(report->sample.has_value());
  CHECK(report->left_out == std::vector<std::string>{"the sample text"});
  CHECK(written >= 100);
  CHECK(written < 150);
}

TEST_CASE("the initial state that is asked to stop is not committed, and a run can begin anew") {
  const SmallRun files;
  {
    ArmedStop stop;
    SmallTraining training;
    check_stopped(training.begin(files, {}, session::StartFrom::new_state, stop.stops(), &stop),
                  "writing the initial state");
    CHECK(training.run->session().state().store().committed().subgroups.empty());
    CHECK(stop.polls < 10);  // each device's loop asks once more
  }
  CHECK(train_small(files, {}).ok());
}

TEST_CASE("a resume that is asked to stop while it reads leaves the state as it is") {
  const SmallRun files;
  const auto first = train_small(files, {"steps=2"});
  REQUIRE(first.ok());
  for (const char* tier : {"parameter_tier=memory", "parameter_tier=storage"}) {
    ArmedStop stop;
    SmallTraining training;
    check_stopped(
        training.begin(files, {tier}, session::StartFrom::last_commit, stop.stops(), &stop),
        "reading the parameters");
    CHECK(stop.polls < 10);
    CHECK(digest_of(*training.run).value() == first->digest);
  }
}

TEST_CASE("what comes before the first step is not stopped in the steps") {
  // A step that is skipped after some of it was updated reads these subgroups again.
  const SmallRun files;
  ArmedStop stop;
  SmallTraining training;
  REQUIRE(training
              .begin(files, {"precision=fp16", "initial_loss_scale=4294967296", "overlap=exact"},
                     session::StartFrom::new_state, stop.stops())
              .ok());
  stop.is_armed = true;
  stop.after = 1;
  CHECK(train::train(*training.run, {}).ok());
}

TEST_CASE("a snapshot that is asked to stop is not there, and the next one is") {
  const SmallRun files;
  ArmedStop stop;
  SmallTraining training;
  REQUIRE(training.begin(files, {}, session::StartFrom::new_state, stop.stops()).ok());
  stop.is_armed = true;
  const auto refused = training.run->save_snapshot();
  CHECK(stop.polls == stop.after);
  check_stopped(refused.ok() ? ok_status() : Status(refused.error()), "keeping the snapshot");
  CHECK(std::filesystem::is_empty(files.folder.file("snapshots")));
  stop.is_armed = false;
  CHECK(training.run->save_snapshot().ok());
}

TEST_CASE("a change to other ranks that is asked to stop leaves the state of those before") {
  const SmallRun files = cut_in_eight();
  const std::vector<std::string> settings = {"subgroup_elements=9000", "devices=1", "batch=1"};
  const std::vector<std::string> parts = {"mesh=2x1", "shard_state=2x1"};
  for (const auto& rank : train_ranks(files, {2, with(with(settings, parts), {"steps=2"})})) {
    INFO(message_of(rank));
    REQUIRE(rank.ok());
  }
  {
    ArmedStop stop;
    stop.is_armed = true;
    stop.after = 6;  // the text is looked at before
    SmallTraining training;
    check_stopped(training.begin(files, settings, session::StartFrom::last_commit, stop.stops()),
                  "writing the state for other ranks");
    CHECK(stop.polls == stop.after);
  }
  const auto alone = train_small(files, settings, session::StartFrom::last_commit);
  INFO(message_of(alone));
  REQUIRE(alone.ok());
  CHECK(alone->steps.front().step == 3);
}
