#include "core/platform/platform_change.h"

#include <algorithm>
#include <charconv>

#include "base/nearest.h"
#include "base/setting_text.h"
#include "core/platform/link_parser.h"

namespace sluice::platform {
namespace {

const std::string kUnitsKey = "compute_units";

template <typename Number>
Result<Number> parse_number(const std::string& key, const std::string& text) {
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size()) return number;
  return make_error(ErrorCode::config, "{}: '{}' is not a number", key, text);
}

Status scale_rate(double& per_second, double factor) {
  const double scaled = per_second * factor;
  if (!check_rate(scaled, "").ok()) {
    return make_error(ErrorCode::config,
                      "{:g} times {:g} a second is out of range: a rate is 1 to 10^18 a second",
                      factor, per_second);
  }
  per_second = scaled;
  return ok_status();
}

bool is_of_an_accelerator(const Platform& platform, LinkId id) {
  return std::ranges::any_of(platform.accelerator_routes,
                             [id](const auto& route) { return route.back() == id; });
}

// The kind that a link counts as; none: an accelerator's own.
std::optional<Scaled> kind_of_link(const Platform& platform, LinkId id) {
  for (const Device& device : platform.devices) {
    if (device.host_route.back() == id) return Scaled::media;
    if (!device.internal_route.empty() && device.internal_route.back() == id)
      return Scaled::internal;
  }
  if (is_of_an_accelerator(platform, id)) return std::nullopt;
  return Scaled::link;
}

Status set_compute_units(Platform& platform, std::int32_t count) {
  bool has_engine = false;
  for (const Device& device : platform.devices) {
    if (index_of(device.engine) < 0) continue;
    platform.engine(device.engine).compute_units = count;
    has_engine = true;
  }
  if (has_engine) return ok_status();
  return make_error(ErrorCode::config, "no device has an engine");
}

Status set_one(PlatformChange& change, const std::string& key, const std::string& value) {
  if (key == kUnitsKey) {
    ASSIGN_OR_RETURN(change.compute_units, parse_number<std::int32_t>(key, value));
    if (*change.compute_units >= 1 && *change.compute_units <= kComputeUnitsMax) return ok_status();
    return make_error(ErrorCode::config, "{}: {} is not in 1 to {}", key, value, kComputeUnitsMax);
  }
  std::vector<std::string> keys = {kUnitsKey};
  for (const Scaled scaled : kScaled) {
    keys.push_back(scale_key(scaled));
    if (key != keys.back()) continue;
    ASSIGN_OR_RETURN(change.scales.of(scaled), parse_number<double>(key, value));
    const Status status = check_scale(change.scales.of(scaled));
    return status.ok() ? status : status.error().with_context(key);
  }
  return make_error(ErrorCode::config, "{}: there is no such key of a platform to set{}", key,
                    did_you_mean(key, keys));
}

}  // namespace

std::string scale_key(Scaled scaled) {
  switch (scaled) {
    case Scaled::engine:
      return "engine_scale";
    case Scaled::media:
      return "media_scale";
    case Scaled::internal:
      return "internal_scale";
    case Scaled::link:
      break;
  }
  return "link_scale";
}

Status check_scale(double factor) {
  if (factor >= 1 / kScaleMax && factor <= kScaleMax) return ok_status();
  return make_error(ErrorCode::config, "{:g} is not in {:g} to {:g}", factor, 1 / kScaleMax,
                    kScaleMax);
}

Status scale_link(Link& link, double factor) {
  RETURN_IF_ERROR(scale_rate(link.read_bytes_per_s, factor));
  RETURN_IF_ERROR(scale_rate(link.write_bytes_per_s, factor));
  for (ChunkPoint& point : link.chunk_curve) {
    RETURN_IF_ERROR(scale_rate(point.read_bytes_per_s, factor));
    RETURN_IF_ERROR(scale_rate(point.write_bytes_per_s, factor));
  }
  for (Burst* burst : {&link.read_burst, &link.write_burst}) {
    if (burst->size_bytes > 0) RETURN_IF_ERROR(scale_rate(burst->bytes_per_s, factor));
  }
  return ok_status();
}

Status scale_engine(Engine& engine, double factor) {
  for (auto& [kernel, per_second] : engine.rate) RETURN_IF_ERROR(scale_rate(per_second, factor));
  return ok_status();
}

Status scale_all(Platform& platform, Scaled scaled, double factor) {
  bool is_there = false;
  const auto scale = [&](auto& part, auto scale_part) -> Status {
    is_there = true;
    const Status status = scale_part(part, factor);
    return status.ok() ? status : status.error().with_context(part.name);
  };
  for (std::size_t i = 0; i < platform.links.size(); ++i) {
    const LinkId id{static_cast<std::int32_t>(i)};
    if (kind_of_link(platform, id) == scaled) RETURN_IF_ERROR(scale(platform.link(id), scale_link));
  }
  for (const Device& device : platform.devices) {
    if (scaled != Scaled::engine || index_of(device.engine) < 0) continue;
    RETURN_IF_ERROR(scale(platform.engine(device.engine), scale_engine));
  }
  if (is_there) return ok_status();
  return make_error(ErrorCode::config, "the platform has nothing of the kind");
}

bool is_platform_change(const std::string& key) {
  return key == kUnitsKey ||
         std::ranges::any_of(kScaled, [&](Scaled scaled) { return scale_key(scaled) == key; });
}

Result<PlatformChange> parse_platform_change(std::span<const std::string> settings) {
  PlatformChange change;
  for (const std::string& setting : settings) {
    RETURN_IF_ERROR(set_one(change, key_of(setting), value_of(setting)));
  }
  return change;
}

Result<Platform> with_change(const Platform& platform, const PlatformChange& change) {
  Platform changed = platform;
  for (const Scaled scaled : kScaled) {
    const double factor = change.scales.of(scaled);
    if (factor == 1) continue;
    const Status status = scale_all(changed, scaled, factor);
    if (!status.ok()) return status.error().with_context(scale_key(scaled));
    changed.name += fmt::format(", {}={:g}", scale_key(scaled), factor);
  }
  if (change.compute_units) {
    const Status status = set_compute_units(changed, *change.compute_units);
    if (!status.ok()) return status.error().with_context(kUnitsKey);
    changed.name += fmt::format(", {}={}", kUnitsKey, *change.compute_units);
  }
  return changed;
}

}  // namespace sluice::platform
