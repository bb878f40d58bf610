#include "profiler/inject/file_table.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <vector>

#include "base/mutex.h"

namespace sluice::inject {
namespace {

constexpr int kKeptMax = 1 << 16;  // descriptors above are asked about each time

// kind << 24 | rule << 16 | device.
std::array<std::atomic<std::uint32_t>, kKeptMax> kept{};

class Devices {
 public:
  // Leaked: a program records until it is gone.
  static Devices& all() {
    static Devices* const devices = new Devices();
    return *devices;
  }

  std::uint16_t number_of(dev_t device, const struct statfs& system) {
    MutexLock lock(mutex_);
    const auto [known, is_new] =
        numbers_.try_emplace(device, static_cast<std::uint16_t>(names_.size()));
    if (is_new) names_.push_back(name_of(device, system));
    return known->second;
  }
  std::string name(std::uint16_t number) {
    MutexLock lock(mutex_);
    return number < names_.size() ? names_[number] : "unknown";
  }

 private:
  static std::string name_of(dev_t device, const struct statfs& system) {
    constexpr std::uint32_t kTmpfs = 0x01021994;
    if (static_cast<std::uint32_t>(system.f_type) == kTmpfs) return "tmpfs";
    const std::string link =
        "/sys/dev/block/" + std::to_string(major(device)) + ":" + std::to_string(minor(device));
    std::array<char, 512> target;
    const ssize_t size = ::readlink(link.c_str(), target.data(), target.size());
    if (size <= 0)
      return "file system " + std::to_string(major(device)) + ":" + std::to_string(minor(device));
    const std::string_view path(target.data(), static_cast<std::size_t>(size));
    return std::string(path.substr(path.rfind('/') + 1));
  }

  Mutex mutex_;
  std::map<dev_t, std::uint16_t> numbers_ GUARDED_BY(mutex_);
  std::vector<std::string> names_ GUARDED_BY(mutex_);
};

Rules::FileRule rule_of(int fd) {
  if (!rules().has_files()) return 0;
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  std::array<char, 4096> path;
  const ssize_t size = ::readlink(link.c_str(), path.data(), path.size());
  return size <= 0 ? Rules::FileRule{0}
                   : rules().rule_of_file({path.data(), static_cast<std::size_t>(size)});
}

OpenFile asked(int fd) {
  struct stat found{};
  if (::fstat(fd, &found) != 0) return {};
  const bool is_drive = S_ISBLK(found.st_mode);
  if (!is_drive && !S_ISREG(found.st_mode)) return {.kind = FileKind::none};
  struct statfs system{};
  if (!is_drive && ::fstatfs(fd, &system) != 0) return {.kind = FileKind::none};
  // /proc, /sys and their like: files that are no bytes of anything.
  constexpr std::array<std::uint32_t, 4> kNoFiles = {0x9fa0, 0x62656572, 0x63677270, 0x27e0eb};
  if (std::ranges::count(kNoFiles, static_cast<std::uint32_t>(system.f_type)) > 0)
    return {.kind = FileKind::none};
  const int flags = ::fcntl(fd, F_GETFL);
  return {(flags & O_DIRECT) != 0 ? FileKind::direct : FileKind::buffered,
          Devices::all().number_of(is_drive ? found.st_rdev : found.st_dev, system), rule_of(fd)};
}

}  // namespace

OpenFile file_of(int fd) {
  if (fd < 0) return {.kind = FileKind::none};
  if (fd >= kKeptMax) return asked(fd);
  std::atomic<std::uint32_t>& slot = kept[static_cast<std::size_t>(fd)];
  if (const std::uint32_t known = slot.load(std::memory_order_relaxed); known != 0)
    return {static_cast<FileKind>(known >> 24), static_cast<std::uint16_t>(known & 0xffffu),
            static_cast<Rules::FileRule>(known >> 16 & 0xffu)};
  const OpenFile file = asked(fd);
  slot.store(static_cast<std::uint32_t>(file.kind) << 24 |
                 static_cast<std::uint32_t>(file.rule) << 16 | file.device,
             std::memory_order_relaxed);
  return file;
}

void forget(int fd) { forget_from(fd, fd); }

void forget_from(int first, int last) {
  for (int fd = std::max(first, 0); fd <= std::min(last, kKeptMax - 1); ++fd)
    kept[static_cast<std::size_t>(fd)].store(0, std::memory_order_relaxed);
}

std::string device_name(std::uint16_t device) { return Devices::all().name(device); }

}  // namespace sluice::inject
