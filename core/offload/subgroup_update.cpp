#include "core/offload/subgroup_update.h"

#include "base/check.h"
#include "core/offload/buffer_pool.h"
#include "core/offload/gradient_store.h"
#include "core/offload/state_cache.h"
#include "core/offload/state_versions.h"
#include "core/offload/step_update.h"

namespace sluice::offload {
namespace {

csd::TransferLabel label_of(const StepUpdate& update, stages::Stage stage, SubgroupId subgroup) {
  return {stage, subgroup, kNoLayer, update.step};
}

}  // namespace

SubgroupUpdate::SubgroupUpdate(const Parts& parts)
    : parts_(parts), readers_(parts.runtime, parts.versions.geometry().subgroup_count()) {}

bool SubgroupUpdate::is_written_by(const StepUpdate& update, SubgroupId subgroup,
                                   std::int32_t variable) const {
  return update.commits || !parts_.cache.stays(subgroup, variable);
}

bool SubgroupUpdate::has_all(SubgroupId subgroup) const {
  for (std::int32_t v = 0; v < parts_.versions.geometry().variable_count; ++v) {
    if (!parts_.cache.has(subgroup, v)) return false;
  }
  return true;
}

UpdateSite& SubgroupUpdate::site_of(SubgroupId subgroup) const {
  return *parts_.sites[parts_.versions.device_of(subgroup)];
}
namespace {

constexpr std::int32_t kNoSet = -1;  // of a subgroup that stays in memory, between two steps

}  // namespace

StateTransfer SubgroupUpdate::transfer_of(const csd::TransferLabel& label, state::SlotId slot,
                                          std::int32_t variable, std::int32_t set) const {
  const std::int64_t count = parts_.versions.geometry().element_count(label.subgroup);
  return {.label = label,
          .lies_on = slot.device,
          .offset_bytes = parts_.versions.offset_bytes(slot, variable, count),
          .variable = variable,
          .size_bytes = parts_.versions.geometry().array_bytes(variable, count),
          .set = set};
}

StateTransfer SubgroupUpdate::read_of(const StepUpdate& update, SubgroupId subgroup,
                                      std::int32_t variable, std::int32_t set) const {
  return transfer_of(label_of(update, stages::Stage::state_read, subgroup),
                     parts_.versions.source_of(subgroup, update), variable, set);
}

runtime::Task<Status> SubgroupUpdate::read_state(StepUpdate& update, SubgroupId subgroup,
                                                 std::int32_t set) {
  if (has_all(subgroup)) co_return ok_status();
  UpdateSite& site = site_of(subgroup);
  Result<runtime::Pool::Lease> reader = co_await site.reader().acquire(
      waiting_for("the subgroup before it to be read", site.device(), subgroup));
  CO_RETURN_IF_ERROR(reader);
  std::array<StateTransfer, kMaxStoredArrays> reads;
  std::size_t count = 0;
  for (std::int32_t v = 0; v < parts_.versions.geometry().variable_count; ++v) {
    if (!parts_.cache.has(subgroup, v)) reads[count++] = read_of(update, subgroup, v, set);
  }
  Status status = co_await site.read_state(std::span(reads).first(count));
  CO_RETURN_IF_ERROR(status);
  for (const StateTransfer& read : std::span(reads).first(count)) {
    parts_.cache.on_read(subgroup, read.variable);
  }
  co_return ok_status();
}

runtime::Task<Status> SubgroupUpdate::read_variable(StepUpdate& update, SubgroupId subgroup,
                                                    std::int32_t variable, std::int32_t set) {
  if (parts_.cache.has(subgroup, variable)) co_return ok_status();
  const StateTransfer read = read_of(update, subgroup, variable, set);
  Status status = co_await site_of(subgroup).read_state(std::span(&read, 1));
  if (status.ok()) parts_.cache.on_read(subgroup, variable);
  co_return status;
}

runtime::Task<Status> SubgroupUpdate::read_gradient(StepUpdate& update, SubgroupId subgroup,
                                                    std::int32_t set) {
  if (parts_.gradients.is_in_memory()) co_return ok_status();
  UpdateSite& site = site_of(subgroup);
  Result<runtime::Pool::Lease> reader = co_await site.reader().acquire(
      waiting_for("the subgroup before it to be read", site.device(), subgroup));
  CO_RETURN_IF_ERROR(reader);
  Status status = co_await site.read_gradient(
      label_of(update, stages::Stage::gradient_read, subgroup), set,
      parts_.gradients.offset_bytes(subgroup), parts_.gradients.size_bytes(subgroup));
  co_return status;
}

// A refuted version is in the buffers that stay, too: the version that is still whole is on the
// drive.
void SubgroupUpdate::take(StepUpdate& update, SubgroupId subgroup) {
  if (!update.decided.is_set()) update.speculation.on_taken(subgroup);
  if (!update.speculation.is_refuted(subgroup)) return;
  update.speculation.on_again(subgroup);
  parts_.cache.forget(subgroup);
}

runtime::Task<Status> SubgroupUpdate::gradients(StepUpdate& update, SubgroupId subgroup) {
  const DeviceId device = parts_.versions.device_of(subgroup);
  if (update.speculation.is_on()) {
    Status final = co_await update.speculation.gradients_final(subgroup);
    if (!final.ok() || !update.speculation.is_halted()) co_return final;
  }
  Status decided = co_await update.decided.wait(waiting_for("gradients", device, subgroup));
  co_return decided;
}

runtime::Task<Status> SubgroupUpdate::read_all(StepUpdate& update, SubgroupId subgroup,
                                               std::int32_t set) {
  runtime::TaskGroup reads(parts_.runtime);
  reads.spawn(read_state(update, subgroup, set));
  reads.spawn(read_gradient(update, subgroup, set));
  Status status = co_await reads.join();
  co_return status;
}

runtime::Task<Status> SubgroupUpdate::write_variable(StepUpdate& update, SubgroupId subgroup,
                                                     std::int32_t variable, std::int32_t set) {
  if (!is_written_by(update, subgroup, variable)) co_return ok_status();
  Status status = co_await site_of(subgroup).write_state(
      transfer_of(label_of(update, stages::Stage::state_write, subgroup),
                  update.next_slot[subgroup], variable, set));
  co_return status;
}

runtime::Task<Status> SubgroupUpdate::write_state(StepUpdate& update, SubgroupId subgroup,
                                                  std::int32_t set) {
  std::uint32_t variables = 0;
  for (std::int32_t v = 0; v < parts_.versions.geometry().variable_count; ++v) {
    if (is_written_by(update, subgroup, v)) variables |= 1u << v;
  }
  Status status = co_await write_some(label_of(update, stages::Stage::state_write, subgroup),
                                      update.next_slot[subgroup], set, variables);
  co_return status;
}

runtime::Task<Status> SubgroupUpdate::write_unwritten(std::span<const SubgroupId> subgroups,
                                                      std::int32_t step) {
  for (const SubgroupId subgroup : subgroups) {
    Status status = co_await write_unwritten(subgroup, step);
    CO_RETURN_IF_ERROR(status);
    parts_.cache.on_written(subgroup);
  }
  co_return ok_status();
}

// The copy that forward reads is in no buffer of the site.
runtime::Task<Status> SubgroupUpdate::write_unwritten(SubgroupId subgroup, std::int32_t step) {
  const csd::TransferLabel label{stages::Stage::state_write, subgroup, kNoLayer, step};
  const state::SlotId slot = parts_.versions.newest(subgroup);
  const bool writes_copy =
      parts_.options.has_copy_in_memory() && parts_.cache.is_unwritten(subgroup, 0);
  if (writes_copy) {
    Status status = co_await site_of(subgroup).write_copy(transfer_of(label, slot, 0, kNoSet));
    CO_RETURN_IF_ERROR(status);
  }
  std::uint32_t variables = 0;
  for (std::int32_t v = writes_copy ? 1 : 0; v < parts_.versions.geometry().variable_count; ++v) {
    if (parts_.cache.is_unwritten(subgroup, v)) variables |= 1u << v;
  }
  Status status = co_await write_some(label, slot, kNoSet, variables);
  co_return status;
}

// Those whose bit is set, at once.
runtime::Task<Status> SubgroupUpdate::write_some(csd::TransferLabel label, state::SlotId slot,
                                                 std::int32_t set, std::uint32_t variables) {
  UpdateSite& site = site_of(label.subgroup);
  std::array<runtime::Operation, kMaxStoredArrays> writes;
  std::size_t count = 0;
  for (std::int32_t v = 0; v < parts_.versions.geometry().variable_count; ++v) {
    if ((variables >> v & 1u) == 0) continue;
    writes[count++] = site.write_state(transfer_of(label, slot, v, set));
  }
  if (count == 0) co_return ok_status();
  Status status = co_await runtime::together<kMaxStoredArrays>(std::span(writes).first(count));
  co_return status;
}

csd::UpdateOrder SubgroupUpdate::order_of(const StepUpdate& update, SubgroupId subgroup) const {
  const state::Geometry& geometry = parts_.versions.geometry();
  csd::UpdateOrder order;
  order.step = update.step;
  order.task.subgroup = subgroup;
  order.task.scalars = update.scalars(subgroup);
  order.task.stored = geometry.stored();
  CHECK_EQ(optimizer::rule_info(order.task.scalars).state_count(),
           order.task.stored.decoded_count());
  order.task.rounding = update.rounding;
  order.task.first_flat_index = parts_.options.first_flat_index + geometry.first_element(subgroup);
  if (parts_.options.has_copy_in_memory()) {
    order.copy = {.comes_from_state = !parts_.cache.has(subgroup, 0),
                  .goes_to_state = update.commits};
  }
  order.task.element_count = geometry.element_count(subgroup);
  order.task.is_sparse = parts_.options.is_sparse();
  order.task.gradient_kind = parts_.options.wire_gradient_kind();
  if (parts_.options.has_16bit_copy()) {
    order.task.parameter_kind = float16_kind(parts_.options.parameter_kind);
  }
  order.check.expected = parts_.versions.version(subgroup).checksums;
  order.check.gradient = update.gradient_checks[subgroup];
  const state::SlotId slot = parts_.versions.source_of(subgroup, update);
  order.source.state_file = parts_.drives[slot.device]->files().find(stages::DriveFile::state);
  for (std::int32_t v = 0; v < geometry.variable_count; ++v) {
    order.source.state_offset_bytes[static_cast<std::size_t>(v)] =
        parts_.versions.offset_bytes(slot, v, order.task.element_count);
  }
  order.source.gradient_file = parts_.drives[parts_.versions.device_of(subgroup)]->files().find(
      stages::DriveFile::gradients);
  order.source.gradient_offset_bytes = parts_.gradients.offset_bytes(subgroup);
  order.parameters = parts_.parameters.stretches(subgroup);
  return order;
}

runtime::Task<Status> SubgroupUpdate::run_kernel(StepUpdate& update, SubgroupId subgroup,
                                                 std::int32_t set) {
  const csd::UpdateOrder order = order_of(update, subgroup);
  if (!update.decided.is_set()) update.speculation.on_ahead(subgroup);
  Status status = co_await site_of(subgroup).update(order, set, update.next_checksums[subgroup]);
  if (status.ok()) parts_.cache.on_updated(subgroup, update.commits);
  readers_.end(subgroup);
  co_return status;
}

runtime::Task<Status> SubgroupUpdate::parameters_up(StepUpdate& update, SubgroupId subgroup,
                                                    std::int32_t set) {
  Status status = co_await site_of(subgroup).parameters_up(
      {subgroup, parts_.versions.geometry().element_count(subgroup), update.step,
       parts_.parameters.offset_bytes(subgroup)},
      set);
  co_return status;
}

}  // namespace sluice::offload
