#pragma once
// The offload of a run and everything that belongs to it, put together in one place for a training
// run, a simulation and the tests of the schedule. Two steps, because a run takes its memory before
// it touches a file:
//
//   take(plan, ...)   host memory, the devices with their own, buffer sets
//   attach(...)       the state and the scratch files; the offload is ready then
//
// Thread contract: the schedule's thread. Nothing of it is under way when it goes.

#include <memory>
#include <optional>

#include "core/csd/device_factory.h"
#include "core/offload/offload.h"
#include "core/offload/residual_file.h"

namespace sluice::offload {

struct AssemblyPlan {
  OffloadOptions options;
  const platform::Platform* platform = nullptr;  // outlives the assembly, as the layout does
  const model::FlatLayout* layout = nullptr;
  state::Geometry geometry;
  // Which device updates each subgroup and gets its next version; empty: the one it lies on, which
  // options.state_cache_bytes do not go with.
  state::DeviceMap device_map;
  csd::DriveOptions drive;
  IdVector<DeviceId, std::int64_t> device_memory_bytes;  // budgets
  csd::Payload payload = csd::Payload::real;
  StateVersions::CommittedElsewhere committed_elsewhere = {};
  io::PinnedMemory* pinned_memory = nullptr;  // what an accelerator copies from and to; null: plain
};

class Assembly {
 public:
  ~Assembly();
  Assembly(const Assembly&) = delete;
  Assembly& operator=(const Assembly&) = delete;

  // `parameters`: of the whole model; empty without payload. The factory makes the
  // devices of method=csd.
  // Errors: ErrorCode::memory where it does not fit; those of the factory.
  static Result<std::unique_ptr<Assembly>> take(const AssemblyPlan& plan, runtime::Runtime& runtime,
                                                csd::DeviceFactory& factory,
                                                ParameterSpan parameters);

  // With payload: the state lies in `store`; scratch files are made beside its files.
  Status attach(state::StateStore& store, io::Caching caching);
  // Without.
  void attach(state::Layout& layout);

  Offload& offload() { return *offload_; }
  OffloadMemory& memory() { return *memory_; }
  // The residual of error feedback, where the host selects.
  ResidualPlace residual_in_memory();
  const UpdateSites& sites() const { return sites_; }
  Drives& drives() { return drives_; }
  const AssemblyPlan& plan() const { return plan_; }
  // Between two steps; the other options stay as they are.
  void set_prefetch(bool prefetch) { plan_.options.prefetch = prefetch; }
  // Host and device memory that transfers use, for registration with the I/O engine.
  std::vector<std::span<std::byte>> transfer_regions();

 private:
  Assembly(const AssemblyPlan& plan, runtime::Runtime& runtime, ParameterSpan parameters);
  Status take_memory();
  Status make_device(DeviceId device, csd::DeviceFactory& factory);
  void make_offload(std::unique_ptr<StateVersions> versions);

  AssemblyPlan plan_;
  runtime::Runtime& runtime_;
  ParameterSpan parameters_;
  HostKernels kernels_;
  GradientFormat format_;
  std::unique_ptr<OffloadMemory> memory_;
  std::optional<BufferPool> bounces_;
  StateCache cache_;
  std::vector<csd::CsdDevice*> csds_;  // those of drives_ that are
  Drives drives_;
  UpdateSites sites_;  // their sets lie in the drives' devices
  std::unique_ptr<StateVersions> versions_;
  std::unique_ptr<Offload> offload_;
};

}  // namespace sluice::offload
