#include "core/plan/drive_room.h"

#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <map>
#include <vector>

#include "core/offload/gradient_format.h"
#include "core/offload/gradient_store.h"
#include "core/offload/parameter_store.h"
#include "core/plan/run_plan.h"
#include "core/stages/stage.h"
#include "storage/state/state_store.h"

namespace sluice::plan {
namespace {

// Devices that lie on one file system.
struct Volume {
  std::vector<std::string> devices;
  std::string path;  // of one of the files
  std::int64_t more_bytes = 0;
};

// Such files are as large as what is reserved for them.
std::int64_t reserved_bytes(const std::string& path) {
  struct stat file = {};
  return stat(path.c_str(), &file) == 0 ? static_cast<std::int64_t>(file.st_size) : 0;
}

Status check_free(const Volume& volume) {
  struct statvfs space = {};
  if (volume.more_bytes <= 0 || statvfs(volume.path.c_str(), &space) != 0) return ok_status();
  const auto free_bytes = static_cast<std::int64_t>(space.f_bavail * space.f_frsize);
  if (volume.more_bytes <= free_bytes) return ok_status();
  return make_error(ErrorCode::config,
                    "device_map: {} would take {} more ({} bytes) and {} has {} free ({} bytes): "
                    "free some, or give {} a smaller share",
                    fmt::join(volume.devices, ", "), format_bytes(volume.more_bytes),
                    volume.more_bytes, volume.path, format_bytes(free_bytes), free_bytes,
                    volume.devices.size() == 1 ? "it" : "them");
}

}  // namespace

IdVector<DeviceId, DriveNeed> drive_needs(const RunPlan& plan) {
  const offload::GradientFormat format(plan.options, plan.share.state, plan.geometry);
  IdVector<DeviceId, DriveNeed> needs;
  const IdVector<DeviceId, std::int64_t> activation_bytes =
      activation::drive_bytes(plan.activations, plan.geometry.device_count);
  for (const DeviceId id : all_ids<DeviceId>(plan.geometry.device_count)) {
    const auto subgroup_count = std::ranges::count(plan.device_map, id);
    needs.push_back(
        {state::device_file_bytes(plan.geometry, subgroup_count),
         offload::gradient_file_bytes(format, plan.device_map, id, plan.options),
         activation_bytes[id],
         offload::parameter_file_bytes(plan.geometry, plan.device_map, id, plan.options) +
             offload::base_file_bytes(plan.base.get(), id, plan.options)});
  }
  return needs;
}

Status check_capacity(const RunPlan& plan) {
  const IdVector<DeviceId, DriveNeed> needs = drive_needs(plan);
  for (const DeviceId id : all_ids<DeviceId>(plan.geometry.device_count)) {
    const platform::Device& device = plan.platform.device(id);
    const std::int64_t need_bytes = needs[id].total_bytes();
    if (device.capacity_bytes == 0 || need_bytes <= device.capacity_bytes) continue;
    return make_error(ErrorCode::config,
                      "{}: {} holds {}, and its share would take {} (two versions of the state, "
                      "the gradients, activations and parameters that leave): use more devices, or "
                      "give it a smaller share with device_map",
                      plan.platform.source, device.name, format_bytes(device.capacity_bytes),
                      format_bytes(need_bytes));
  }
  return ok_status();
}

Status check_drive_room(const RunPlan& wanted, std::span<const std::string> state_files,
                        const RunPlan* live) {
  RETURN_IF_ERROR(check_capacity(wanted));
  const IdVector<DeviceId, DriveNeed> needs = drive_needs(wanted);
  const IdVector<DeviceId, DriveNeed> now =
      live == nullptr ? IdVector<DeviceId, DriveNeed>() : drive_needs(*live);
  std::map<dev_t, Volume> volumes;
  for (std::size_t d = 0; d < state_files.size(); ++d) {
    const DeviceId id{static_cast<std::int32_t>(d)};
    const platform::Device& device = wanted.platform.devices[d];
    const std::string& path = state_files[d];
    const std::string gradients =
        path.substr(0, path.rfind('/') + 1) + stages::drive_file_name(stages::DriveFile::gradients);
    // A change of knobs leaves the activations where they are.
    const DriveNeed& need = needs[id];
    struct stat file = {};
    if (stat(path.c_str(), &file) != 0) continue;  // whoever opens it says why
    const std::int64_t more_bytes =
        std::max<std::int64_t>(0, need.state_bytes - reserved_bytes(path)) + need.gradient_bytes -
        reserved_bytes(gradients) + need.parameter_bytes -
        (now.empty() ? 0 : now[id].parameter_bytes);
    Volume& volume = volumes[file.st_dev];
    volume.path = path;
    volume.more_bytes += more_bytes;
    if (more_bytes > 0) volume.devices.push_back(device.name);
  }
  for (const auto& [id, volume] : volumes) RETURN_IF_ERROR(check_free(volume));
  return ok_status();
}

}  // namespace sluice::plan
