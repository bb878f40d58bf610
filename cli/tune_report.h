#pragma once
// What `sluice tune` prints.
//
// Thread contract: free functions.

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace sluice::tune {
class MachineTuning;
struct TunedMachine;
}  // namespace sluice::tune

namespace sluice::cli {

// What is said of a tuned machine besides the search itself.
struct TuneReport {
  const tune::MachineTuning& tuning;
  std::string written_platform = {};                    // the file it went to; empty: none
  bool applies = false;                                 // the proposal goes to a live run
  std::optional<std::int64_t> applied_after_step = {};  // none: nothing was to be changed
};

std::string tune_text(const TuneReport& report, const tune::TunedMachine& tuned);
std::string tune_json(const TuneReport& report, const tune::TunedMachine& tuned);

// A row for each number of devices.
std::string devices_text(const TuneReport& report, std::span<const tune::TunedMachine> machines);
std::string devices_json(const TuneReport& report, std::span<const tune::TunedMachine> machines);

}  // namespace sluice::cli
