#include "core/simulate/rank_times.h"

#include <algorithm>
#include <array>
#include <utility>

namespace sluice::simulate {

using stages::Stage;

RankTimes::What RankTimes::what_of(Stage stage) {
  const stages::StageInfo& info = stages::stage_info(stage);
  const bool is_layer =
      info.phase == stages::StagePhase::forward || info.phase == stages::StagePhase::backward;
  if (is_layer && info.place == stages::StagePlace::compute) return What::computing;
  return info.place == stages::StagePlace::ranks ? What::between_ranks : What::other;
}

void RankTimes::on_finish(const runtime::OperationState& state) {
  const Stage stage = state.operation.label.stage;
  intervals_.push_back({state.start_ns, state.end_ns, what_of(stage)});
  ended_.push_back(
      {state.end_ns, stage, state.operation.label.size_bytes, state.end_ns - state.start_ns});
}

// From one begin or end to the next: what is under way says what the time in between is.
RankTimes::Sums RankTimes::sums_within(TimeNs from_ns, TimeNs to_ns) const {
  std::vector<std::pair<TimeNs, std::pair<What, int>>> turns;
  for (const Interval& interval : intervals_) {
    const TimeNs start_ns = std::max(interval.start_ns, from_ns);
    const TimeNs end_ns = std::min(interval.end_ns, to_ns);
    if (start_ns >= end_ns) continue;
    turns.push_back({start_ns, {interval.what, 1}});
    turns.push_back({end_ns, {interval.what, -1}});
  }
  std::ranges::sort(turns, {}, [](const auto& turn) { return turn.first; });
  Sums sums;
  std::array<int, 3> under_way{};
  TimeNs before_ns = from_ns;
  for (const auto& [at_ns, turn] : turns) {
    const auto is_going = [&](What what) { return under_way[static_cast<std::size_t>(what)] > 0; };
    if (is_going(What::computing)) {
      sums.computing_ns += at_ns - before_ns;
    } else if (is_going(What::between_ranks) && !is_going(What::other)) {
      sums.exposed_ns += at_ns - before_ns;
    }
    under_way[static_cast<std::size_t>(turn.first)] += turn.second;
    before_ns = at_ns;
  }
  return sums;
}

ShardedStep RankTimes::mean_step(const SimulatedStep& shown) const {
  const TimeNs from_ns = shown.steps.front().start_ns;
  const TimeNs to_ns = shown.steps.back().end_ns;
  const std::int64_t count = std::ssize(shown.steps);
  const auto seconds_of = [count](TimeNs ns) {
    return static_cast<double>(ns) / 1e9 / static_cast<double>(count);
  };
  const Sums sums = sums_within(from_ns, to_ns);
  ShardedStep step;
  step.seconds = shown.total_seconds;
  step.compute_seconds = seconds_of(sums.computing_ns);
  step.update_seconds = step.seconds - step.compute_seconds - seconds_of(sums.exposed_ns);
  for (const double seconds : shown.activation_wait_seconds) {
    step.activation_wait_seconds += seconds;
  }
  for (const Ended& ended : ended_) {
    if (ended.end_ns > to_ns) continue;
    StageUse& use = step.stages[stages::index_of(ended.stage)];
    use.count += 1;
    use.size_bytes += ended.size_bytes;
    use.seconds += seconds_of(ended.dur_ns);
  }
  for (StageUse& use : step.stages) {
    use.count /= count;
    use.size_bytes /= count;
  }
  return step;
}

}  // namespace sluice::simulate
