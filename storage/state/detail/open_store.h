#pragma once
// StateStore::create, open and remove_devices with a Disk of the caller's: how tests fail or stop
// them at any call. Thread contract: as StateStore.

#include <memory>

#include "base/status.h"
#include "storage/state/detail/disk.h"
#include "storage/state/state_store.h"

namespace sluice::state::detail {

Result<std::unique_ptr<StateStore>> create_store(const StateStore::Options& options,
                                                 const StateIdentity& identity,
                                                 const Geometry& geometry,
                                                 const DeviceMap& device_map,
                                                 std::unique_ptr<Disk> disk);
Result<std::unique_ptr<StateStore>> open_store(const StateStore::Options& options,
                                               std::unique_ptr<Disk> disk);

Status remove_devices(const StateStore::Options& options, std::int32_t device_count, Disk& disk);

}  // namespace sluice::state::detail
