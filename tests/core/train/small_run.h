#pragma once
// A run small enough for tests: its files in a folder of its own, trained by the arithmetic model.

#include <fstream>
#include <string>

#include "core/plan/run_plan.h"
#include "core/runtime/runtime.h"
#include "core/session/open_run.h"
#include "core/session/run_clock.h"
#include "core/session/run_memory.h"
#include "core/session/run_observer.h"
#include "core/session/run_state.h"
#include "core/train/rank_digest.h"
#include "core/train/ranks.h"
#include "core/train/trainer.h"
#include "core/train/training_run.h"
#include "tests/core/train/arithmetic_model.h"
#include "tests/test_folder.h"

namespace sluice {

inline void write_text(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

struct SmallRun {
  TestFolder folder;

  explicit SmallRun(int layers = 2, int hidden = 16) {
    write_text(folder.file("model.toml"),
               fmt::format("name = \"small\"\nlayers = {}\nhidden = {}\nheads = 2\n"
                           "sequence = 16\nvocabulary = 256\n",
                           layers, hidden));
    std::string text;
    for (int i = 0; i < 4000; ++i) text += static_cast<char>('a' + (i * i + i / 7) % 26);
    write_text(folder.file("text.txt"), text);
  }

  // `settings` are added to those every small run has, among them the least memory that is to be
  // registered, which the kernel clears in each run.
  Result<settings::RunConfig> config(std::vector<std::string> settings) const {
    std::vector<std::string> all = {
        "batch=2",         "sequence=16",        "steps=6",
        "devices=2",       "clock=real",         "subgroup_elements=1500",
        "sample_tokens=0", "caching=buffered",   "bounce_memory=8MiB",
        "warmup_steps=2",  "validation_every=0", "output=" + folder.path()};
    all.insert(all.end(), settings.begin(), settings.end());
    const std::string toml =
        fmt::format("model = \"{}\"\nplatform = \"{}\"\ntext = \"{}\"\n", folder.file("model.toml"),
                    std::string(SLUICE_SOURCE_DIR) + "/sample_models/platforms/smartssd-a5000.toml",
                    folder.file("text.txt"));
    return settings::parse_run_config(toml, "small.toml", all);
  }
};

struct Quiet final : session::RunObserver {
  void on_step(const session::StepReport& report) override { steps.push_back(report); }
  void on_knobs_changed(std::int64_t step, TimeNs /*ts*/,
                        std::span<const settings::KnobChange> changes,
                        const session::AskedChange* /*asked*/) override {
    for (const settings::KnobChange& change : changes) {
      knobs.push_back(fmt::format("{}: {} {} -> {}", step, change.knob, change.from, change.to));
    }
  }
  std::vector<session::StepReport> steps;
  std::vector<std::string> knobs;  // that changed
};

struct Trained {
  std::vector<double> losses;
  std::string digest;
  std::vector<session::StepReport> steps;
  std::vector<std::string> knobs;  // that changed
  std::vector<runtime::LinkBytes> link_bytes;
  std::int64_t parameter_count = 0;
};

using WrapEngine = std::function<std::unique_ptr<io::IoEngine>(std::unique_ptr<io::IoEngine>)>;

// All that the run's ranks have.
inline Result<std::string> digest_of(train::TrainingRun& run) {
  if (run.ranks() != nullptr) {
    return train::digest_of_ranks(*run.ranks(), run.plan().share, run.plan().layout,
                                  run.session().state().store());
  }
  ASSIGN_OR_RETURN(const state::StateDigest digest,
                   state::digest_state(run.session().state().store(), nullptr, nullptr));
  return digest.digest;
}

// As one of `ranks`, in a folder of its own; null: the only one.
inline Result<settings::RunConfig> config_of_rank(const SmallRun& files,
                                                  const std::vector<std::string>& settings,
                                                  train::Ranks* ranks) {
  ASSIGN_OR_RETURN(settings::RunConfig config, files.config(settings));
  if (ranks == nullptr) return config;
  config.batch.rank_count = ranks->count();
  config.shards.rank = ranks->rank();
  config.shards.node_ranks = ranks->count();
  config.files.output = files.folder.file(fmt::format("rank-{}", ranks->rank()));
  config.files.state_directory = config.files.state_places.of_rank(ranks->rank());
  config.files.database = config.files.output + "/run.db";
  return config;
}

// Opens, prepares and trains, and reads the digest from the drives afterwards. Where there are
// `ranks`, as one of them, in a folder of its own.
inline Result<Trained> train_small(const SmallRun& files, const std::vector<std::string>& settings,
                                   session::StartFrom start = session::StartFrom::new_state,
                                   const WrapEngine& wrap = {},
                                   std::span<const session::PlannedChange> changes = {},
                                   csd::DeviceFactory* devices = nullptr,
                                   const model::ModelFactory& factory = arithmetic_factory(),
                                   train::Ranks* ranks = nullptr) {
  ASSIGN_OR_RETURN(const settings::RunConfig config, config_of_rank(files, settings, ranks));
  train::TrainingRun::Request request;
  request.config = &config;
  request.factory = &factory;
  request.start = start;
  request.wrap_engine = wrap;
  request.devices = devices;
  request.ranks = ranks;
  ASSIGN_OR_RETURN(const std::unique_ptr<train::TrainingRun> run,
                   train::TrainingRun::open(request));
  RETURN_IF_ERROR(run->prepare(start));
  Quiet observer;
  ASSIGN_OR_RETURN(const train::TrainReport report, train::train(*run, {{&observer}, {}}, changes));
  ASSIGN_OR_RETURN(const std::string digest, digest_of(*run));
  return Trained{report.losses,     digest,
                 observer.steps,    observer.knobs,
                 report.link_bytes, run->plan().layout.parameter_count};
}

// Settings, and what more a way asks for.
inline std::vector<std::string> with(std::vector<std::string> settings,
                                     const std::vector<std::string>& more) {
  settings.insert(settings.end(), more.begin(), more.end());
  return settings;
}

inline std::string text_of(const std::vector<std::string>& settings) {
  return fmt::format("{}", fmt::join(settings, " "));
}

// Empty where it has trained.
inline std::string message_of(const Result<Trained>& trained) {
  return trained.ok() ? std::string() : trained.error().message();
}

}  // namespace sluice
