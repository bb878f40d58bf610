#include "core/offload/offload.h"

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

}  // namespace

Offload::Offload(const Parts& parts)
    : parts_(parts),
      subgroups_of_(subgroups_by_device(parts.versions)),
      store_(parts.format, parts.versions, parts.drives, parts.memory, parts.options.gradient_tier),
      norm_plan_(norm_plan(parts.options, parts.layout, parts.versions.geometry())),
      gradients_({parts.options, parts.layout, parts.versions.geometry(), parts.format, store_,
                  parts.memory, parts.kernels, norm_plan_ ? &*norm_plan_ : nullptr},
                 parts.bounces),
      arrival_(parts.runtime, parts.layout, parts.versions.geometry()),
      parameter_store_(parts.layout, parts.versions.geometry(), parts.versions.device_map(),
                       parts.options),
      carrier_({parts.runtime, parts.layout, parts.options, parts.versions.device_map(),
                parts.kernels, parts.drives, parts.bounces, parameter_store_, arrival_,
                parts.parameters}),
      initial_state_({parts.options, parts.versions, parts.kernels, parts.drives, parts.bounces,
                      parts.parameters, parameter_store_, subgroups_of_}),
      subgroups_({parts.runtime, parts.options, parts.versions, store_, parts.drives, parts.sites,
                  parts.cache, parameter_store_}),
      pipeline_(make_pipeline({parts.runtime, parts.options, parts.versions.geometry(), subgroups_,
                               parts.sites, arrival_, subgroups_of_})),
      updates_{StepUpdate(parts.runtime, gradients_.check_counts()),
               StepUpdate(parts.runtime, gradients_.check_counts())},
      tail_(parts.runtime) {
  updates_[0].before = &updates_[1];
  updates_[1].before = &updates_[0];
  if (!norm_plan_) return;
  for (StepUpdate& update : updates_) update.clip.emplace(*norm_plan_, parts.versions.geometry());
}

runtime::Task<Status> Offload::create_state(const FillInitial& fill,
                                            const state::TrainingPosition& position) {
  Status created = co_await initial_state_.create(fill, this_update());
  CO_RETURN_IF_ERROR(created);
  parts_.versions.end_step(this_update(), position);
  Status committed = co_await parts_.versions.commit(parts_.runtime, kBeforeSteps);
  co_return committed;
}

void Offload::begin_step(std::int32_t step, double loss_scale, const UpdateAhead& ahead) {
  this_ = 1 - this_;
  StepUpdate& update = this_update();
  update.begin(step, parts_.options.commits(step), ahead);
  gradients_.begin(update, loss_scale);
  // Which state moves is known only once the step before has ended.
  const bool reads_ahead = pipeline_->goes_into_next_step() && !parts_.versions.moves_any();
  update.starts.spawn(start_update(update, reads_ahead));
  if (reads_ahead) pipeline_->start(update);
}

// The step before takes its slots with it when it ends.
runtime::Task<Status> Offload::start_update(StepUpdate& update, bool reads_ahead) {
  Status ended = co_await tail_.join();
  CO_RETURN_IF_ERROR(ended);
  Status taken = parts_.versions.take_next(update);
  CO_RETURN_IF_ERROR(taken);
  update.started.set();
  if (!reads_ahead) pipeline_->start(update);
  co_return ok_status();
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
  const bool is_left_to_next_step = pipeline_->goes_into_next_step() && decision.apply;
  if (is_left_to_next_step) arrival_.expect_all();  // forward is over: nobody waits for the last
  update.decide(decision);
  if (is_left_to_next_step) {
    for (const SubgroupId subgroup : ids_of(update.next_slot)) {
      const bool is_up = update.speculation.is_up(subgroup);
      if (is_up && !update.speculation.is_refuted(subgroup)) arrival_.arrived(subgroup);
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
  Status restored = co_await initial_state_.load(refuted);
  CO_RETURN_IF_ERROR(restored);
  Status taken_back = co_await gradients_.take_back();
  co_return taken_back;
}

runtime::Task<Status> Offload::end_step(const state::TrainingPosition& position) {
  if (pipeline_->goes_into_next_step()) {
    tail_.spawn(finish_step(position, this_update()));
    co_return ok_status();
  }
  Status closed = co_await close_step(position, this_update());
  co_return closed;
}

runtime::Task<Status> Offload::finish_step(state::TrainingPosition position, StepUpdate& update) {
  Status written = co_await update.tasks.join();
  CO_RETURN_IF_ERROR(written);
  update.all_read.set();  // of a step that was skipped nothing was
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
  for (const std::vector<SubgroupId>& kept : parts_.cache.kept()) {
    if (!kept.empty()) devices.spawn(subgroups_.write_unwritten(kept, step));
  }
  Status written = co_await devices.join();
  CO_RETURN_IF_ERROR(written);
  Status committed = co_await parts_.versions.commit(parts_.runtime, step);
  co_return committed;
}

runtime::Task<Status> Offload::settle() {
  Status status = co_await tail_.join();
  co_return status;
}

runtime::Task<Status> Offload::commit() {
  Status settled = co_await tail_.join();
  CO_RETURN_IF_ERROR(settled);
  if (!parts_.versions.has_uncommitted()) co_return ok_status();
  Status committed = co_await make_durable(this_update().step);
  co_return committed;
}

runtime::Task<Status> Offload::drain() {
  parts_.runtime.fail(make_error(ErrorCode::cancelled, "the step was given up"));
  Status first = co_await gradients_.sent();
  for (StepUpdate* update : {&this_update(), this_update().before}) {
    Status started = co_await update->starts.join();  // it waits for the tail
    if (first.ok()) first = started;
  }
  Status settled = co_await tail_.join();
  if (first.ok()) first = settled;
  for (StepUpdate& update : updates_) {
    Status updated = co_await update.tasks.join();
    if (first.ok()) first = updated;
  }
  co_return first;
}

}  // namespace sluice::offload
