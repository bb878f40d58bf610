#pragma once
// What a performance engineer would point at in a run, with evidence: docs/recording.md,
// "Findings". A detector stands on what the record means (stages, links, devices, the critical
// path), never on the names of a program.
//
// Thread contract: plain data and free functions.

#include <cstdint>
#include <string>
#include <vector>

#include "profiler/analyze/answer.h"
#include "profiler/analyze/path_survey.h"

namespace sluice::analyze {

struct RunAnalysis;

struct Finding {
  std::string kind;                 // "slow drive"
  std::string words;                // one sentence with figures
  double share = 0;                 // of the time of the steps looked at that it costs, 0 to 1
  std::vector<std::int64_t> spans;  // evidence, at most kEvidenceMax each, the worst first
  std::vector<std::int64_t> steps;  // ids
  std::string advice;               // what to do
};

// Less of a step is no finding: it is near the noise of most machines' steps.
inline constexpr double kFindingShare = 0.05;

struct Found {
  std::vector<Finding> findings;  // the costliest first
  std::vector<Answer> answers;    // one of each detector
};

// `analysis` has all but its answers and findings; `survey` the steps that it looked at.
Found find_bottlenecks(const RunAnalysis& analysis, const PathSurvey& survey, const RunInfo& info,
                       const std::vector<rundb::StepRow>& steps);

}  // namespace sluice::analyze
