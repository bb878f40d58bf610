#pragma once
// The curves of a run that several are laid over each other by, and how a curve is smoothed.
//
// Thread contract: plain data and free functions.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/stops.h"
#include "storage/rundb/rows.h"

namespace sluice::runs {

inline constexpr std::size_t kOverlaidMax = 8;  // runs: more colours are not told apart

struct RunCurves {
  std::string path = {};
  std::vector<rundb::StepRow> steps = {};
  std::vector<rundb::ValidationRow> validations = {};
};
Result<RunCurves> read_curves(const std::string& path, const Stops& stops = {});

struct CurvePoint {
  std::int64_t step = 0;
  double value = 0;  // not a number: there is none
};

// Each value becomes a mean of it and of those before: one that is d steps back counts `weight`^d.
// With weight 0 the curve is as it is. The page has the same formula in html/runs_curves.js.
std::vector<CurvePoint> smoothed(std::span<const CurvePoint> points, double weight);

}  // namespace sluice::runs
