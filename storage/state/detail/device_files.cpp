#include "storage/state/detail/device_files.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "storage/state/detail/commit_log.h"
#include "storage/state/detail/file_names.h"

namespace sluice::state::detail {
namespace {

Status check_same_state(const FileHeader& log, const FileHeader& found, DeviceId device,
                        const std::string& path) {
  if (found.state_id != log.state_id)
    return make_error(ErrorCode::corrupt,
                      "{}: belongs to another optimizer state: its header says state {} at offset "
                      "16, the commit log says {}",
                      path, to_hex(found.state_id), to_hex(log.state_id));
  if (found.device != device)
    return make_error(ErrorCode::corrupt,
                      "{}: its header says device {} at offset 12, and it lies where device {} "
                      "belongs: folders of the state were exchanged",
                      path, index_of(found.device), index_of(device));
  Status same = check_identity(log.identity, found.identity, path);
  Geometry geometry = found.geometry;  // devices that left later are known to the log alone
  geometry.device_count = std::min(geometry.device_count, log.geometry.device_count);
  if (same.ok()) same = check_geometry(log.geometry, geometry, path);
  if (!same.ok())
    return make_error(ErrorCode::corrupt,
                      "{}: its header page at offset 0 differs from the commit log's: {}", path,
                      same.error().message());
  return ok_status();
}

Result<io::File> open_device_file(const std::string& path, const io::File::Options& options,
                                  const FileHeader& log_header, DeviceId device) {
  Result<io::File> file = io::File::open(path, options);
  if (!file.ok() && file.error().code() == ErrorCode::not_found)
    return make_error(ErrorCode::not_found,
                      "{}: the file of device {} of {} is missing; is its drive mounted?", path,
                      index_of(device), log_header.geometry.device_count);
  if (!file.ok()) return std::move(file).error();
  ASSIGN_OR_RETURN(const FileHeader header, read_header(*file, false));
  RETURN_IF_ERROR(check_same_state(log_header, header, device, path));
  return file;
}

}  // namespace

Result<std::vector<io::File>> open_device_files(const StateStore::Options& options,
                                                io::FileAccess access,
                                                const FileHeader& log_header) {
  std::vector<io::File> files;
  for (std::int32_t d = 0; d < log_header.geometry.device_count; ++d) {
    ASSIGN_OR_RETURN(io::File file,
                     open_device_file(device_path(options.directory, DeviceId{d}),
                                      {access, options.caching}, log_header, DeviceId{d}));
    files.push_back(std::move(file));
  }
  return files;
}

Status check_slots(const CommitRecord& record, const Geometry& geometry,
                   const std::vector<io::File>& files, const std::string& log_path) {
  const auto senseless = [&](std::size_t subgroup, SlotId slot, std::string_view why) {
    return make_error(ErrorCode::corrupt,
                      "{}: a commit record puts subgroup {} into slot {} of device {}, {}",
                      log_path, subgroup, slot.index, index_of(slot.device), why);
  };
  std::vector<std::pair<std::int64_t, std::size_t>> places;  // device and slot as one number
  for (std::size_t s = 0; s < record.subgroups.size(); ++s) {
    const SlotId slot = record.subgroups[s].slot;
    if (index_of(slot.device) < 0 || index_of(slot.device) >= geometry.device_count)
      return senseless(s, slot, "which this state does not have");
    if (slot.index < 0 || slot.index >= std::numeric_limits<std::int32_t>::max() / 2)
      return senseless(s, slot, "which cannot be");
    places.emplace_back((std::int64_t{index_of(slot.device)} << 32) + slot.index, s);
  }
  std::sort(places.begin(), places.end());
  for (std::size_t i = 1; i < places.size(); ++i) {
    if (places[i].first == places[i - 1].first)
      return senseless(places[i].second, record.subgroups[places[i].second].slot,
                       fmt::format("where subgroup {} lies", places[i - 1].second));
  }
  for (std::size_t i = 0; i < places.size(); ++i) {
    const SlotId slot = record.subgroups[places[i].second].slot;
    const bool is_highest =
        i + 1 == places.size() || places[i + 1].first >> 32 != places[i].first >> 32;
    if (!is_highest) continue;
    const io::File& file = files[index_of(slot.device)];
    ASSIGN_OR_RETURN(const std::int64_t size_bytes, file.size_bytes());
    const std::int64_t needed =
        kHeaderBytes + (slot.index + std::int64_t{1}) * geometry.slot_bytes();
    if (size_bytes < needed)
      return make_error(ErrorCode::corrupt,
                        "{}: ends at offset {}, and subgroup {} lies up to offset {}: it was cut "
                        "short; use a copy",
                        file.path(), size_bytes, places[i].second, needed);
  }
  return ok_status();
}

}  // namespace sluice::state::detail
