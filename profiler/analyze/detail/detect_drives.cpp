// Findings about what single drives do.

#include <algorithm>
#include <optional>

#include "profiler/analyze/detail/detector.h"
#include "profiler/analyze/link_use.h"

namespace sluice::analyze::detail {
namespace {

// Equal drives differ by some per cent alone.
constexpr double kSlowRate = 0.8;
constexpr double kHotBytes = 1.25;  // times the mean
// A drive reaches its rate from about this size on, with a few requests under way.
constexpr double kSmallBytes = 128.0 * 1024;
constexpr double kManyOperations = 16;  // a step
// The rate taken for a drive whose rate is not stated: SATA's limit.
constexpr double kAnyDrive = 500e6;
constexpr double kHalfRate = 0.5;
constexpr double kAlone = 0.9;
// Memory is faster: a slower buffered transfer waits for its drive.
constexpr double kMemoryRate = 2e9;
constexpr std::string_view kPageCache = "(page cache).drive";

// One device, in one direction or both.
PathTime path_of(const Look& look, std::int64_t device, std::optional<rundb::Direction> way) {
  PathTime path;
  for (const auto& [key, use] : look.survey.uses) {
    if (use.device != device || use.track->links.empty()) continue;
    if (!way || use.track->direction == *way) path.add(use.path);
  }
  return path;
}

double rate_of(const DeviceUse& device, rundb::Direction way) {
  const bool reads = way == rundb::Direction::read;
  const auto ns = static_cast<double>(reads ? device.read_ns : device.write_ns);
  const auto bytes = static_cast<double>(reads ? device.read_bytes : device.write_bytes);
  return ns > 0 ? bytes / ns * 1e9 : 0;
}

double bytes_of(const DeviceUse& device) {
  return static_cast<double>(device.read_bytes + device.write_bytes);
}

// Drives that share the work: they are alike. What each of another program's is for nobody knows;
// one that moves a tenth of the busiest one's bytes is taken to be there for something else.
constexpr double kSharesWork = 0.1;
std::vector<const DeviceUse*> drives_alike(const Look& look) {
  double most = 0;
  for (const DeviceUse& device : look.analysis.devices) most = std::max(most, bytes_of(device));
  std::vector<const DeviceUse*> alike;
  for (const DeviceUse& device : look.analysis.devices) {
    if (look.analysis.evidence.devices_have_shares || bytes_of(device) > kSharesWork * most)
      alike.push_back(&device);
  }
  return alike;
}

double rate_of_others(const std::vector<const DeviceUse*>& drives, const DeviceUse& device,
                      rundb::Direction way) {
  std::vector<double> rates;
  for (const DeviceUse* other : drives) {
    if (other->device != device.device && rate_of(*other, way) > 0)
      rates.push_back(rate_of(*other, way));
  }
  return rates.empty() ? 0 : median_of(std::move(rates));
}

// The own link of the drive that this use crosses; null: none.
const LinkLoad* drive_load(const Look& look, const PathUse& use) {
  for (const LinkLoad& load : look.analysis.links) {
    if (load.is_of_drive && load.direction == use.track->direction &&
        std::ranges::count(use.track->links, load.link_id) > 0)
      return &load;
  }
  return nullptr;
}

double mean_bytes(const PathUse& use) {
  return use.count > 0 ? static_cast<double>(use.bytes) / static_cast<double>(use.count) : 0;
}

}  // namespace

Detected slow_drive(const Look& look) {
  const std::vector<const DeviceUse*> drives = drives_alike(look);
  if (drives.size() < 2) return nothing("fewer than two drives share the work");
  Detected worst = nothing(fmt::format("{} drives", drives.size()));
  for (const DeviceUse* one_of_them : drives) {
    const DeviceUse& device = *one_of_them;
    for (const rundb::Direction way : {rundb::Direction::read, rundb::Direction::write}) {
      const double rate = rate_of(device, way);
      const double others = rate_of_others(drives, device, way);
      if (rate <= 0 || rate > kSlowRate * others) continue;
      const PathTime path = path_of(look, device.device, way);
      const double cost = look.survey.share(path.ns()) * (1 - rate / others);
      Detected one = found(
          path, cost,
          fmt::format("{} {} at {} where the others do {}, and costs {} of a step.", device.name,
                      way == rundb::Direction::read ? "reads" : "writes", format_rate(rate),
                      format_rate(others), percent(cost)),
          fmt::format("Look for what slows {} down, or give it a smaller part.", device.name));
      if (one.finding.share > worst.finding.share) worst = std::move(one);
    }
  }
  return worst;
}

Detected hot_drive(const Look& look) {
  const std::vector<const DeviceUse*> drives = drives_alike(look);
  if (drives.size() < 2) return nothing("fewer than two drives share the work");
  double sum = 0;
  const DeviceUse* most = nullptr;
  for (const DeviceUse* drive : drives) {
    sum += bytes_of(*drive);
    if (most == nullptr || bytes_of(*drive) > bytes_of(*most)) most = drive;
  }
  const double mean = sum / static_cast<double>(drives.size());
  if (mean <= 0) return nothing("no drive moved bytes");
  const double times = bytes_of(*most) / mean;
  if (times < kHotBytes) return nothing(fmt::format("none moves {:.2f} times the mean", kHotBytes));
  const PathTime path = path_of(look, most->device, std::nullopt);
  const double cost = look.survey.share(path.ns()) * (1 - 1 / times);
  return found(path, cost,
               fmt::format("{} moves {:.2f} times the bytes that drives do on average, and costs "
                           "{} of a step.",
                           most->name, times, percent(cost)),
               "Spread the bytes evenly over the drives.");
}

Detected small_operations(const Look& look) {
  PathTime path;
  double cost = 0;
  double bytes = 0;
  double count = 0;
  for (const auto& [key, use] : look.survey.uses) {
    const LinkLoad* load = drive_load(look, use);
    if (load == nullptr || use.bytes == 0 || mean_bytes(use) >= kSmallBytes) continue;
    if (static_cast<double>(use.count) <
        kManyOperations * static_cast<double>(look.survey.step_count))
      continue;
    const double could = load->bytes_per_s_max > 0 ? load->bytes_per_s_max : kAnyDrive;
    const double efficiency = load->bytes_per_s / could;
    if (efficiency > kHalfRate) continue;
    path.add(use.path);
    cost += look.survey.share(use.path.ns()) * (1 - efficiency);
    bytes += static_cast<double>(use.bytes);
    count += static_cast<double>(use.count);
  }
  if (count == 0) return nothing("no drive has many operations below 128 KiB at half its rate");
  return found(path, cost,
               fmt::format("{} operations of {} each move at less than half of what the drive "
                           "could: {} of a step goes to operations instead of bytes.",
                           static_cast<std::int64_t>(count),
                           format_bytes(static_cast<std::int64_t>(bytes / count)), percent(cost)),
               "Move larger blocks, or several at once.");
}

Detected lock_step(const Look& look) {
  PathTime path;
  double cost = 0;
  bool has_rate = false;
  bool has_transfers = false;
  for (const auto& [key, use] : look.survey.uses) {
    const LinkLoad* load = drive_load(look, use);
    if (load == nullptr || mean_bytes(use) < kSmallBytes) continue;
    has_transfers = true;
    has_rate = has_rate || load->bytes_per_s_max > 0;
    const bool is_alone = static_cast<double>(use.alone) >= kAlone * static_cast<double>(use.count);
    const bool is_many = use.count >= 2 * static_cast<std::int64_t>(look.survey.step_count);
    if (!is_alone || !is_many || load->bytes_per_s_max <= 0) continue;
    const double efficiency = load->bytes_per_s / load->bytes_per_s_max;
    if (efficiency > kFullRate) continue;
    path.add(use.path);
    cost += look.survey.share(use.path.ns()) * (1 - efficiency);
  }
  if (has_transfers && !has_rate) return cannot("the rates of the drives are not known");
  return found(path, cost,
               fmt::format("Transfers are asked for one by one, each when the one before it has "
                           "ended, below the drive's rate: {} of a step.",
                           percent(cost)),
               "Keep several requests under way on a drive.");
}

Detected buffered_files(const Look& look) {
  PathTime path;
  const LinkLoad* most = nullptr;
  for (const auto& [key, use] : look.survey.uses) {
    const LinkLoad* load = drive_load(look, use);
    if (load == nullptr || !load->name.ends_with(kPageCache)) continue;
    if (load->bytes_per_s > kMemoryRate) continue;
    path.add(use.path);
    if (most == nullptr || load->bytes > most->bytes) most = load;
  }
  if (most == nullptr) return nothing("no files through the page cache below 2 GB/s");
  const double cost = look.survey.share(path.ns());
  return found(path, cost,
               fmt::format("{} of a step is files that go through the page cache at {}, slower "
                           "than memory.",
                           percent(cost), format_rate(most->bytes_per_s)),
               "Open the files with O_DIRECT, or read what stays in memory once.", kLargePart);
}

}  // namespace sluice::analyze::detail
