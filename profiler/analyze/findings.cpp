#include "profiler/analyze/findings.h"

#include <array>
#include <functional>
#include <string_view>

#include "profiler/analyze/detail/detector.h"

namespace sluice::analyze {
namespace {

using namespace detail;

struct Detector {
  std::string_view kind;
  Detected (*look)(const Look&);
  bool needs_operations = true;
};
constexpr std::array<Detector, 20> kDetectors = {{
    {"slow drive", slow_drive},
    {"hot drive", hot_drive},
    {"small operations", small_operations},
    {"lock-step queue", lock_step},
    {"buffered files", buffered_files},
    {"full link", full_link},
    {"idle internal links", idle_internal_links},
    {"missing overlap", missing_overlap},
    {"reads and writes in turns", reads_and_writes_in_turns},
    {"too few buffers", one_buffer},
    {"straggling rank", straggler},
    {"synchronous flush", flushes},
    {"starved forward", starved_forward},
    {"late activations", activations_back},
    {"host kernel", host_kernel},
    {"costly compression", costly_compression},
    {"costly recording", costly_recording},
    {"unrecorded time", unrecorded_time},
    {"periodic slow steps", periodic_slow_steps, false},
    {"lasting slowdown", lasting_slowdown, false},
}};

}  // namespace

Found find_bottlenecks(const RunAnalysis& analysis, const PathSurvey& survey, const RunInfo& info,
                       const std::vector<rundb::StepRow>& steps) {
  const Look look{analysis, survey, info, steps};
  Found all;
  for (const Detector& detector : kDetectors) {
    Detected one = detector.needs_operations && !analysis.has_spans() ? cannot(analysis.why_unknown)
                                                                      : detector.look(look);
    all.answers.push_back({.of = std::string(detector.kind),
                           .outcome = one.outcome,
                           .why = std::move(one.why),
                           .is_of_finding = true});
    if (one.outcome != Outcome::answer) continue;
    one.finding.kind = detector.kind;
    all.findings.push_back(std::move(one.finding));
  }
  std::ranges::stable_sort(all.findings, std::greater<>(), &Finding::share);
  return all;
}

}  // namespace sluice::analyze
