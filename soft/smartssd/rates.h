#pragma once
// How long a device's kernels and syncs take at least: as the platform file of its settings says,
// or the settings themselves. The kernel rates of a platform file have the device's own memory in
// them; a P2P read is the drive's.
//
// Thread contract: immutable once made.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "core/platform/platform.h"
#include "soft/smartssd/settings.h"

namespace sluice::soft_smartssd {

// An update's `gradient_format`: hls_kernels::kGradientSparse, by value.
inline constexpr std::uint64_t kSparseGradient = 3;

class Rates {
 public:
  // Errors: those of the platform file; ErrorCode::config where it has no such device, or one
  // without an engine.
  static Result<Rates> of(const Settings& settings, int device);

  struct KernelStart {
    std::string_view kernel;  // "update_adamw"
    std::uint64_t element_count = 0;
    bool is_sparse = false;  // the gradient of an update
  };
  // 0: as fast as it runs.
  TimeNs kernel_ns(const KernelStart& start) const;
  TimeNs sync_ns(platform::Direction direction, std::uint64_t size_bytes) const;

 private:
  struct Sync {
    double bytes_per_s = 0;  // 0: as fast as it runs
    TimeNs latency_ns = 0;
  };
  static Sync slowest_of(const platform::Platform& platform,
                         const std::vector<platform::LinkId>& route, platform::Direction direction);

  double elements_per_s_ = 0;  // of every kernel; 0: the engine's
  std::optional<platform::Engine> engine_;
  Sync from_device_;
  Sync to_device_;
};

}  // namespace sluice::soft_smartssd
