#include "core/offload/base_parameters.h"

#include <algorithm>
#include <cstring>

#include "base/units.h"
#include "core/csd/drive.h"
#include "core/offload/host_kernels.h"
#include "core/offload/parameter_writing.h"

namespace sluice::offload {

BaseParameters::BaseParameters(const Parts& parts,
                               const IdVector<DeviceId, std::int64_t>& begin_bytes)
    : parts_(parts),
      arrival_(parts.runtime, parts.cut.layout, parts.cut.geometry),
      store_(parts.cut.layout, parts.cut.geometry, parts.cut.device_map, parts.options,
             begin_bytes),
      carrier_({parts.runtime, parts.cut.layout, parts.options, parts.cut.device_map, parts.kernels,
                parts.drives, parts.bounces, store_, arrival_, parts.parameters,
                ParameterCarrier::Weights::base}) {}

runtime::Task<Status> BaseParameters::write(const FillInitial& fill, const Stops& stops) {
  runtime::TaskGroup devices(parts_.runtime);
  for (const DeviceId device : ids_of(parts_.drives)) devices.spawn(write_on(device, fill, stops));
  Status status = co_await devices.join();
  co_return status;
}

runtime::Task<Status> BaseParameters::write_on(DeviceId device, const FillInitial& fill,
                                               const Stops& stops) {
  for (const SubgroupId subgroup : all_ids<SubgroupId>(parts_.cut.geometry.subgroup_count())) {
    if (device_of(subgroup) != device) continue;
    Status written = co_await write_subgroup(subgroup, fill, stops);
    CO_RETURN_IF_ERROR(written);
  }
  co_return ok_status();
}

runtime::Task<Status> BaseParameters::write_subgroup(SubgroupId subgroup, const FillInitial& fill,
                                                     const Stops& stops) {
  const DeviceId device = device_of(subgroup);
  Result<runtime::Pool::Lease> lease = co_await parts_.bounces.acquire(
      waiting_for("a bounce buffer for base weights", device, kNoSubgroup));
  CO_RETURN_IF_ERROR(lease);
  const std::span<std::byte> bounce = parts_.bounces.bytes(*lease);
  const state::Geometry& geometry = parts_.cut.geometry;
  const std::int64_t all = geometry.element_count(subgroup);
  const std::int64_t most = written_elements(parts_.options.bounce_bytes);
  StretchSums sums(store_.stretches(subgroup));
  for (std::int64_t first = 0; first < all; first += most) {
    Status goes_on = unless_stopped(stops, "writing the base weights");
    CO_RETURN_IF_ERROR(goes_on);
    const std::int64_t count = std::min(most, all - first);
    runtime::OperationLabel label;
    label.stage = stages::Stage::create_state;
    const runtime::Operation make = parts_.kernels.stage(
        label, count,
        [&fill, bounce, count, flat_first = geometry.first_element(subgroup) + first] {
          // Padding as well.
          std::memset(bounce.data(), 0, static_cast<std::size_t>(round_up(count * 4, kPageBytes)));
          return fill(0, flat_first, floats_of(bounce, count));
        });
    Status made = co_await make;
    CO_RETURN_IF_ERROR(made);
    const ParameterKind kind = parts_.options.parameter_kind;
    Status written = co_await write_parameters(
        {parts_.kernels, *parts_.drives[device], kNoSubgroup, kind, sums},
        store_.offset_bytes(subgroup) + first * bytes_of(kind), count, bounce);
    CO_RETURN_IF_ERROR(written);
  }
  co_return ok_status();
}

void WithBase::begin_pass(Pass pass) {
  trained_.begin_pass(pass);
  base_.begin_pass(pass);
}

// Both come ahead by themselves.
runtime::Task<Status> WithBase::bring(LayerId layer) {
  Status there = co_await trained_.bring(layer);
  CO_RETURN_IF_ERROR(there);
  Status base_there = co_await base_.bring(layer);
  co_return base_there;
}

void WithBase::done(LayerId layer) {
  trained_.done(layer);
  base_.done(layer);
}

runtime::Task<Status> WithBase::finish_pass() {
  Status trained = co_await trained_.finish_pass();
  Status base = co_await base_.finish_pass();
  co_return trained.ok() ? base : trained;
}

}  // namespace sluice::offload
