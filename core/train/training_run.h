#pragma once
// A training run: an open run (core/session/open_run.h) with a model, a text and, where there are
// several, ranks.
//
// Thread contract: the thread that opens it is the schedule's.

#include <functional>
#include <memory>

#include "base/stops.h"
#include "core/model/model_factory.h"
#include "core/plan/memory_plan.h"
#include "core/session/recipe.h"
#include "core/session/start_from.h"
#include "core/session/tunable.h"
#include "core/session/wrap_engine.h"
#include "core/train/run_origin.h"
#include "core/train/training_text.h"

namespace sluice::csd {
class DeviceFactory;
}
namespace sluice::record {
class Recorder;
}
namespace sluice::session {
struct KeptSnapshot;
class OpenRun;
struct OpenRunRequest;
struct RunHardware;
}  // namespace sluice::session

namespace sluice::train {

class BaseWeights;
class ShardGroups;
class StepParts;

class TrainingRun final : public session::Tunable {
 public:
  struct Request {
    const settings::RunConfig* config = nullptr;
    const model::ModelFactory* factory = nullptr;
    session::StartFrom start = session::StartFrom::new_state;
    record::Recorder* recorder = nullptr;  // null: nothing is recorded
    // The devices of method=csd; null: emulated ones. Whoever opens a run with backend=xrt makes
    // them.
    csd::DeviceFactory* devices = nullptr;
    // Null: this is the only rank. They outlive the run. Collective: all ranks open theirs.
    // `config` has their number and this rank's own folders.
    Ranks* ranks = nullptr;
    session::WrapEngine wrap_engine = {};
    // Told of the memory plan before anything is taken, and of an accelerator's after it.
    std::function<void(const plan::MemoryPlan&)> on_plan = {};
    // Whether the work before the first step, or a snapshot, is to end early: with
    // ErrorCode::cancelled, and what is committed as it was. Asked by the schedule's thread.
    Stops stops = {};
  };
  // Takes all memory and opens the state (creating its files, but writing nothing into them yet).
  // A run that can be refused for its settings is refused before anything is written.
  static Result<std::unique_ptr<TrainingRun>> open(const Request& request);
  ~TrainingRun() override;

  session::OpenRun& session() { return *session_; }
  const plan::RunPlan& plan() const;
  const settings::RunConfig& config() const;
  model::BuiltModel& built() { return built_; }
  TrainingText& text() { return text_; }
  StepParts& step() { return *step_; }
  // Null: this is the only rank.
  Ranks* ranks() { return ranks_; }
  // For the mode line.
  session::RunHardware hardware() const;
  // How its state came about.
  const RunOrigin& origin() const { return origin_; }

  // Writes the initial state, or loads the parameters of the last commit.
  Status prepare(session::StartFrom start);
  // Between two steps: waits until nothing of the last one is under way.
  Status settle();
  // Between two steps that are committed (RunState::save_snapshot).
  Result<session::KeptSnapshot> save_snapshot();

  plan::LivePlan live_plan() const override;
  TimeNs now_ns() override;
  Status commit() override;
  Status make_room(const plan::PlannedKnobs& planned) override;
  Status apply(const plan::PlannedKnobs& planned) override;
  Status keep_recipe(const settings::RunConfig& in_force) override;
  Status agreed(const Status& mine) override;

 private:
  TrainingRun() = default;
  Result<session::OpenRunRequest> plan_all(const Request& request);
  Result<session::OpenRunRequest> plan_own(const Request& request);
  Status agreed_to_begin(const Status& mine);
  std::string run_folder() const;
  Status open_text();
  Status open_state(session::StartFrom start);
  Result<std::optional<StateFormat>> change_own_format();
  Status go_on_with_state();
  Status open_model(const model::ModelFactory& factory);
  Status take_base_by_layer(session::OpenRunRequest& planned);
  Status read_base();
  Status write_base();
  Status make_step_parts();

  Stops stops_;
  Ranks* ranks_ = nullptr;
  std::unique_ptr<ShardGroups> shard_groups_;
  RunOrigin origin_;
  TrainingText text_;
  session::Recipe recipe_;
  std::unique_ptr<BaseWeights> base_;  // of adapters; the model reads it
  std::unique_ptr<session::OpenRun> session_;
  model::BuiltModel built_;
  std::unique_ptr<StepParts> step_;
};

}  // namespace sluice::train
