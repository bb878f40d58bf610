#pragma once
// From the TOML of docs/platform_format.md to a Platform.
//
// Thread contract: one thread; one use.

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/platform/platform.h"
#include "core/platform/toml_table.h"

namespace sluice::platform {

inline constexpr std::int64_t kDeviceCountMax = 1024;
inline constexpr std::int64_t kAcceleratorCountMax = 64;

struct KernelKey {
  std::string name;
  std::string unit;  // "elem/s", "FLOP/s" or "B/s"
};

class PlatformParser {
 public:
  Result<Platform> parse(std::string_view toml, const std::string& path);

 private:
  Status parse_shared_links(const TomlTable& root);
  Status parse_host(const TomlTable& root);
  Status parse_compute(const TomlTable& root);
  Status parse_accelerators(const TomlTable& table, Engine& engine);
  Status parse_devices(const TomlTable& root);
  Status parse_device_group(const TomlTable& table);
  Status parse_scales_of_all(const TomlTable& root);

  Result<Engine> parse_engine(const TomlTable& table, std::span<const KernelKey> kernels,
                              std::vector<std::string> other_keys) const;
  static Status parse_wake(const TomlTable& table, Engine& engine);
  Status parse_processor(const TomlTable& table, Engine& engine) const;
  Result<std::vector<LinkId>> parse_route(const TomlTable& group) const;
  Status add_devices(const TomlTable& group, const Device& pattern, const Link& drive,
                     const Link* internal, const Engine* engine);
  LinkId add_link(Link link, std::string name);
  EngineId add_engine(Engine engine, std::string name);

  Platform platform_;
  std::map<std::string, LinkId> shared_links_;
  std::set<std::string> device_names_;
};

}  // namespace sluice::platform
