#pragma once
// A platform with faster or slower parts: factors on what its media, links and engines do a second,
// each apart, and how many compute units an engine has. A file says it by the keys of
// docs/platform_format.md ("What would be, if"); `sluice simulate --platform-set` by the same ones.
//
// A scale is a factor on rates (bytes, elements a second; those of chunk curves and bursts too).
// Latencies, launches, sizes and what transfers take of the host's processor stay as they are.
//
// Thread contract: plain data and free functions.

#include <array>
#include <optional>
#include <span>
#include <string>

#include "core/platform/platform.h"

namespace sluice::platform {

// Whose rates a scale multiplies.
enum class Scaled : std::uint8_t {
  engine,    // kernels of the devices' update engines
  media,     // a device's `drive`
  internal,  // a device's `internal`, from the drive to the engine
  link,      // the shared links: [[link]]
};
inline constexpr std::array<Scaled, 4> kScaled = {Scaled::engine, Scaled::media, Scaled::internal,
                                                  Scaled::link};
std::string scale_key(Scaled scaled);  // "engine_scale"

inline constexpr double kScaleMax = 1e6;  // 1 over it is the least
inline constexpr std::int32_t kComputeUnitsMax = 64;

// By Scaled; 1 changes nothing, not by a bit.
struct Scales {
  std::array<double, kScaled.size()> factors = {1, 1, 1, 1};
  double& of(Scaled scaled) { return factors[static_cast<std::size_t>(scaled)]; }
  double of(Scaled scaled) const { return factors[static_cast<std::size_t>(scaled)]; }
};

struct PlatformChange {
  Scales scales;
  std::optional<std::int32_t> compute_units;  // of each device's engine
};

// From texts "engine_scale=100", "compute_units=2"; of a key that comes twice the last one holds.
// Errors (ErrorCode::config) name the key, and for a misspelt one the nearest right one.
Result<PlatformChange> parse_platform_change(std::span<const std::string> settings);
bool is_platform_change(const std::string& key);

// The changed platform; its name says what was changed. An error when a rate would leave what a
// file may say, 1 to 10^18 a second, or the platform has no device with an engine to change.
Result<Platform> with_change(const Platform& platform, const PlatformChange& change);

// For those who read a file: a factor in its range, and a link or an engine times a factor. The
// errors say what is wrong, not where.
Status check_scale(double factor);
Status scale_link(Link& link, double factor);
Status scale_engine(Engine& engine, double factor);
// Multiplies what the whole platform has of it.
Status scale_all(Platform& platform, Scaled scaled, double factor);

}  // namespace sluice::platform
