#pragma once
// The settings of a process's software SmartSSDs, from the text of SLUICE_SOFT_XRT:
//
//   devices=2;memory_mib=1024;seed=7;completion_delay_us=200;fault=hang@3;fault=allocation~0.01
//
// docs/software_smartssd.md has the keys. A fault strikes event number N of its kind (`@N`,
// 1-based, counted on each device) or each with a probability (`~P`, by the seed); `/deviceN`
// behind it keeps it to one device.
//
// Thread contract: free functions and plain values.
// Errors: config, for a key or a value that is not known; the text is taken whole or not at all.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace sluice::soft_smartssd {

inline constexpr const char* kSettingsVariable = "SLUICE_SOFT_XRT";

enum class FaultKind : std::uint8_t {
  hang,             // a run's unit never says that it is done
  memory_error,     // a run ends with a changed word in one of its buffers, and says so
  lost,             // at that run the device falls off the bus
  allocation,       // a buffer cannot be allocated
  unreachable_p2p,  // the later half of a P2P buffer's mapping cannot be reached
};
inline constexpr int kFaultKindCount = 5;

struct FaultRule {
  FaultKind kind = FaultKind::hang;
  std::int64_t event = 0;  // 1-based; 0: by probability
  double probability = 0;
  int device = -1;  // -1: on each
};

struct Settings {
  int devices = 1;
  std::int64_t memory_mib = 4096;
  std::uint64_t seed = 1;
  std::string platform = {};             // file with the rates below; empty: none
  double kernel_elements_per_s = 0;      // 0: as the platform file says
  double sync_mib_per_s = 0;             // 0: as the platform file says
  std::int64_t completion_delay_us = 0;  // the longest that a finished run's notice may take
  std::int64_t hang_ms = 50;             // until a hung run is given up; 0: never
  std::vector<FaultRule> faults;
};

Result<Settings> parse_settings(std::string_view text);

// The settings that the environment has now.
Result<Settings> settings_of_environment();

}  // namespace sluice::soft_smartssd
