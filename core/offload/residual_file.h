#pragma once
// The residual of error feedback between two runs: written when a run ends, read when it is
// resumed, so that it goes on to the bit. A run that was killed leaves none of its last step; what
// resumes it begins with zeros and says so. Where no file is, no run of this state has had feedback
// yet, so zeros are right. The bytes are on the page docs/state_format.md.
//
// Thread contract: free functions; nothing of the run is under way.

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "base/status.h"

namespace sluice::offload {

inline constexpr const char* kResidualFileName = "residual.slc";

// A residual wherever it is, read and written in pieces of at most kResidualPieceElements.
inline constexpr std::int64_t kResidualPieceElements = 1 << 20;
struct ResidualPlace {
  std::int64_t element_count = 0;
  std::function<Status(std::int64_t first, std::span<float> piece)> read = {};
  std::function<Status(std::int64_t first, std::span<const float> piece)> write = {};
};
ResidualPlace residual_in_memory(std::span<float> residual);

// Replaces the file as a whole, or leaves the old one. An empty residual stands for zeros: the run
// begins, or goes on in this step without feedback. Errors: those of the file system and of the
// place.
Status save_residual(const std::string& path, std::int64_t step, const ResidualPlace& residual);

// False if the file is of another step: the residual, which is zeros, stays as it was. Errors:
// ErrorCode::corrupt for a foreign, cut or damaged file (the residual is then of no use),
// unsupported for a newer version; those of the place.
Result<bool> load_residual(const std::string& path, std::int64_t step,
                           const ResidualPlace& residual);

// Whether a file is there that has more than zeros, of whatever step.
bool has_residual(const std::string& path);

}  // namespace sluice::offload
