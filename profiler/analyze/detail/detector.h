#pragma once
// What every detector of a finding has: what it looks at, and the three outcomes it may have.
//
// Thread contract: plain data and free functions.

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/units.h"
#include "profiler/analyze/findings.h"
#include "profiler/analyze/run_analysis.h"

namespace sluice::analyze::detail {

struct Look {
  const RunAnalysis& analysis;
  const PathSurvey& survey;
  const RunInfo& info;
  const std::vector<rundb::StepRow>& steps;

  const CausePath& of(Cause cause) const { return survey.causes[index_of(cause)]; }
  double share_of(Cause cause) const { return survey.share(of(cause).path.ns()); }
};

struct Detected {
  Outcome outcome = Outcome::could_not_look;
  std::string why;
  Finding finding;
};

// Shares of a step from which on time of a kind that every run has some of is worth a word.
inline constexpr double kLargePart = 0.1;
// And a link's: less is as well hidden beside other work as it can be.
inline constexpr double kBoundPart = 0.25;
// What moves at this part of its rate is full.
inline constexpr double kFullRate = 0.85;
// From one kind of work to another and back, twice a step: a phase that follows another does once.
inline constexpr double kTurnsOfStep = 4;

inline std::string percent(double share) { return fmt::format("{:.0f} %", share * 100); }
inline Detected nothing(std::string why) { return {Outcome::nothing_found, std::move(why), {}}; }
inline Detected cannot(std::string why) { return {Outcome::could_not_look, std::move(why), {}}; }
inline Detected found(const PathTime& path, double share, std::string words, std::string advice,
                      double from = kFindingShare) {
  if (share < from) return nothing(fmt::format("{} of the steps", percent(share)));
  return {
      Outcome::answer,
      percent(share),
      {"", std::move(words), std::min(1.0, share), path.spans(), path.steps(), std::move(advice)}};
}

Detected slow_drive(const Look& look);
Detected hot_drive(const Look& look);
Detected small_operations(const Look& look);
Detected lock_step(const Look& look);
Detected buffered_files(const Look& look);
Detected full_link(const Look& look);
Detected idle_internal_links(const Look& look);
Detected missing_overlap(const Look& look);
Detected reads_and_writes_in_turns(const Look& look);
Detected one_buffer(const Look& look);
Detected straggler(const Look& look);
Detected flushes(const Look& look);
Detected starved_forward(const Look& look);
Detected activations_back(const Look& look);
Detected host_kernel(const Look& look);
Detected costly_compression(const Look& look);
Detected costly_recording(const Look& look);
Detected unrecorded_time(const Look& look);
Detected periodic_slow_steps(const Look& look);
Detected lasting_slowdown(const Look& look);

}  // namespace sluice::analyze::detail
