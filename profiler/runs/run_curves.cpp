#include "profiler/runs/run_curves.h"

#include <cmath>

#include "profiler/runs/run_figures.h"
#include "storage/rundb/query.h"
#include "storage/rundb/reader.h"

namespace sluice::runs {

Result<RunCurves> read_curves(const std::string& path, const Stops& stops) {
  RunCurves curves{.path = path};
  ASSIGN_OR_RETURN(const auto reader, rundb::Reader::open(database_of_run(path)));
  if (stops) rundb::Query(*reader).end_if(stops);
  ASSIGN_OR_RETURN(const rundb::Reader::Snapshot snapshot, reader->snapshot());
  ASSIGN_OR_RETURN(curves.steps, reader->steps());
  ASSIGN_OR_RETURN(curves.validations, reader->validations());
  return curves;
}

std::vector<CurvePoint> smoothed(std::span<const CurvePoint> points, double weight) {
  std::vector<CurvePoint> smooth(points.begin(), points.end());
  double sum = 0;    // of values, each by its weight
  double total = 0;  // of weights
  const CurvePoint* before = nullptr;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (!std::isfinite(points[i].value)) continue;
    const double steps = before == nullptr ? 0 : static_cast<double>(points[i].step - before->step);
    const double kept = before == nullptr ? 0 : std::pow(weight, steps);
    sum = kept * sum + points[i].value;
    total = kept * total + 1;
    smooth[i].value = sum / total;
    before = &points[i];
  }
  return smooth;
}

}  // namespace sluice::runs
