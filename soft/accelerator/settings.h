#pragma once
// The settings of a process's software accelerator, from the text that soft_accelerator.h
// describes.
//
// Thread contract: free functions and plain values.
// Errors: config, for a key or a value that is not known; the text is taken whole or not at all.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace sluice::soft_accelerator {

enum class FaultKind : std::uint8_t { oom, copy, lost, stuck };

struct Fault {
  FaultKind kind = FaultKind::oom;
  std::int64_t event = 0;  // 1-based
  int device = -1;         // -1: on each
};

struct Settings {
  int devices = 1;
  std::int64_t cap_bytes = std::int64_t{1} << 30;
  double in_bytes_per_s = 0;   // 0: as fast as it goes
  double out_bytes_per_s = 0;  // 0: as fast as it goes
  std::uint64_t seed = 1;
  std::int64_t delay_us = 0;  // the longest; 0: none
  int threads = 0;            // 0: as many as the caller of open() has
  std::vector<Fault> faults = {};
  std::string counters_path = {};  // written as the program ends; empty: nowhere

  bool strikes(FaultKind kind, std::int64_t event, int device) const {
    for (const Fault& fault : faults)
      if (fault.kind == kind && fault.event == event &&
          (fault.device < 0 || fault.device == device))
        return true;
    return false;
  }
};

Result<Settings> parse_settings(std::string_view text);

}  // namespace sluice::soft_accelerator
