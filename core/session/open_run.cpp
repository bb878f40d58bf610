#include "core/session/open_run.h"

#include <algorithm>

#include "core/csd/device_factory.h"
#include "core/offload/assembly.h"
#include "core/offload/assembly_plan.h"
#include "core/offload/offload.h"
#include "core/offload/offload_memory.h"
#include "core/offload/parameter_pages.h"
#include "core/plan/knob_change.h"
#include "core/plan/memory_counters.h"
#include "core/runtime/recording.h"
#include "core/session/open_run_request.h"
#include "core/session/run_clock.h"
#include "core/session/run_state.h"

namespace sluice::session {

OpenRun::OpenRun(OpenRunRequest request)
    : request_(std::make_unique<OpenRunRequest>(std::move(request))),
      state_(std::make_unique<RunState>(request_->plan, std::move(request_->history))) {
  if (request_->devices == nullptr) {
    emulated_devices_ = std::make_unique<csd::EmulatedFactory>(csd::Payload::real);
    request_->devices = emulated_devices_.get();
  }
  if (request_->pinned_memory == nullptr) {
    request_->pinned_memory = std::make_shared<io::PinnedMemory>();
  }
}

OpenRun::~OpenRun() = default;

const plan::RunPlan& OpenRun::plan() const { return request_->plan; }
const RunMemory& OpenRun::memory() const { return request_->memory; }
std::string OpenRun::device_description() const { return request_->devices->description(); }
io::PinnedMemory& OpenRun::pinned_memory() const { return *request_->pinned_memory; }
runtime::Runtime& OpenRun::runtime() { return clock_->runtime(); }
offload::Offload& OpenRun::offload() { return assembly_->offload(); }

Result<std::unique_ptr<OpenRun>> OpenRun::open(OpenRunRequest request) {
  std::unique_ptr<OpenRun> run(new OpenRun(std::move(request)));
  const plan::RunPlan& plan = run->plan();
  ASSIGN_OR_RETURN(RunClock clock,
                   RunClock::open(plan.config, plan.platform, run->request_->recorder,
                                  run->request_->wrap_engine));
  run->clock_ = std::make_unique<RunClock>(std::move(clock));
  RETURN_IF_ERROR(run->take_memory());
  return run;
}

Status OpenRun::take_memory() {
  const std::int64_t element_bytes = bytes_of(plan().options.parameter_kind);
  const std::int64_t size_bytes = plan().layout.parameter_count * element_bytes;
  if (plan().share.is_gathered()) {
    ASSIGN_OR_RETURN(parameter_part_, pinned_memory().allocate(
                                          plan().share.parameters.parameter_count * element_bytes));
  }
  if (plan().options.streams_parameters() || plan().share.is_gathered()) {
    ASSIGN_OR_RETURN(io::PageAlignedBuffer addresses, offload::map_parameters(size_bytes));
    parameters_ = io::PinnedBuffer(std::move(addresses));
  } else {
    ASSIGN_OR_RETURN(parameters_, pinned_memory().allocate(size_bytes));
  }
  return take_offload();
}

Status OpenRun::take_offload() {
  offload::AssemblyPlan assembly = plan::assembly_plan(plan(), csd::Payload::real);
  assembly.pinned_memory = &pinned_memory();
  if (request_->committed_elsewhere) {
    assembly.committed_elsewhere = [this](std::int32_t step) {
      return request_->committed_elsewhere(runtime(), step);
    };
  }
  const shard::Stretch owned = plan().share.owned();
  ASSIGN_OR_RETURN(
      assembly_,
      offload::Assembly::take(assembly, runtime(), *request_->devices,
                              parameter_part().subspan(owned.first, owned.count), request_->base));
  clock_->register_buffers(assembly_->transfer_regions());
  return ok_status();
}

ParameterSpan OpenRun::parameters() {
  return {parameters_.bytes().data(), plan().layout.parameter_count, plan().options.parameter_kind};
}

ParameterSpan OpenRun::parameter_part() {
  if (!plan().share.is_gathered()) return parameters();
  return {parameter_part_.bytes().data(), plan().share.parameters.parameter_count,
          plan().options.parameter_kind};
}

Status OpenRun::attach() {
  RETURN_IF_ERROR(assembly_->attach(state_->store(), plan().config.storage.caching));
  if (runtime::RecordingSink* const recording = clock_->recording(); recording != nullptr) {
    plan::record_memory(*recording, plan(), assembly_->sites(), runtime().now_ns());
  }
  return ok_status();
}

Status OpenRun::begin(const Recipe& recipe, const offload::FillInitial& fill,
                      const state::TrainingPosition& position, const Stops& stops) {
  RETURN_IF_ERROR(state_->begin_recipe(recipe));
  state_->remove_residual();
  offload().end_if(stops);
  const Status created = runtime().run(offload().create_state(fill, position));
  offload().end_if({});  // steps load as well
  RETURN_IF_ERROR(created);
  return state_->begin_residual();
}

Status OpenRun::load_parameters(const Stops& stops) {
  offload().end_if(stops);
  Status loaded = runtime().run(offload().load_parameters());
  offload().end_if({});
  return loaded;
}

Status OpenRun::settle() {
  Status settled = runtime().run(offload().settle());
  if (clock_->recording() != nullptr) clock_->recording()->record_counters();
  return settled;
}

Status OpenRun::commit() {
  Status committed = runtime().run(offload().commit());
  if (clock_->recording() != nullptr) clock_->recording()->record_counters();
  return committed;
}

// The platform stays where it is: the clock refers to it.
void OpenRun::set_plan(const plan::PlannedKnobs& planned) {
  plan::RunPlan& plan = request_->plan;
  plan.config = planned.run.config;
  plan.options = planned.run.options;
  plan.device_map = planned.run.device_map;
  plan.base = planned.run.base;
  plan.activations = planned.run.activations;
  plan.layer_costs = planned.run.layer_costs;
  request_->memory.model = planned.model;
  request_->memory.host = planned.memory;
}

void OpenRun::set_level(record::Level before) {
  if (clock_->recording() == nullptr || plan().config.record == before) return;
  clock_->recording()->set_level(plan().config.record, "user");
}

void OpenRun::turn(const plan::PlannedKnobs& planned) {
  const record::Level level = plan().config.record;
  set_plan(planned);
  assembly_->set_prefetch(plan().options.prefetch);
  set_level(level);
}

Status OpenRun::apply(const plan::PlannedKnobs& planned, const std::function<Status()>& between) {
  RETURN_IF_ERROR(state_->store().reserve(planned.run.device_map));
  // The old offload is given back before the new one is taken: both at once may not fit.
  std::vector<float> residual;
  if (assembly_->memory().has_compress()) {
    residual = assembly_->memory().compress().take_residual();
  }
  clock_->register_buffers({});
  assembly_.reset();
  const record::Level level = plan().config.record;
  set_plan(planned);
  RETURN_IF_ERROR(between());
  clock_->set_lanes(plan().config.storage);
  RETURN_IF_ERROR(take_offload());
  RETURN_IF_ERROR(attach());
  const offload::OffloadOptions& options = plan().options;
  if (options.has_feedback() && options.selects_on_host() && !residual.empty()) {
    assembly_->memory().compress().set_residual(std::move(residual));
  }
  set_level(level);
  // The files of the parameters are new.
  return options.streams_parameters() ? load_parameters({}) : ok_status();
}

offload::ResidualPlace residual_of(OpenRun& run) {
  return run.plan().options.selects_on_host() ? run.assembly().residual_in_memory()
                                              : offload::ResidualPlace();
}

}  // namespace sluice::session
