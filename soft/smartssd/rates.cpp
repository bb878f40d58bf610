#include "soft/smartssd/rates.h"

#include <algorithm>

namespace sluice::soft_smartssd {
namespace {

constexpr std::string_view kUpdatePrefix = "update_";
// An engine has one rate a rule, whatever the format of the state.
constexpr std::string_view kSplitSuffix = "_split";

TimeNs duration_of(double amount, double per_s) {
  return per_s > 0 ? static_cast<TimeNs>(amount / per_s * 1e9) : 0;
}

std::string_view rule_of(std::string_view kernel) {
  kernel.remove_prefix(kUpdatePrefix.size());
  if (kernel.ends_with(kSplitSuffix)) kernel.remove_suffix(kSplitSuffix.size());
  return kernel;
}

double rate_of(const platform::Engine& engine, std::string_view kernel) {
  const auto found = engine.rate.find(std::string(kernel));
  return found == engine.rate.end() ? 0 : found->second;
}

}  // namespace

Result<Rates> Rates::of(const Settings& settings, int device) {
  Rates rates;
  if (!settings.platform.empty()) {
    ASSIGN_OR_RETURN(const platform::Platform platform, platform::load_platform(settings.platform));
    if (static_cast<std::size_t>(device) >= platform.devices.size())
      return make_error(ErrorCode::config, "{}: platform={} has {} devices, not {}",
                        kSettingsVariable, settings.platform, platform.devices.size(), device + 1);
    const platform::Device& described = platform.device(DeviceId{device});
    if (index_of(described.engine) < 0)
      return make_error(ErrorCode::config, "{}: {} of platform={} is a plain drive",
                        kSettingsVariable, described.name, settings.platform);
    rates.engine_ = platform.engine(described.engine);
    rates.from_device_ = slowest_of(platform, described.memory_route, platform::Direction::read);
    rates.to_device_ = slowest_of(platform, described.memory_route, platform::Direction::write);
  }
  rates.elements_per_s_ = settings.kernel_elements_per_s;
  if (settings.sync_mib_per_s > 0) {
    rates.from_device_ = rates.to_device_ = {settings.sync_mib_per_s * 1048576, 0};
  }
  return rates;
}

Rates::Sync Rates::slowest_of(const platform::Platform& platform,
                              const std::vector<platform::LinkId>& route,
                              platform::Direction direction) {
  Sync slowest;
  for (const platform::LinkId id : route) {
    const platform::Link& link = platform.link(id);
    const double bytes_per_s =
        direction == platform::Direction::read ? link.read_bytes_per_s : link.write_bytes_per_s;
    slowest.bytes_per_s =
        slowest.bytes_per_s > 0 ? std::min(slowest.bytes_per_s, bytes_per_s) : bytes_per_s;
    slowest.latency_ns += link.latency_ns;
  }
  return slowest;
}

// An update's gradient is decompressed beside the rule, and the slower of the two counts
// (csd::update_cost). A kernel that the platform has no rate for runs as fast as it does.
TimeNs Rates::kernel_ns(const KernelStart& start) const {
  const auto elements = static_cast<double>(start.element_count);
  if (elements_per_s_ > 0) return duration_of(elements, elements_per_s_);
  if (!engine_ || !start.kernel.starts_with(kUpdatePrefix)) return 0;
  const double rule = rate_of(*engine_, rule_of(start.kernel));
  if (rule <= 0) return 0;
  const TimeNs decompress_ns =
      start.is_sparse ? duration_of(elements, rate_of(*engine_, "decompress")) : 0;
  return engine_->launch_ns + std::max(duration_of(elements, rule), decompress_ns);
}

TimeNs Rates::sync_ns(platform::Direction direction, std::uint64_t size_bytes) const {
  const Sync& sync = direction == platform::Direction::read ? from_device_ : to_device_;
  if (sync.bytes_per_s <= 0) return 0;
  return sync.latency_ns + duration_of(static_cast<double>(size_bytes), sync.bytes_per_s);
}

}  // namespace sluice::soft_smartssd
