#pragma once
// Everything a run is made of, in the order it is made: what the files say, the memory plan, the
// memory, the state on its devices, the clock, the offload, the model. The place that chooses
// a run's clock, and its devices unless the caller has made them (XRT's, cli/train_command.cpp).
//
// Thread contract: the thread that opens it is the schedule's.

#include <memory>
#include <optional>
#include <vector>

#include "base/stops.h"
#include "core/csd/device_factory.h"
#include "core/data/sampler.h"
#include "core/data/text_facts.h"
#include "core/model/model_factory.h"
#include "core/offload/assembly.h"
#include "core/offload/residual_file.h"
#include "core/plan/knob_change.h"
#include "core/plan/run_plan.h"
#include "core/platform/platform.h"
#include "core/runtime/byte_counters.h"
#include "core/runtime/clocks.h"
#include "core/runtime/recording.h"
#include "core/runtime/runtime.h"
#include "core/train/recipe.h"
#include "core/train/recipe_history.h"
#include "core/train/reshard.h"
#include "core/train/train_observer.h"
#include "core/train/training_step.h"
#include "profiler/record/recorder.h"
#include "storage/state/state_store.h"

namespace sluice::train {

enum class StartFrom : std::uint8_t { new_state, last_commit };

class TrainingRun {
 public:
  struct Request {
    const settings::RunConfig* config = nullptr;
    const model::ModelFactory* factory = nullptr;
    StartFrom start = StartFrom::new_state;
    record::Recorder* recorder = nullptr;  // null: nothing is recorded
    // The devices of method=csd; null: emulated ones. Whoever opens a run with backend=xrt makes
    // them.
    csd::DeviceFactory* devices = nullptr;
    // Null: this is the only rank. They outlive the run. Collective: all ranks open theirs.
    // `config` has their number and this rank's own folders.
    Ranks* ranks = nullptr;
    // What a test puts around the I/O engine (faults); empty: the engine as it is.
    std::function<std::unique_ptr<io::IoEngine>(std::unique_ptr<io::IoEngine>)> wrap_engine;
    // Told of the memory plan before anything is taken, and of an accelerator's after it.
    std::function<void(const plan::MemoryPlan&)> on_plan;
    // Whether what comes before the first step, or a snapshot, is to end early: with
    // ErrorCode::cancelled, and what is committed as it was. Asked by the schedule's thread.
    Stops stops;
  };
  // Takes all memory and opens the state (creating its files, but writing nothing into them yet).
  // What can be refused for what the settings say is refused before anything is written.
  static Result<std::unique_ptr<TrainingRun>> open(const Request& request);
  ~TrainingRun();

  const plan::RunPlan& plan() const { return plan_; }
  const settings::RunConfig& config() const { return plan_.config; }
  const platform::Platform& platform() const { return plan_.platform; }
  const model::ModelShape& shape() const { return plan_.shape; }
  const model::FlatLayout& layout() const { return plan_.layout; }
  // What the devices of method=csd are, and what computes if not the host; for the mode line.
  std::string device_description() const { return device_factory_->description(); }
  std::string compute_description() const {
    return built_.device != nullptr ? built_.device->description() : std::string();
  }
  // The ranks whose communication takes what the platform's cluster says, such as "2x2"; "": none.
  std::string emulated_ranks() const;
  const plan::MemoryPlan& memory_plan() const { return memory_plan_; }
  // What it has, for whoever plans a change of knobs.
  plan::LivePlan live_plan() const;
  const offload::OffloadOptions& offload_options() const { return plan_.options; }
  state::StateStore& store() { return *store_; }
  runtime::Runtime& runtime() { return *runtime_; }
  runtime::ByteCounters& bytes() { return *bytes_; }
  runtime::RecordingSink* recording() { return recording_.get(); }
  offload::Offload& offload() { return assembly_->offload(); }
  model::TrainableModel& model() { return *built_.model; }
  model::BuiltModel& built() { return built_; }
  data::Sampler& sampler() { return *sampler_; }
  StepContext& step_context() { return *step_context_; }
  // Null: nothing of what layers keep is to leave memory.
  const activation::ActivationCarrier* activations() const {
    return plan_.activations.offloads_anything() ? activations_.get() : nullptr;
  }
  // Null: this is the only rank.
  Ranks* ranks() { return ranks_; }
  // Null: each rank has all of the model and of its state.
  ShardTraffic* shards() { return shards_.get(); }
  // What a resume found of other ranks.
  const Resharded& resharded() const { return resharded_; }
  // What is another value than the steps of the state before had, from `store().committed()` on.
  const std::vector<settings::KnobChange>& recipe_changes() const { return recipe_changes_; }
  // Other settings are in force from the next step on, between two steps that are committed.
  Status keep_recipe(const settings::RunConfig& in_force);
  // Null under another clock.
  const runtime::EmulatedClock* emulated_clock() const { return emulated_clock_; }

  // Writes the initial state, or loads the parameters of the last commit.
  Status prepare(StartFrom start);
  // A change of knobs is planned first: plan::plan_knobs(live_plan(), wanted). The rest is for
  // between two steps that are committed. Reserves the drives' room for the change, so that a lack
  // of it is known before anything moves. A refusal leaves the run as it was.
  Status make_room(const plan::PlannedKnobs& planned);
  // Carries the change out, on the same state, clock, model and data. An error ends the run.
  Status apply(const plan::PlannedKnobs& planned);
  // Between two steps: waits until nothing of the last one is under way.
  Status settle();
  // And commits what is not committed yet.
  Status commit();
  // Between two steps that are committed: keeps the last commit, with the residual of error
  // feedback, as OUTPUT/snapshots/step-NNNNNN. On any error the run is as it was.
  Result<KeptSnapshot> save_snapshot();
  // After that, for a resume that goes on to the bit: the residual of error feedback.
  Status keep_residual();

 private:
  TrainingRun() = default;
  Status plan_all(const Request& request);
  Status plan_own(const Request& request);
  Status agreed(const Status& mine);
  Status check_text();
  Status check_start(StartFrom start) const;
  Status check_ranks();
  Status check_origin(StartFrom start);
  Status load_history(StartFrom start);
  Status open_text();
  data::SamplerOptions sampler_options() const;
  Status open_state(StartFrom start);
  Status go_on_with(const state::StateStore::Options& options);
  Status check_found() const;
  state::StateStore::Options state_options() const;
  Status begin_recipe();
  Status go_on_with_recipe();
  Status go_back_together(const state::StateStore::Options& options);
  Status plan_for_density_warmup(const plan::MemoryCap& cap);
  Status plan_memory(const model::ModelFactory& factory);
  Status prepare_gradient_work();
  TimeNs device_patience_ns() const;
  Status take_memory();
  Status take_offload();
  void register_buffers();
  Status attach_offload();
  Status attach_activations();
  Status open_shards();
  void attach_shards();
  Status share_parameters();
  Status make_activation_files();
  std::span<std::uint16_t> parameters();
  std::span<std::uint16_t> parameter_part();  // of this rank; all where each rank has all
  offload::ResidualPlace residual();
  Status bring_residual(platform::Direction direction, std::int64_t first,
                        std::span<std::byte> staging);
  offload::CompressMemory& compression() { return assembly_->memory().compress(); }
  Status open_clock(const Request& request);
  Status open_model(const model::ModelFactory& factory);
  std::vector<std::string> state_files() const;
  state::StateIdentity identity() const;
  std::string residual_path() const;
  Status load_residual();
  Status prepare_state(StartFrom start);
  Status keep_no_residual();  // so that a kill after this step is noticed

  Stops stops_;
  Ranks* ranks_ = nullptr;
  std::unique_ptr<ShardGroups> shard_groups_;
  Resharded resharded_;
  plan::RunPlan plan_;
  data::TextFacts text_;
  Recipe recipe_;
  // None: nothing is known of what the state was made with.
  std::optional<RecipeHistory> history_;
  std::vector<settings::KnobChange> recipe_changes_;
  plan::MemoryPlan memory_plan_;
  std::optional<plan::MemoryPlan> accelerator_memory_plan_;  // where one computes
  std::function<plan::ModelMemory(const plan::RunPlan&)> model_memory_of_;
  plan::ModelMemory model_memory_;  // by the plan in force
  std::optional<data::TokenFile> tokens_;
  std::optional<data::Sampler> sampler_;
  std::unique_ptr<state::StateStore> store_;
  std::shared_ptr<io::PinnedMemory> pinned_memory_;
  io::PinnedBuffer parameters_;
  io::PinnedBuffer parameter_part_;  // where layers are gathered
  std::unique_ptr<runtime::Runtime> runtime_;
  io::IoEngine* engine_ = nullptr;  // the runtime's, as is the next
  runtime::WorkExecutor* executor_ = nullptr;
  const runtime::EmulatedClock* emulated_clock_ = nullptr;
  std::unique_ptr<runtime::ByteCounters> bytes_;
  std::unique_ptr<runtime::RecordingSink> recording_;
  model::BuiltModel built_;
  csd::EmulatedFactory emulated_devices_{csd::Payload::real};
  csd::DeviceFactory* device_factory_ = nullptr;
  std::unique_ptr<offload::Assembly> assembly_;
  std::unique_ptr<activation::ActivationCarrier> activations_;
  std::unique_ptr<ShardTraffic> shards_;
  std::unique_ptr<StepContext> step_context_;
};

}  // namespace sluice::train
