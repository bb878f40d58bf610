#include "core/offload/offload.h"

#include <algorithm>

#include "base/check.h"
#include "core/offload/device_line.h"
#include "core/runtime/kernel_cost.h"

namespace sluice::offload {

std::int64_t gradient_file_bytes(const GradientFormat& format, const state::DeviceMap& device_map,
                                 DeviceId device, const OffloadOptions& options) {
  if (options.gradient_tier == GradientTier::memory) return 0;
  std::int64_t size_bytes = 0;
  for (std::size_t s = 0; s < device_map.size(); ++s) {
    if (device_map[s] != device) continue;
    const SubgroupId subgroup{static_cast<std::int32_t>(s)};
    size_bytes += round_up(format.size_bytes(subgroup), kPageBytes);
  }
  return size_bytes;
}

namespace {

state::DeviceMap devices_now(const state::Layout& layout) {
  state::DeviceMap devices;
  for (std::int32_t s = 0; s < layout.geometry().subgroup_count(); ++s) {
    devices.push_back(layout.device(SubgroupId{s}));
  }
  return devices;
}

}  // namespace

Offload::Offload(const OffloadOptions& options, const Parts& parts)
    : options_(options),
      parts_(parts),
      gradient_format_(options, *parts.layout, parts.state_layout->geometry()),
      gradient_plan_(make_gradient_plan(*parts.layout, parts.state_layout->geometry(),
                                        bytes_of(options.wire_gradient_kind()),
                                        options.bounce_bytes)),
      layer_stats_(parts.layout->layers.size()),
      layer_gradients_(*parts.runtime, kLayerGradientCount),
      bounces_(*parts.runtime, options.bounce_count),
      sparse_buffers_(*parts.runtime, kSparseBufferCount),
      staging_turn_(*parts.runtime, 1),
      gradients_ready_(*parts.runtime),
      arrival_(*parts.runtime, *parts.layout, parts.state_layout->geometry()),
      sends_(*parts.runtime),
      starts_(*parts.runtime),
      step_updates_{StepUpdate(*parts.runtime), StepUpdate(*parts.runtime)},
      tail_(*parts.runtime) {
  const auto subgroup_count = static_cast<std::size_t>(geometry().subgroup_count());
  if (parts_.device_map.empty()) parts_.device_map = devices_now(*parts.state_layout);
  CHECK_EQ(parts_.device_map.size(), subgroup_count);
  const auto device_count = static_cast<std::size_t>(geometry().device_count);
  std::vector<std::vector<SubgroupId>> of_device(device_count);
  std::vector<std::int64_t> used_bytes(device_count, 0);
  for (std::size_t s = 0; s < subgroup_count; ++s) {
    const SubgroupId subgroup{static_cast<std::int32_t>(s)};
    const auto device = static_cast<std::size_t>(index_of(device_of(subgroup)));
    of_device[device].push_back(subgroup);
    gradient_offset_bytes_.push_back(used_bytes[device]);
    used_bytes[device] += round_up(gradient_format_.size_bytes(subgroup), kPageBytes);
    gradient_checks_.emplace_back(
        gradient_format_.is_sparse() ? 1 : static_cast<std::size_t>(gradient_plan_.chunk_count[s]));
  }
  for (std::int32_t d = 0; d < geometry().device_count; ++d) {
    lines_.push_back(std::make_unique<DeviceLine>(
        runtime(), DeviceId{d}, options.set_count(), geometry().variable_count,
        std::move(of_device[static_cast<std::size_t>(d)])));
  }
  next_slot_.resize(subgroup_count);
  next_checksums_.resize(subgroup_count);
  if (has_payload()) record_ = parts.store->committed();
  record_.subgroups.resize(subgroup_count);
}

Offload::~Offload() = default;

void Offload::begin_step(std::int32_t step, double loss_scale) {
  loss_scale_ = loss_scale;
  compressed_from_layer_ = parts_.layout->layer_count();
  std::ranges::fill(layer_stats_, optimizer::GradientStats{});
  this_update_ = 1 - this_update_;
  StepUpdate& update = this_update();
  update.step = step;
  update.committed.reset();
  update.unread_count = geometry().subgroup_count();
  update.all_read.reset();
  // What moves is known to the layout only once it is committed.
  const bool reads_ahead = options_.pipeline == Pipeline::nbuffer && !moves_any();
  starts_.spawn(start_update(update, reads_ahead));
  if (reads_ahead) start_pipeline(update);
}

// The slots that the step before has replaced are free once it is committed.
runtime::Task<Status> Offload::start_update(StepUpdate& update, bool reads_ahead) {
  Status committed = co_await tail_.join();
  CO_RETURN_IF_ERROR(committed);
  update_step_ = update.step;
  for (std::size_t s = 0; s < next_slot_.size(); ++s) {
    const SubgroupId subgroup{static_cast<std::int32_t>(s)};
    next_slot_[s] = parts_.state_layout->take_next(subgroup, device_of(subgroup));
  }
  if (has_payload() && moves_any()) {  // reserved by whoever gave the map, so nothing as a rule
    Status reserved = parts_.store->reserve();
    CO_RETURN_IF_ERROR(reserved);
  }
  gradients_ready_.reset();
  update.committed.set();
  if (!reads_ahead) start_pipeline(update);
  co_return ok_status();
}

void Offload::start_pipeline(StepUpdate& update) {
  switch (options_.pipeline) {
    case Pipeline::serial:
      return update.tasks.spawn(update_in_step());
    case Pipeline::handover:
      return update.tasks.spawn(update_by_handover());
    case Pipeline::nbuffer:
      for (std::int32_t d = 0; d < geometry().device_count; ++d) {
        update.tasks.spawn(update_by_nbuffer(DeviceId{d}, update));
      }
  }
}

std::size_t Offload::round_count() const {
  std::size_t most = 0;
  for (const auto& line : lines_) most = std::max(most, line->subgroups.size());
  return most;
}

runtime::Task<Status> Offload::update(const StepDecision& decision) {
  Status started = co_await starts_.join();
  CO_RETURN_IF_ERROR(started);
  decision_ = decision;
  const bool goes_on = options_.pipeline == Pipeline::nbuffer && decision.apply;
  if (goes_on) arrival_.expect_all();  // forward is over: nobody waits for the last ones
  gradients_ready_.set();
  if (goes_on) co_return ok_status();
  Status status = co_await this_update().tasks.join();
  if (status.ok() && !decision.apply && options_.has_feedback()) status = co_await put_back();
  co_return status;
}

runtime::Task<Status> Offload::commit(const state::TrainingPosition& position) {
  if (options_.pipeline == Pipeline::nbuffer) {
    tail_.spawn(finish_step(position, this_update()));
    co_return ok_status();
  }
  Status committed = co_await make_commit(position);
  co_return committed;
}

runtime::Task<Status> Offload::finish_step(state::TrainingPosition position, StepUpdate& update) {
  Status written = co_await update.tasks.join();
  CO_RETURN_IF_ERROR(written);
  update.all_read.set();  // of a step that was skipped nothing was
  Status committed = co_await make_commit(position);
  co_return committed;
}

runtime::Task<Status> Offload::settle() {
  Status status = co_await tail_.join();
  co_return status;
}

runtime::Task<Status> Offload::make_commit(const state::TrainingPosition& position) {
  runtime::Operation operation;
  operation.runtime = &runtime();
  operation.label.stage = runtime::Stage::commit;
  operation.label.step = update_step_;
  record_.position = position;
  if (decision_.apply) {
    for (std::size_t s = 0; s < next_slot_.size(); ++s) {
      record_.subgroups[s] = {next_slot_[s], next_checksums_[s]};
    }
  } else {
    parts_.state_layout->abandon();
  }
  if (has_payload()) {
    operation.work.kind = runtime::WorkKind::function;
    operation.work.function = [this] { return parts_.store->write_commit(record_); };
  }
  Status status = co_await operation;
  CO_RETURN_IF_ERROR(status);
  const bool has_moved = moves_any() && decision_.apply;
  if (!has_payload()) {
    parts_.state_layout->commit();
    if (has_moved) parts_.state_layout->fit();
    co_return ok_status();
  }
  parts_.store->finish_commit(record_);
  Status fitted = has_moved ? parts_.store->fit() : ok_status();
  co_return fitted;
}

bool Offload::moves_any() const {
  for (std::size_t s = 0; s < parts_.device_map.size(); ++s) {
    if (is_moving(SubgroupId{static_cast<std::int32_t>(s)})) return true;
  }
  return false;
}

runtime::Task<Status> Offload::drain() {
  runtime().fail(make_error(ErrorCode::cancelled, "the step was given up"));
  Status sent = co_await sends_.join();
  Status started = co_await starts_.join();  // it waits for the tail, which waits for the updates
  Status settled = co_await tail_.join();
  Status first = co_await step_updates_[0].tasks.join();
  Status second = co_await step_updates_[1].tasks.join();
  for (const Status* status : {&sent, &started, &settled, &first}) {
    if (!status->ok()) co_return *status;
  }
  co_return second;
}

runtime::Operation Offload::host_kernel(const runtime::OperationLabel& label,
                                        std::int64_t elements) {
  const platform::Platform& platform = *parts_.platform;
  const auto engine = static_cast<std::size_t>(platform::index_of(platform.host_engine));
  runtime::Operation operation;
  operation.runtime = &runtime();
  operation.label = label;
  operation.cost = runtime::kernel_cost(platform.host_engine, platform.engines[engine], "stage",
                                        static_cast<double>(elements));
  return operation;
}

}  // namespace sluice::offload
