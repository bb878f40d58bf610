#include "core/offload/assembly.h"

#include <filesystem>

namespace sluice::offload {

Assembly::Assembly(const AssemblyPlan& plan, runtime::Runtime& runtime, ParameterSpan parameters)
    : plan_(plan),
      runtime_(runtime),
      parameters_(parameters),
      kernels_(runtime, *plan.platform, plan.payload),
      format_(plan.options, *plan.layout, plan.geometry),
      cache_(choose_kept(plan.options, plan.geometry, plan.device_map), plan.geometry) {}

Result<std::unique_ptr<Assembly>> Assembly::take(const AssemblyPlan& plan,
                                                 runtime::Runtime& runtime,
                                                 csd::DeviceFactory& factory,
                                                 ParameterSpan parameters) {
  std::unique_ptr<Assembly> assembly(new Assembly(plan, runtime, parameters));
  RETURN_IF_ERROR(assembly->take_memory());
  for (const DeviceId device : all_ids<DeviceId>(plan.geometry.device_count)) {
    RETURN_IF_ERROR(assembly->make_device(device, factory));
  }
  return assembly;
}

Assembly::~Assembly() {
  for (csd::CsdDevice* csd : csds_) csd->stop();
}

Status Assembly::take_memory() {
  io::PinnedMemory plain;
  ASSIGN_OR_RETURN(
      memory_,
      OffloadMemory::make(plan_.options, plan_.geometry, *plan_.layout, format_, plan_.payload,
                          plan_.pinned_memory != nullptr ? *plan_.pinned_memory : plain));
  bounces_.emplace(runtime_, memory_->bounces());
  return ok_status();
}

// The one place that knows what the two methods are made of.
Status Assembly::make_device(DeviceId device, csd::DeviceFactory& factory) {
  const SiteParts parts{plan_.options, plan_.geometry, kernels_, drives_,
                        *memory_,      *bounces_,      cache_,   parameters_};
  if (plan_.options.method == Method::host) {
    drives_.push_back(std::make_unique<csd::Drive>(runtime_, plan_.platform->device(device), device,
                                                   plan_.drive));
    ASSIGN_OR_RETURN(std::unique_ptr<UpdateSite> site, make_host_site(parts, device));
    sites_.push_back(std::move(site));
    return ok_status();
  }
  ASSIGN_OR_RETURN(std::unique_ptr<csd::CsdDevice> csd,
                   factory.make({runtime_, *plan_.platform, device, plan_.drive,
                                 plan_.device_memory_bytes[device]}));
  csd::CsdDevice& made = *csd;
  drives_.push_back(std::move(csd));
  csds_.push_back(&made);
  ASSIGN_OR_RETURN(std::unique_ptr<UpdateSite> site, make_device_site(parts, made));
  sites_.push_back(std::move(site));
  return ok_status();
}

Status Assembly::attach(state::StateStore& store, io::Caching caching) {
  auto versions = std::make_unique<StoredVersions>(store, plan_.device_map);
  versions->commit_with(plan_.committed_elsewhere);
  for (const DeviceId device : ids_of(drives_)) {
    csd::DriveFiles& files = drives_[device]->files();
    files.lend(stages::DriveFile::state, &store.file(device));
    const std::string folder =
        std::filesystem::path(store.file(device).path()).parent_path().string();
    RETURN_IF_ERROR(files.make_scratch(
        stages::DriveFile::gradients, folder, caching,
        gradient_file_bytes(format_, versions->device_map(), device, plan_.options)));
    if (!plan_.options.streams_parameters()) continue;
    RETURN_IF_ERROR(files.make_unnamed(
        stages::DriveFile::parameters, folder, caching,
        parameter_file_bytes(plan_.geometry, versions->device_map(), device, plan_.options)));
  }
  for (csd::CsdDevice* csd : csds_) RETURN_IF_ERROR(csd->check_files());
  make_offload(std::move(versions));
  return ok_status();
}

void Assembly::attach(state::Layout& layout) {
  make_offload(std::make_unique<CountedVersions>(layout, plan_.device_map));
}

void Assembly::make_offload(std::unique_ptr<StateVersions> versions) {
  versions_ = std::move(versions);
  offload_ = std::make_unique<Offload>(
      Offload::Parts{runtime_, *plan_.layout, plan_.options, kernels_, format_, *memory_, *bounces_,
                     drives_, sites_, *versions_, cache_, parameters_});
}

ResidualPlace Assembly::residual_in_memory() {
  return offload::residual_in_memory(memory_->compress().residual());
}

std::vector<std::span<std::byte>> Assembly::transfer_regions() {
  std::vector<std::span<std::byte>> regions = memory_->transfer_regions();
  for (const auto& site : sites_) {
    for (const std::span<std::byte> region : site->transfer_regions()) regions.push_back(region);
  }
  return regions;
}

}  // namespace sluice::offload
