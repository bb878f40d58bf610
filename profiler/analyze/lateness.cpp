#include "profiler/analyze/lateness.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "base/figure_text.h"

namespace sluice::analyze {
namespace {

constexpr std::size_t kStagesNamed = 3;

std::vector<std::string> latest_stages(const std::vector<rundb::LatenessRow>& rows) {
  std::map<std::string, TimeNs> late_ns;
  for (const rundb::LatenessRow& row : rows) late_ns[row.stage] += row.late_ns;
  std::vector<std::pair<TimeNs, std::string>> stages;
  for (const auto& [stage, late] : late_ns) {
    if (late > 0) stages.emplace_back(late, stage);
  }
  std::ranges::sort(stages, std::greater<>());
  stages.resize(std::min(stages.size(), kStagesNamed));
  std::vector<std::string> names;
  for (auto& [late, stage] : stages) names.push_back(std::move(stage));
  return names;
}

}  // namespace

Result<Lateness> lateness_of(rundb::Reader& reader, const RunInfo& info) {
  Lateness lateness;
  lateness.is_emulated = info.meta_value("clock") == "emulated";
  if (!lateness.is_emulated) return lateness;
  ASSIGN_OR_RETURN(const std::vector<rundb::LatenessRow> rows, reader.lateness());
  lateness.all = rundb::sum_of(rows);
  std::map<std::int64_t, rundb::LatenessSum> by_step;
  for (const rundb::LatenessRow& row : rows) by_step[row.step_id].add(row);
  for (const auto& [step, sum] : by_step) {
    if (sum.late_share() <= lateness.worst.late_share()) continue;
    lateness.worst = sum;
    lateness.worst_from = step;
  }
  lateness.stages = latest_stages(rows);
  lateness.needed_time_scale = rundb::needed_time_scale(rows, info.time_scale());
  return lateness;
}

std::string Lateness::words() const {
  if (!is_late()) return "";
  std::string text = all.words();
  if (!all.is_late()) {
    text += fmt::format(" (from step {} on {:.0f} % of them)", worst_from + 1,
                        worst.late_share() * 100);
  }
  if (!stages.empty()) text += fmt::format(", {} most", fmt::join(stages, ", "));
  return text + fmt::format(
                    ": these times are partly this computer's. --set time_scale={:g} would "
                    "give it the time.",
                    needed_time_scale);
}

std::string Lateness::short_words() const {
  if (!is_late()) return "";
  return fmt::format("{:.0f} % of operations LATE",
                     (all.is_late() ? all : worst).late_share() * 100);
}

Answer lateness_answer(const Lateness& lateness) {
  const std::string of = "late operations";
  if (lateness.all.operations == 0) {
    return {of, Outcome::could_not_look, "table lateness has no rows"};
  }
  const std::string why =
      fmt::format("{:.1f} % of {} modelled operations", lateness.all.late_share() * 100,
                  format_whole(lateness.all.operations));
  return {of, lateness.is_late() ? Outcome::answer : Outcome::nothing_found, why};
}

}  // namespace sluice::analyze
