#pragma once
// Where the subgroups of one device are updated: in host memory, behind a plain drive, or in the
// memory of a CSD. The site owns the buffer sets that subgroups are in while they are read, updated
// and written; what of it is host or device memory nobody else knows. The state of a subgroup that
// stays in memory (state_cache.h) has arrays of its own, and of its buffer set the subgroup uses
// the rest alone.
//
// Thread contract: the schedule's thread; operations are awaited before the site goes.

#include <memory>
#include <span>
#include <vector>

#include "base/id_vector.h"
#include "base/parameter_span.h"
#include "core/csd/drive.h"
#include "core/csd/update_task.h"
#include "core/offload/update_sites.h"
#include "core/runtime/sync.h"

namespace sluice::csd {
class CsdDevice;
}
namespace sluice::state {
struct Geometry;
}

namespace sluice::offload {

class BufferPool;
class HostKernels;
class OffloadMemory;
class StateCache;
struct OffloadOptions;

// A variable's whole array between a slot and the buffer set `set`.
struct StateTransfer {
  csd::TransferLabel label;
  DeviceId lies_on = kNoDevice;   // the device whose drive has the slot
  std::int64_t offset_bytes = 0;  // in its state file
  std::int32_t variable = 0;
  std::int64_t size_bytes = 0;  // without padding
  std::int32_t set = 0;
};

// A subgroup whose update has ended.
struct UpdatedSubgroup {
  SubgroupId subgroup = kNoSubgroup;
  std::int64_t element_count = 0;
  std::int32_t step = -1;
  std::int64_t parameter_offset_bytes =
      0;  // parameter_tier=storage: where its copy goes in the file
};

class UpdateSite {
 public:
  UpdateSite(runtime::Runtime& runtime, DeviceId device, std::int32_t set_count)
      : device_(device), set_turns_(runtime, set_count, device), reader_(runtime, 1) {}
  virtual ~UpdateSite() = default;
  UpdateSite(const UpdateSite&) = delete;
  UpdateSite& operator=(const UpdateSite&) = delete;

  DeviceId device() const { return device_; }

  // Variables of one subgroup, all at once, from the drive that they lie on: this device's, or,
  // where the subgroup moves, another's. `transfers` live until awaited.
  virtual runtime::Task<Status> read_state(std::span<const StateTransfer> transfers) = 0;
  virtual runtime::Operation write_state(const StateTransfer& transfer) = 0;
  // OffloadOptions::has_copy_in_memory(): the first variable of a subgroup that is not under way,
  // from where forward reads it.
  virtual runtime::Task<Status> write_copy(StateTransfer transfer) = 0;
  // A subgroup's gradient from the device's scratch file.
  virtual runtime::Operation read_gradient(const csd::TransferLabel& label, std::int32_t set,
                                           std::int64_t offset_bytes, std::int64_t size_bytes) = 0;
  // The update kernel on what is in the set. Order and checksums live until awaited.
  virtual runtime::Operation update(const csd::UpdateOrder& order, std::int32_t set,
                                    csd::UpdatedChecksums& updated) = 0;
  // The subgroup's parameters are where models read them when the task ends, or, with
  // parameter_tier=storage, on the device's drive.
  virtual runtime::Task<Status> parameters_up(UpdatedSubgroup updated, std::int32_t set) = 0;

  // Memory that transfers use, for registration with the I/O engine.
  virtual std::vector<std::span<std::byte>> transfer_regions() = 0;
  // Used bytes of the device's own memory; 0 where the site has none.
  virtual std::int64_t device_memory_used_bytes() const = 0;

  // The buffer sets, by number: one for each subgroup under way. Sinks are told how many are in
  // use.
  runtime::Pool& set_turns() { return set_turns_; }
  // One subgroup reads at a time, so that the first is complete soonest.
  runtime::Pool& reader() { return reader_; }

 private:
  DeviceId device_;
  runtime::Pool set_turns_;
  runtime::Pool reader_;
};

// The parts that sites use besides their own memory.
struct SiteParts {
  const OffloadOptions& options;
  const state::Geometry& geometry;
  const HostKernels& kernels;
  const Drives& drives;  // of all devices
  OffloadMemory& memory;
  BufferPool& bounces;
  const StateCache& cache;
  // Those of the whole model; empty: no payload. Not used with parameter_tier=storage.
  ParameterSpan parameters;
};

// Reads and writes over the host link, updates on the host's processor.
Result<std::unique_ptr<UpdateSite>> make_host_site(const SiteParts& parts, DeviceId device);
// Reads, updates and writes inside the device, which is parts.drives[device.id()].
Result<std::unique_ptr<UpdateSite>> make_device_site(const SiteParts& parts,
                                                     csd::CsdDevice& device);

}  // namespace sluice::offload
