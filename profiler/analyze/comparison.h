#pragma once
// Two recorded runs side by side: what took longer, by how much, and whether that is more than the
// runs' own noise.
//
// Thread contract: free functions.

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/stops.h"
#include "profiler/analyze/answer.h"
#include "profiler/analyze/comparability.h"
#include "storage/rundb/reader.h"

namespace sluice::analyze {

// Medians over the steps of a run, without the first two where there are more. The loss is that of
// the last step that both runs have.
struct ComparedFigure {
  std::string key;   // "step_time"
  std::string unit;  // "s", "B", ""
  double a = 0;
  double b = 0;
  double noise = 0;  // of b - a: three standard errors of the two medians; 0: none is known
  bool is_more_than_noise() const;
  double change() const { return a == 0 ? 0 : b / a - 1; }
  double noise_share() const;  // of a; 0: none is known
  bool is_better() const;      // b's: more tokens a second, less of everything else
};

struct SettingDifference {
  std::string key;
  std::string a;  // "-": the run does not have it
  std::string b;
};

struct Comparison {
  Comparability comparability;
  std::vector<ComparedFigure> figures;
  std::vector<SettingDifference> differences;
  std::size_t steps_a = 0;  // that the medians are of
  std::size_t steps_b = 0;
  std::vector<Answer> answers;  // losses of both, their rows, noise, settings that differ

  const ComparedFigure* figure(std::string_view key) const;  // null: not one of both runs
};

// Errors: those of opening; ErrorCode::config if a run has no steps; ErrorCode::cancelled once
// `stops` says so.
Result<Comparison> compare_runs(const std::string& database_a, const std::string& database_b,
                                const Stops& stops = {});

}  // namespace sluice::analyze
