#include "core/offload/offload.h"

#include <array>
#include <optional>
#include <vector>

#include "core/offload/base_parameters.h"
#include "core/offload/gradient_store.h"
#include "core/offload/host_kernels.h"
#include "core/offload/initial_state.h"
#include "core/offload/offload_memory.h"
#include "core/offload/state_cache.h"
#include "core/offload/state_versions.h"
#include "core/offload/step_gradients.h"
#include "core/offload/step_update.h"
#include "core/offload/update_pipeline.h"

namespace sluice::offload {
namespace {

constexpr std::int32_t kBeforeSteps = -1;

IdVector<DeviceId, std::vector<SubgroupId>> subgroups_by_device(const StateVersions& versions) {
  const state::Geometry& geometry = versions.geometry();
  IdVector<DeviceId, std::vector<SubgroupId>> of_device(geometry.device_count);
  for (const SubgroupId subgroup : all_ids<SubgroupId>(geometry.subgroup_count())) {
    of_device[versions.device_of(subgroup)].push_back(subgroup);
  }
  return of_device;
}

// Each device's, of what is trained.
IdVector<DeviceId, std::int64_t> parameter_bytes_of(const Offload::Parts& parts) {
  IdVector<DeviceId, std::int64_t> sizes;
  for (const DeviceId device : ids_of(parts.drives)) {
    sizes.push_back(parameter_file_bytes(parts.versions.geometry(), parts.versions.device_map(),
                                         device, parts.options));
  }
  return sizes;
}

}  // namespace

struct Offload::Rooms {
  explicit Rooms(const Parts& parts);

  IdVector<DeviceId, std::vector<SubgroupId>> subgroups_of;
  GradientStore store;
  std::optional<NormPlan> norm_plan;  // overlap=local
  StepGradients gradients;
  ParameterArrival arrival;
  ParameterStore parameter_store;
  ParameterCarrier carrier;
  std::optional<BaseParameters> base;
  std::optional<WithBase> with_base;
  InitialState initial_state;
  SubgroupUpdate subgroups;
  std::unique_ptr<UpdatePipeline> pipeline;
  std::array<StepUpdate, 2> updates;
  runtime::TaskGroup tail;  // what a pipeline leaves of a step for the next one, and its commit
};

Offload::Rooms::Rooms(const Parts& parts)
    : subgroups_of(subgroups_by_device(parts.versions)),
      store(parts.format, parts.versions, parts.drives, parts.memory, parts.options.gradient_tier),
      norm_plan(offload::norm_plan(parts.options, parts.layout, parts.versions.geometry())),
      gradients({parts.options, parts.layout, parts.versions.geometry(), parts.format, store,
                 parts.memory, parts.kernels, norm_plan ? &*norm_plan : nullptr},
                parts.bounces),
      arrival(parts.runtime, parts.layout, parts.versions.geometry()),
      parameter_store(parts.layout, parts.versions.geometry(), parts.versions.device_map(),
                      parts.options),
      carrier({parts.runtime, parts.layout, parts.options, parts.versions.device_map(),
               parts.kernels, parts.drives, parts.bounces, parameter_store, arrival,
               parts.parameters}),
      initial_state({parts.options, parts.versions, parts.kernels, parts.drives, parts.bounces,
                     parts.parameters, parameter_store, subgroups_of}),
      subgroups({parts.runtime, parts.options, parts.versions, store, parts.drives, parts.sites,
                 parts.cache, parameter_store}),
      pipeline(make_pipeline({parts.runtime, parts.options, parts.versions.geometry(), subgroups,
                              parts.sites, arrival, subgroups_of})),
      updates{StepUpdate(parts.runtime, gradients.check_counts()),
              StepUpdate(parts.runtime, gradients.check_counts())},
      tail(parts.runtime) {
  if (parts.base != nullptr) {
    base.emplace(BaseParameters::Parts{parts.runtime, *parts.base, parts.options, parts.kernels,
                                       parts.drives, parts.bounces, parts.base_parameters},
                 parameter_bytes_of(parts));
    with_base.emplace(carrier, base->carrier());
  }
  updates[0].before = &updates[1];
  updates[1].before = &updates[0];
  if (!norm_plan) return;
  for (StepUpdate& update : updates) update.clip.emplace(*norm_plan, parts.versions.geometry());
}

Offload::Offload(const Parts& parts) : parts_(parts), rooms_(std::make_unique<Rooms>(parts)) {}

Offload::~Offload() = default;

void Offload::end_if(Stops stops) { rooms_->initial_state.end_if(std::move(stops)); }
ParameterCarrier& Offload::parameters() { return rooms_->carrier; }
ParameterSource& Offload::source() {
  if (rooms_->with_base) return *rooms_->with_base;
  return rooms_->carrier;
}
std::int64_t Offload::base_bytes(LayerId layer) const {
  return rooms_->base ? rooms_->base->layer_bytes(layer) : 0;
}
const ParameterArrival& Offload::arrival() const { return rooms_->arrival; }
StepGradients& Offload::gradients() { return rooms_->gradients; }
const Speculation& Offload::speculation() const { return rooms_->updates[this_].speculation; }
StepUpdate& Offload::this_update() { return rooms_->updates[this_]; }

runtime::Task<Status> Offload::write_base(const FillInitial& fill, const Stops& stops) {
  return rooms_->base->write(fill, stops);
}

runtime::Task<Status> Offload::load_parameters() { return rooms_->initial_state.load(); }

runtime::Task<Status> Offload::create_state(const FillInitial& fill,
                                            const state::TrainingPosition& position) {
  Status created = co_await rooms_->initial_state.create(fill, this_update());
  CO_RETURN_IF_ERROR(created);
  parts_.versions.end_step(this_update(), position);
  Status committed = co_await parts_.versions.commit(parts_.runtime, kBeforeSteps);
  co_return committed;
}

void Offload::begin_step(std::int32_t step, double loss_scale, const UpdateAhead& ahead) {
  this_ = 1 - this_;
  StepUpdate& update = this_update();
  update.begin(step, parts_.options.commits(step), ahead);
  rooms_->gradients.begin(update, loss_scale);
  rooms_->subgroups.readers().reset();
  // Which state moves is known only once the step before has ended.
  const bool reads_ahead = rooms_->pipeline->goes_into_next_step() && !parts_.versions.moves_any();
  update.starts.spawn(start_update(update, reads_ahead));
  if (reads_ahead) rooms_->pipeline->start(update);
}

// The step before takes its slots with it when it ends.
runtime::Task<Status> Offload::start_update(StepUpdate& update, bool reads_ahead) {
  Status ended = co_await rooms_->tail.join();
  CO_RETURN_IF_ERROR(ended);
  Status taken = parts_.versions.take_next(update);
  CO_RETURN_IF_ERROR(taken);
  update.started.set();
  if (!reads_ahead) rooms_->pipeline->start(update);
  co_return ok_status();
}

runtime::Task<Status> Offload::halt_ahead() {
  this_update().speculation.halt();
  Status read = co_await rooms_->subgroups.readers().none();
  co_return read;
}

runtime::Task<Status> Offload::refuse_step() {
  Status started = co_await this_update().starts.join();
  CO_RETURN_IF_ERROR(started);
  std::optional<NormPlan::Place> place;
  if (this_update().clip) place = this_update().clip->not_finite();
  const Error error = make_error(
      ErrorCode::diverged, "the gradients of step {} are not finite{}", this_update().step + 1,
      place ? fmt::format(" (layer {}, subgroup {})", parts_.layout.layer(place->layer).name,
                          index_of(place->subgroup))
            : "");
  parts_.runtime.fail(error);
  co_return error;
}

runtime::Task<Status> Offload::update(const StepDecision& decision) {
  StepUpdate& update = this_update();
  Status started = co_await update.starts.join();
  CO_RETURN_IF_ERROR(started);
  const bool is_left_to_next_step = rooms_->pipeline->goes_into_next_step() && decision.apply;
  if (is_left_to_next_step)
    rooms_->arrival.expect_all();  // forward is over: nobody waits for the last
  update.decide(decision);
  if (is_left_to_next_step) {
    for (const SubgroupId subgroup : ids_of(update.next_slot)) {
      const bool is_up = update.speculation.is_up(subgroup);
      if (is_up && !update.speculation.is_refuted(subgroup)) rooms_->arrival.arrived(subgroup);
    }
    co_return ok_status();
  }
  Status status = co_await update.tasks.join();
  if (status.ok() && !decision.apply) status = co_await skip(update);
  co_return status;
}

// A subgroup that was updated already is as if it had not been: the old version is whole on its
// drive, and the parameters are made of it again.
runtime::Task<Status> Offload::skip(StepUpdate& update) {
  std::vector<SubgroupId> refuted;
  for (const SubgroupId subgroup : ids_of(update.next_slot)) {
    if (!update.speculation.is_refuted(subgroup)) continue;
    parts_.cache.forget(subgroup);
    refuted.push_back(subgroup);
  }
  Status restored = co_await rooms_->initial_state.load(refuted);
  CO_RETURN_IF_ERROR(restored);
  for (const SubgroupId subgroup : refuted) parts_.cache.on_loaded(subgroup);
  Status taken_back = co_await rooms_->gradients.take_back();
  co_return taken_back;
}

runtime::Task<Status> Offload::end_step(const state::TrainingPosition& position) {
  if (rooms_->pipeline->goes_into_next_step()) {
    rooms_->tail.spawn(finish_step(position, this_update()));
    co_return ok_status();
  }
  Status closed = co_await close_step(position, this_update());
  co_return closed;
}

runtime::Task<Status> Offload::finish_step(state::TrainingPosition position, StepUpdate& update) {
  Status written = co_await update.tasks.join();
  CO_RETURN_IF_ERROR(written);
  update.unread.none.set();  // of a step that was skipped nothing was
  Status closed = co_await close_step(position, update);
  co_return closed;
}

// All is written.
runtime::Task<Status> Offload::close_step(const state::TrainingPosition& position,
                                          StepUpdate& update) {
  parts_.versions.end_step(update, position);
  if (!update.commits) co_return ok_status();
  Status committed = co_await make_durable(update.step);
  co_return committed;
}

// Newest versions that are in memory alone go to the drives first.
runtime::Task<Status> Offload::make_durable(std::int32_t step) {
  runtime::TaskGroup devices(parts_.runtime);
  for (const std::vector<SubgroupId>& of_device : rooms_->subgroups_of) {
    devices.spawn(rooms_->subgroups.write_unwritten(of_device, step));
  }
  Status written = co_await devices.join();
  CO_RETURN_IF_ERROR(written);
  Status committed = co_await parts_.versions.commit(parts_.runtime, step);
  co_return committed;
}

runtime::Task<Status> Offload::settle() {
  Status status = co_await rooms_->tail.join();
  co_return status;
}

runtime::Task<Status> Offload::commit() {
  Status settled = co_await rooms_->tail.join();
  CO_RETURN_IF_ERROR(settled);
  if (!parts_.versions.has_uncommitted()) co_return ok_status();
  Status committed = co_await make_durable(this_update().step);
  co_return committed;
}

runtime::Task<Status> Offload::drain() {
  parts_.runtime.fail(make_error(ErrorCode::cancelled, "the step was given up"));
  Status first = co_await rooms_->gradients.sent();
  for (StepUpdate* update : {&this_update(), this_update().before}) {
    Status started = co_await update->starts.join();  // it waits for the tail
    if (first.ok()) first = started;
  }
  Status settled = co_await rooms_->tail.join();
  if (first.ok()) first = settled;
  for (StepUpdate& update : rooms_->updates) {
    Status updated = co_await update.tasks.join();
    if (first.ok()) first = updated;
  }
  co_return first;
}

}  // namespace sluice::offload
