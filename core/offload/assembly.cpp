#include "core/offload/assembly.h"

#include <filesystem>
#include <optional>

#include "core/csd/device_factory.h"
#include "core/offload/assembly_plan.h"
#include "core/offload/buffer_pool.h"
#include "core/offload/gradient_format.h"
#include "core/offload/gradient_store.h"
#include "core/offload/host_kernels.h"
#include "core/offload/offload.h"
#include "core/offload/offload_memory.h"
#include "core/offload/parameter_store.h"
#include "core/offload/state_cache.h"
#include "core/offload/update_site.h"

namespace sluice::offload {

struct Assembly::Parts {
  Parts(const AssemblyPlan& planned, runtime::Runtime& of_run, const ParameterSpan& all,
        const ParameterSpan& of_base)
      : plan(planned),
        runtime(of_run),
        parameters(all),
        base(of_base),
        kernels(runtime, *plan.platform, plan.payload),
        format(plan.options, *plan.layout, plan.geometry),
        cache(choose_kept(plan.options, plan.geometry, plan.device_map), plan.options,
              plan.geometry) {}

  Status take_memory();
  Status make_device(DeviceId device, csd::DeviceFactory& factory);
  Status attach(state::StateStore& store, io::Caching caching);
  void make_offload(std::unique_ptr<StateVersions> of_state);

  AssemblyPlan plan;
  runtime::Runtime& runtime;
  ParameterSpan parameters;
  ParameterSpan base;
  HostKernels kernels;
  GradientFormat format;
  std::unique_ptr<OffloadMemory> memory;
  std::optional<BufferPool> bounces;
  StateCache cache;
  std::vector<csd::CsdDevice*> csds;  // those of drives that are
  Drives drives;
  UpdateSites sites;  // their sets lie in the drives' devices
  std::unique_ptr<StateVersions> versions;
  std::unique_ptr<Offload> offload;
};

Status Assembly::Parts::take_memory() {
  io::PinnedMemory plain;
  ASSIGN_OR_RETURN(
      memory, OffloadMemory::make(plan.options, plan.geometry, *plan.layout, format, plan.payload,
                                  plan.pinned_memory != nullptr ? *plan.pinned_memory : plain));
  bounces.emplace(runtime, memory->bounces());
  return ok_status();
}

// The one place that knows what the two methods are made of.
Status Assembly::Parts::make_device(DeviceId device, csd::DeviceFactory& factory) {
  const SiteParts site_parts{plan.options, plan.geometry, kernels, drives,
                             *memory,      *bounces,      cache,   parameters};
  if (plan.options.method == Method::host) {
    drives.push_back(
        std::make_unique<csd::Drive>(runtime, plan.platform->device(device), device, plan.drive));
    ASSIGN_OR_RETURN(std::unique_ptr<UpdateSite> site, make_host_site(site_parts, device));
    sites.push_back(std::move(site));
    return ok_status();
  }
  ASSIGN_OR_RETURN(std::unique_ptr<csd::CsdDevice> csd,
                   factory.make({runtime, *plan.platform, device, plan.drive,
                                 plan.device_memory_bytes[device]}));
  csd::CsdDevice& made = *csd;
  drives.push_back(std::move(csd));
  csds.push_back(&made);
  ASSIGN_OR_RETURN(std::unique_ptr<UpdateSite> site, make_device_site(site_parts, made));
  sites.push_back(std::move(site));
  return ok_status();
}

Status Assembly::Parts::attach(state::StateStore& store, io::Caching caching) {
  auto stored = std::make_unique<StoredVersions>(store, plan.device_map);
  stored->commit_with(plan.committed_elsewhere);
  for (const DeviceId device : ids_of(drives)) {
    csd::DriveFiles& files = drives[device]->files();
    files.lend(stages::DriveFile::state, &store.file(device));
    const std::string folder =
        std::filesystem::path(store.file(device).path()).parent_path().string();
    RETURN_IF_ERROR(files.make_scratch(
        stages::DriveFile::gradients, folder, caching,
        gradient_file_bytes(format, stored->device_map(), device, plan.options)));
    if (!plan.options.streams_parameters()) continue;
    RETURN_IF_ERROR(files.make_unnamed(
        stages::DriveFile::parameters, folder, caching,
        parameter_file_bytes(plan.geometry, stored->device_map(), device, plan.options) +
            base_file_bytes(plan.base.get(), device, plan.options)));
  }
  for (csd::CsdDevice* csd : csds) RETURN_IF_ERROR(csd->check_files());
  make_offload(std::move(stored));
  return ok_status();
}

void Assembly::Parts::make_offload(std::unique_ptr<StateVersions> of_state) {
  versions = std::move(of_state);
  offload = std::make_unique<Offload>(
      Offload::Parts{runtime, *plan.layout, plan.options, kernels, format, *memory, *bounces,
                     drives, sites, *versions, cache, parameters, plan.base.get(), base});
}

Assembly::Assembly(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Result<std::unique_ptr<Assembly>> Assembly::take(const AssemblyPlan& plan,
                                                 runtime::Runtime& runtime,
                                                 csd::DeviceFactory& factory,
                                                 ParameterSpan parameters, ParameterSpan base) {
  std::unique_ptr<Assembly> assembly(
      new Assembly(std::make_unique<Parts>(plan, runtime, parameters, base)));
  RETURN_IF_ERROR(assembly->parts_->take_memory());
  for (const DeviceId device : all_ids<DeviceId>(plan.geometry.device_count)) {
    RETURN_IF_ERROR(assembly->parts_->make_device(device, factory));
  }
  return assembly;
}

Assembly::~Assembly() {
  for (csd::CsdDevice* csd : parts_->csds) csd->stop();
}

Status Assembly::attach(state::StateStore& store, io::Caching caching) {
  return parts_->attach(store, caching);
}

void Assembly::attach(state::Layout& layout) {
  parts_->make_offload(std::make_unique<CountedVersions>(layout, parts_->plan.device_map));
}

Offload& Assembly::offload() { return *parts_->offload; }
OffloadMemory& Assembly::memory() { return *parts_->memory; }
const UpdateSites& Assembly::sites() const { return parts_->sites; }
Drives& Assembly::drives() { return parts_->drives; }
const AssemblyPlan& Assembly::plan() const { return parts_->plan; }
void Assembly::set_prefetch(bool prefetch) { parts_->plan.options.prefetch = prefetch; }

ResidualPlace Assembly::residual_in_memory() {
  return offload::residual_in_memory(parts_->memory->compress().residual());
}

std::vector<std::span<std::byte>> Assembly::transfer_regions() {
  std::vector<std::span<std::byte>> regions = parts_->memory->transfer_regions();
  for (const auto& site : parts_->sites) {
    for (const std::span<std::byte> region : site->transfer_regions()) regions.push_back(region);
  }
  return regions;
}

}  // namespace sluice::offload
