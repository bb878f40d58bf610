#include "profiler/c_api/declarations.h"

#include <algorithm>
#include <limits>

namespace sluice::c_api {

Declarations::Declarations() {
  for (std::atomic<std::int16_t>& device : device_of_track_) device = -1;
}

Status Declarations::stage(collect::Collector& collector, record::NameId name,
                           rundb::StageRow meaning) {
  MutexLock lock(mutex_);
  if (stages_.contains(name)) return ok_status();
  collect::RunFacts facts;
  facts.stages.push_back({name, std::move(meaning)});
  RETURN_IF_ERROR(collector.declare(facts));
  stages_.insert(name);
  return ok_status();
}

Result<std::int32_t> Declarations::device(collect::Collector& collector, const std::string& name,
                                          const LinkRates& rates) {
  MutexLock lock(mutex_);
  if (const auto known = devices_.find(name); known != devices_.end()) return known->second.id;
  if (devices_.size() > std::numeric_limits<std::int16_t>::max())
    return make_error(ErrorCode::config, "a recording has at most 32768 devices");
  Device device;
  device.id = static_cast<std::int32_t>(devices_.size());
  collect::RunFacts facts;
  facts.devices.push_back({.id = device.id, .name = name, .kind = "drive"});
  device.link = add_link(name + ".drive", rates, facts);
  RETURN_IF_ERROR(collector.declare(facts));
  devices_[name] = device;
  return device.id;
}

Result<std::int32_t> Declarations::link(collect::Collector& collector, const std::string& name,
                                        const LinkRates& rates) {
  MutexLock lock(mutex_);
  if (const auto known = links_.find(name); known != links_.end()) return known->second;
  collect::RunFacts facts;
  const std::int32_t id = add_link(name, rates, facts);
  RETURN_IF_ERROR(collector.declare(facts));
  return id;
}

std::int32_t Declarations::add_link(const std::string& name, const LinkRates& rates,
                                    collect::RunFacts& facts) {
  const auto [known, is_new] = links_.try_emplace(name, static_cast<std::int32_t>(links_.size()));
  if (is_new) {
    facts.links.push_back({.id = known->second,
                           .name = name,
                           .read_bytes_per_s = rates.read,
                           .write_bytes_per_s = rates.write});
  }
  return known->second;
}

Result<std::vector<std::int64_t>> Declarations::route(std::int32_t device,
                                                      std::int32_t link) const {
  MutexLock lock(mutex_);
  std::vector<std::int64_t> links;
  if (device != -1) {
    const auto found =
        std::ranges::find(devices_, device, [](const auto& named) { return named.second.id; });
    if (found == devices_.end())
      return make_error(ErrorCode::config, "there is no device {} in this recording", device);
    links.push_back(found->second.link);
  }
  if (link != -1) {
    if (link < 0 || link >= std::ssize(links_))
      return make_error(ErrorCode::config, "there is no link {} in this recording", link);
    if (std::ranges::count(links, link) == 0) links.push_back(link);
  }
  return links;
}

Status Declarations::set_device(record::TrackId track, std::int32_t device) {
  const auto index = static_cast<std::size_t>(track);
  if (index >= kDeviceTracksMax) {
    return make_error(ErrorCode::config,
                      "a device is named by a track behind the first {} of its recording",
                      kDeviceTracksMax);
  }
  device_of_track_[index].store(static_cast<std::int16_t>(device), std::memory_order_relaxed);
  return ok_status();
}

}  // namespace sluice::c_api
