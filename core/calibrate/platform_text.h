#pragma once
// A calibration as a platform file (docs/platform_format.md), with the spread of each figure and
// what was not measured in comments.
//
// Thread contract: free functions.

#include <string>

#include "core/calibrate/calibration.h"

namespace sluice::calibrate {

enum class DevicesAre {
  plain_drives,   // method=host
  emulated_csds,  // also method=csd: the host's processor in the place of update engines
};

std::string platform_text(const Calibration& calibration, DevicesAre devices);

// The text as `path`, whole or not at all, after load_platform's parser has taken it.
Status write_platform(const std::string& text, const std::string& path);

// Whether `path` can be written: ErrorCode::config if not. To be asked before anything is measured.
enum class IfThere { refuse, replace };
Status check_output(const std::string& path, IfThere if_there);

}  // namespace sluice::calibrate
