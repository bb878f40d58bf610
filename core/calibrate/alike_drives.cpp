#include "core/calibrate/alike_drives.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace sluice::calibrate {
namespace {

bool is_near(double a, double b) { return std::abs(a - b) <= kAlikeWithin * std::max(a, b); }

bool are_alike(const DriveFigures& a, const DriveFigures& b) {
  return a.curve.size() == b.curve.size() && a.duplex == b.duplex &&
         is_near(a.alone().read, b.alone().read) && is_near(a.alone().write, b.alone().write) &&
         is_near(a.best(&CurvePoint::read).value, b.best(&CurvePoint::read).value) &&
         is_near(a.best(&CurvePoint::write).value, b.best(&CurvePoint::write).value);
}

using Group = std::vector<DriveFigures*>;

// The median of one figure over the group; how far apart the repeats of all of them were.
template <typename Get>
void pool_figure(const Group& group, Get get) {
  std::vector<double> values;
  for (DriveFigures* drive : group) values.push_back(get(*drive).value);
  Figure pooled = figure_of(std::move(values));
  pooled.count = 0;
  for (DriveFigures* drive : group) {
    const Figure& own = get(*drive);
    pooled.low = std::min(pooled.low, own.low);
    pooled.high = std::max(pooled.high, own.high);
    pooled.count += own.count;
  }
  for (DriveFigures* drive : group) get(*drive) = pooled;
}

void pool_burst(const Group& group, platform::Burst DriveFigures::* burst) {
  std::vector<platform::Burst> bursts;
  for (const DriveFigures* drive : group) bursts.push_back(drive->*burst);
  std::ranges::sort(bursts, {}, &platform::Burst::size_bytes);
  for (DriveFigures* drive : group) drive->*burst = bursts[bursts.size() / 2];
}

void pool(const Group& group) {
  for (std::size_t point = 0; point < group.front()->curve.size(); ++point) {
    pool_figure(group, [point](DriveFigures& d) -> Figure& { return d.curve[point].read; });
    pool_figure(group, [point](DriveFigures& d) -> Figure& { return d.curve[point].write; });
  }
  pool_figure(group, [](DriveFigures& d) -> Figure& { return d.page_latency_seconds; });
  pool_burst(group, &DriveFigures::read_burst);
  pool_burst(group, &DriveFigures::write_burst);
}

}  // namespace

std::vector<std::string> pool_alike(std::vector<DriveFigures>& drives) {
  std::vector<Group> groups;
  for (DriveFigures& drive : drives) {
    const auto group = std::ranges::find_if(
        groups, [&](const Group& others) { return are_alike(*others.front(), drive); });
    if (group != groups.end()) {
      group->push_back(&drive);
    } else {
      groups.push_back({&drive});
    }
  }
  std::vector<std::string> sentences;
  for (const Group& group : groups) {
    if (group.size() < 2) continue;
    pool(group);
    std::vector<std::string> names;
    for (const DriveFigures* drive : group) {
      names.push_back(fmt::format("drive{}", drive - drives.data()));
    }
    sentences.push_back(
        fmt::format("{} differ by at most {:.0f} %: they have the medians of all of them",
                    fmt::join(names, ", "), kAlikeWithin * 100));
  }
  return sentences;
}

}  // namespace sluice::calibrate
