#pragma once
// Two recorded runs side by side: what took longer, by how much, and whether that is more than the
// runs' own noise.
//
// Thread contract: free functions.

#include <string>
#include <vector>

#include "base/status.h"
#include "profiler/analyze/answer.h"
#include "storage/rundb/reader.h"

namespace sluice::analyze {

// Medians over the steps of a run, without the first two where there are more.
struct ComparedFigure {
  std::string key;   // "step_time"
  std::string unit;  // "s", "B", ""
  double a = 0;
  double b = 0;
  double noise = 0;  // of b - a: three standard errors of the two medians
  bool is_more_than_noise() const;
  double change() const { return a == 0 ? 0 : b / a - 1; }
};

struct SettingDifference {
  std::string key;
  std::string a;  // "-": the run does not have it
  std::string b;
};

struct Comparison {
  std::vector<ComparedFigure> figures;
  std::vector<SettingDifference> differences;
  std::size_t steps_a = 0;  // that the medians are of
  std::size_t steps_b = 0;
  std::vector<Answer> answers;  // losses of both, their rows, noise, settings that differ
};

// Errors: those of opening; ErrorCode::config if a run has no steps.
Result<Comparison> compare_runs(const std::string& database_a, const std::string& database_b);

}  // namespace sluice::analyze
