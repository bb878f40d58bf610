#include "hls/host/pairing.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

namespace sluice::hls_host {
namespace {

namespace fs = std::filesystem;

// "0000:3b:00.0": domain, bus, device, function.
bool is_address(std::string_view text) {
  const std::string_view form = "hhhh:hh:hh.h";
  if (text.size() != form.size()) return false;
  for (std::size_t i = 0; i < form.size(); ++i) {
    const bool is_digit = std::isxdigit(static_cast<unsigned char>(text[i])) != 0;
    if (form[i] == 'h' ? !is_digit : text[i] != form[i]) return false;
  }
  return true;
}

std::vector<std::string> addresses_in(const fs::path& device) {
  std::vector<std::string> path;
  for (const fs::path& part : device) {
    if (is_address(part.string())) path.push_back(part.string());
  }
  return path;
}

// A drive with several controllers is a virtual device whose controllers stand beside it as links
// (nvme multipath): /sys/devices/virtual/nvme-subsystem/nvme-subsys0/nvme0n1.
std::vector<std::string> addresses_of_controller(const fs::path& device) {
  fs::path subsystem = device;
  while (subsystem.has_relative_path() && subsystem.parent_path().filename() != "nvme-subsystem") {
    subsystem = subsystem.parent_path();
  }
  std::error_code error;
  std::vector<std::vector<std::string>> found;
  for (const fs::directory_entry& entry : fs::directory_iterator(subsystem, error)) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_symlink(error) || !name.starts_with("nvme")) continue;
    const fs::path controller = fs::canonical(entry.path(), error);
    if (!error) found.push_back(addresses_in(controller));
  }
  return found.size() == 1 ? found.front() : std::vector<std::string>();
}

// A partition's entry lies below its drive's.
std::string drive_name(const fs::path& device) {
  std::error_code error;
  const bool is_partition = fs::exists(device / "partition", error);
  return (is_partition ? device.parent_path() : device).filename().string();
}

std::string name_of_sharing_card(const PairingRequest& request, const PciPlace& drive,
                                 const std::string& sysfs) {
  for (std::size_t i = 0; i < request.cards.size(); ++i) {
    const std::optional<PciPlace> card = place_of_card(request.cards[i], sysfs);
    if (!card || !share_switch(*card, drive)) continue;
    return fmt::format(
        "card {} ({}, XRT's number {}) shares its switch: let dev{} of the state be a link to a "
        "folder on that drive",
        request.cards[i], drive.name, i, i);
  }
  return "no card shares that drive's switch: let the state lie on the drive beside the card";
}

}  // namespace

Result<PciPlace> drive_of_file(const std::string& file, const std::string& sysfs) {
  struct stat info = {};
  if (stat(file.c_str(), &info) != 0) {
    return make_error(ErrorCode::io, "{}: cannot be looked at: {}", file, std::strerror(errno));
  }
  auto drive = drive_of_number(fmt::format("{}:{}", major(info.st_dev), minor(info.st_dev)), sysfs);
  if (drive.ok()) return drive;
  return drive.error().with_context(file);
}

Result<PciPlace> drive_of_number(const std::string& number, const std::string& sysfs) {
  std::error_code error;
  const fs::path device = fs::canonical(fs::path(sysfs) / "dev/block" / number, error);
  if (error) {
    return make_error(ErrorCode::unsupported,
                      "its file system lies on no block device of its own ({}): a card reaches an "
                      "NVMe drive alone; choose a state_dir on one",
                      number);
  }
  PciPlace place{drive_name(device), addresses_in(device)};
  if (place.path.empty()) place.path = addresses_of_controller(device);
  if (!place.path.empty()) return place;
  return make_error(ErrorCode::unsupported,
                    "it lies on {}, which is no single PCI drive: a card reaches an NVMe drive "
                    "alone; choose a state_dir on one",
                    place.name);
}

std::optional<PciPlace> place_of_card(const std::string& address, const std::string& sysfs) {
  std::error_code error;
  const fs::path device = fs::canonical(fs::path(sysfs) / "bus/pci/devices" / address, error);
  if (error) return std::nullopt;
  PciPlace place{address, addresses_in(device)};
  if (place.path.empty()) return std::nullopt;
  return place;
}

bool share_switch(const PciPlace& one, const PciPlace& other) {
  const auto [end, other_end] = std::ranges::mismatch(one.path, other.path);
  const auto above_both = end - one.path.begin();
  // Below the switch's upstream port lie its downstream port and the device, on either side.
  constexpr std::ptrdiff_t kPortAndDevice = 2;
  return above_both > 0 && std::ssize(one.path) - above_both == kPortAndDevice &&
         std::ssize(other.path) - above_both == kPortAndDevice;
}

Status check_pairing(const PairingRequest& request, const std::string& sysfs, bool& checked) {
  const std::optional<PciPlace> card = place_of_card(request.card, sysfs);
  checked = card.has_value();
  if (!card) return ok_status();
  ASSIGN_OR_RETURN(const PciPlace drive, drive_of_file(request.file, sysfs));
  if (share_switch(*card, drive)) return ok_status();
  return make_error(ErrorCode::config,
                    "{} is the card {}, but {} lies on {} ({}), which is not below the same PCIe "
                    "switch: its bytes would go over the host; {}",
                    request.device, request.card, request.file, drive.name, drive.address(),
                    name_of_sharing_card(request, drive, sysfs));
}

}  // namespace sluice::hls_host
