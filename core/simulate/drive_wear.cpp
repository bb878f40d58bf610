#include "core/simulate/drive_wear.h"

#include <limits>

namespace sluice::simulate {
namespace {

// The link of the drive itself is the last on the way from host memory; engines write across it
// too.
std::int64_t written_bytes(const platform::Device& device, const SimulatedStep& step) {
  constexpr auto kWrite = static_cast<std::size_t>(platform::Direction::write);
  const auto link = static_cast<std::size_t>(platform::index_of(device.host_route.back()));
  std::int64_t sum = 0;
  for (const auto& phase : step.links[link].size_bytes) sum += phase[kWrite];
  return sum;
}

}  // namespace

double DriveWear::life_steps() const {
  if (written_bytes == 0) return std::numeric_limits<double>::infinity();
  return static_cast<double>(endurance_bytes) / static_cast<double>(written_bytes);
}

std::vector<DriveWear> drive_wear(const platform::Platform& platform, const SimulatedStep& step) {
  CHECK_EQ(step.links.size(), platform.links.size());
  std::vector<DriveWear> rows;
  for (const platform::Device& device : platform.devices) {
    if (device.endurance_bytes == 0) continue;
    rows.push_back(
        {device.name, device.endurance_bytes, written_bytes(device, step), step.total_seconds});
  }
  return rows;
}

}  // namespace sluice::simulate
