#pragma once
// The residual of error feedback between two runs: written when a run ends, read when it is
// resumed, so that it goes on to the bit. A run that was killed leaves none of its last step; what
// resumes it begins with zeros and says so. Where no file is, no run of this state has had feedback
// yet, so zeros are right. The bytes are on the page docs/state_format.md.
//
// Thread contract: free functions; nothing of the run is under way.

#include <span>
#include <string>

#include "base/status.h"

namespace sluice::offload {

inline constexpr const char* kResidualFileName = "residual.slc";

// Replaces the file as a whole, or leaves the old one. An empty residual stands for zeros: the run
// begins, or goes on in this step without feedback. Errors: those of the file system.
Status save_residual(const std::string& path, std::int64_t step, std::span<const float> residual);

// False if the file is of another step: `residual`, which is zeros, stays as it was. Errors:
// ErrorCode::corrupt for a foreign, cut or damaged file, unsupported for a newer version.
Result<bool> load_residual(const std::string& path, std::int64_t step, std::span<float> residual);

}  // namespace sluice::offload
