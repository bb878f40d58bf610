#include "core/tune/recorded_steps.h"

#include <algorithm>
#include <numeric>

#include "core/train/training_step.h"

namespace sluice::tune {
namespace {

using stages::Stage;
using stages::StagePhase;

double seconds_of(TimeNs dur_ns) { return static_cast<double>(dur_ns) / 1e9; }

// Transfers of devices that every step has, so that steps can be compared.
bool is_transfer(Stage stage) {
  const stages::StageInfo& info = stages::stage_info(stage);
  return info.kind == stages::StageKind::transfer && info.place == stages::StagePlace::device &&
         info.every_step;
}

// The step in which `end_ns` lies; steps.end() if none. A step's last instant is its own.
std::vector<simulate::StepTimes>::const_iterator step_of(
    const std::vector<simulate::StepTimes>& steps, TimeNs end_ns) {
  const auto step = std::ranges::lower_bound(steps, end_ns, {}, &simulate::StepTimes::end_ns);
  return step != steps.end() && end_ns > step->start_ns ? step : steps.end();
}

// Parameters come from the device's memory, past the drive.
enum class DriveTraffic : std::uint8_t { read, write, none };
DriveTraffic drive_traffic(const OperationTimes& operation) {
  if (!stages::stage_info(operation.stage).file) return DriveTraffic::none;
  return operation.direction == platform::Direction::read ? DriveTraffic::read
                                                          : DriveTraffic::write;
}
DriveTraffic opposite(DriveTraffic traffic) {
  if (traffic == DriveTraffic::none) return traffic;
  return traffic == DriveTraffic::read ? DriveTraffic::write : DriveTraffic::read;
}

struct Interval {
  TimeNs start_ns = 0;
  TimeNs end_ns = 0;
};

// Sorted, and merged where they touch.
std::vector<Interval> united(std::vector<Interval> intervals) {
  std::ranges::sort(intervals, {}, &Interval::start_ns);
  std::vector<Interval> all;
  for (const Interval& next : intervals) {
    if (all.empty() || next.start_ns > all.back().end_ns) {
      all.push_back(next);
    } else {
      all.back().end_ns = std::max(all.back().end_ns, next.end_ns);
    }
  }
  return all;
}

// How much of `interval` lies in the united `others`.
TimeNs overlap_ns(const Interval& interval, const std::vector<Interval>& others) {
  TimeNs sum_ns = 0;
  auto other = std::ranges::lower_bound(others, interval.start_ns, {}, &Interval::end_ns);
  for (; other != others.end() && other->start_ns < interval.end_ns; ++other) {
    sum_ns +=
        std::min(interval.end_ns, other->end_ns) - std::max(interval.start_ns, other->start_ns);
  }
  return sum_ns;
}

// Each kernel, as they were asked for, has the unit that is free first.
std::vector<double> seconds_on_units(std::span<const OperationTimes> kernels, std::int32_t units) {
  std::vector<std::size_t> by_start(kernels.size());
  std::iota(by_start.begin(), by_start.end(), std::size_t{0});
  std::ranges::stable_sort(by_start, {}, [&](std::size_t i) { return kernels[i].start_ns; });
  std::vector<double> seconds(kernels.size());
  std::vector<TimeNs> free_ns(static_cast<std::size_t>(units), std::numeric_limits<TimeNs>::min());
  for (const std::size_t i : by_start) {
    TimeNs& unit_free_ns = *std::ranges::min_element(free_ns);
    const TimeNs begin_ns = std::max(kernels[i].start_ns, unit_free_ns);
    seconds[i] = seconds_of(std::max(kernels[i].end_ns - begin_ns, TimeNs{0}));
    unit_free_ns = std::max(unit_free_ns, kernels[i].end_ns);
  }
  return seconds;
}

std::vector<double> seconds_in_turn(std::span<const OperationTimes> kernels) {
  std::vector<std::size_t> by_end(kernels.size());
  std::iota(by_end.begin(), by_end.end(), std::size_t{0});
  std::ranges::stable_sort(by_end, {}, [&](std::size_t i) { return kernels[i].end_ns; });
  std::vector<double> seconds(kernels.size());
  TimeNs free_ns = std::numeric_limits<TimeNs>::min();
  for (const std::size_t i : by_end) {
    seconds[i] = seconds_of(kernels[i].end_ns - std::max(kernels[i].start_ns, free_ns));
    free_ns = kernels[i].end_ns;
  }
  return seconds;
}

// A clock that runs at 1 / (number of kernels that run): what it shows from a kernel's start to its
// end is the kernel's own.
std::vector<double> seconds_at_once(std::span<const OperationTimes> kernels) {
  struct Change {
    TimeNs at_ns;
    int by;
    std::size_t kernel;
  };
  std::vector<Change> changes;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    changes.push_back({kernels[i].start_ns, 1, i});
    changes.push_back({kernels[i].end_ns, -1, i});
  }
  // At one instant those that start come first, so that a kernel that takes no time starts before
  // it ends.
  std::ranges::stable_sort(changes, [](const Change& a, const Change& b) {
    return a.at_ns != b.at_ns ? a.at_ns < b.at_ns : a.by > b.by;
  });
  std::vector<double> seconds(kernels.size());
  double shown = 0;
  int running = 0;
  TimeNs last_ns = 0;
  for (const Change& change : changes) {
    if (running > 0) shown += seconds_of(change.at_ns - last_ns) / running;
    seconds[change.kernel] += change.by > 0 ? -shown : shown;
    running += change.by;
    last_ns = change.at_ns;
  }
  return seconds;
}

}  // namespace

void keep_those_of_steps(RecordedSteps& recorded) {
  std::erase_if(recorded.operations, [&](const OperationTimes& operation) {
    return step_of(recorded.steps, operation.end_ns) == recorded.steps.end();
  });
}

RecordedSteps middle_half(const RecordedSteps& recorded) {
  const auto dur_ns = [](const simulate::StepTimes& step) { return step.end_ns - step.start_ns; };
  RecordedSteps middle = recorded;
  std::ranges::stable_sort(middle.steps, {}, dur_ns);
  const std::size_t count = middle.steps.size();
  const std::size_t kept = std::max(std::min<std::size_t>(2, count), count / 2);
  const auto first = middle.steps.begin() + static_cast<std::ptrdiff_t>((count - kept) / 2);
  middle.steps = {first, first + static_cast<std::ptrdiff_t>(kept)};
  std::ranges::sort(middle.steps, {}, &simulate::StepTimes::start_ns);
  keep_those_of_steps(middle);
  return middle;
}

std::vector<simulate::ByPhase> phase_seconds(const RecordedSteps& recorded) {
  std::vector<train::StepOutcome> outcomes(recorded.steps.size());
  const auto for_each = [&](const auto& take) {
    for (const OperationTimes& operation : recorded.operations) {
      const auto step = step_of(recorded.steps, operation.end_ns);
      if (step == recorded.steps.end()) continue;
      take(operation, outcomes[static_cast<std::size_t>(step - recorded.steps.begin())]);
    }
  };
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    train::StepOutcome& outcome = outcomes[i];
    outcome.end_ns = recorded.steps[i].end_ns;
    outcome.start_ns = outcome.parameters_up_ns = outcome.forward_end_ns = outcome.backward_end_ns =
        recorded.steps[i].start_ns;
  }
  for_each([](const OperationTimes& operation, train::StepOutcome& outcome) {
    const StagePhase phase = stages::stage_info(operation.stage).phase;
    if (phase != StagePhase::forward && phase != StagePhase::backward) return;
    TimeNs& end_ns =
        phase == StagePhase::forward ? outcome.forward_end_ns : outcome.backward_end_ns;
    end_ns = std::max(end_ns, operation.end_ns);
  });
  for_each([](const OperationTimes& operation, train::StepOutcome& outcome) {
    if (stages::stage_info(operation.stage).phase != StagePhase::parameters) return;
    if (operation.end_ns > outcome.forward_end_ns) return;
    outcome.parameters_up_ns = std::max(outcome.parameters_up_ns, operation.end_ns);
  });
  std::vector<simulate::ByPhase> phases;
  for (const train::StepOutcome& outcome : outcomes) {
    phases.push_back(simulate::phase_seconds(outcome));
  }
  return phases;
}

std::map<TransferKey, TransferUse> transfer_uses(const RecordedSteps& recorded) {
  std::map<std::pair<DeviceId, DriveTraffic>, std::vector<Interval>> by_traffic;
  std::map<std::pair<DeviceId, Stage>, std::vector<const OperationTimes*>> by_stage;
  for (const OperationTimes& operation : recorded.operations) {
    if (!is_transfer(operation.stage) || operation.size_bytes == 0) continue;
    const DriveTraffic traffic = drive_traffic(operation);
    if (traffic == DriveTraffic::none) {
      by_stage[{kNoDevice, operation.stage}].push_back(&operation);
      continue;
    }
    by_traffic[{operation.device, traffic}].push_back({operation.start_ns, operation.end_ns});
    // State and gradients are read the same way, in an order that says nothing of the links.
    const bool is_read = traffic == DriveTraffic::read;
    const Stage stage = is_read ? Stage::state_read : operation.stage;
    by_stage[{operation.device, stage}].push_back(&operation);
  }
  for (auto& [key, intervals] : by_traffic) intervals = united(std::move(intervals));
  std::map<TransferKey, TransferUse> uses;
  for (const auto& [key, operations] : by_stage) {
    const auto& [device, stage] = key;
    const std::vector<Interval>& others =
        by_traffic[{device, opposite(drive_traffic(*operations.front()))}];
    TransferUse& one_way = uses[{device, stage, Traffic::one_way}];
    TransferUse& both_ways = uses[{device, stage, Traffic::both_ways}];
    std::vector<Interval> busy;
    for (const OperationTimes* operation : operations) {
      const Interval interval{operation->start_ns, operation->end_ns};
      busy.push_back(interval);
      const TimeNs dur_ns = std::max<TimeNs>(1, interval.end_ns - interval.start_ns);
      const double both =
          static_cast<double>(overlap_ns(interval, others)) / static_cast<double>(dur_ns);
      both_ways.size_bytes += both * static_cast<double>(operation->size_bytes);
      one_way.size_bytes += (1 - both) * static_cast<double>(operation->size_bytes);
    }
    for (const Interval& interval : united(std::move(busy))) {
      const TimeNs both_ns = overlap_ns(interval, others);
      both_ways.busy_seconds += seconds_of(both_ns);
      one_way.busy_seconds += seconds_of(interval.end_ns - interval.start_ns - both_ns);
    }
  }
  std::erase_if(uses, [](const auto& use) {
    return use.second.busy_seconds <= 0 || use.second.size_bytes <= 0;
  });
  return uses;
}

std::vector<double> own_seconds(std::span<const OperationTimes> kernels, KernelOrder order,
                                std::int32_t units) {
  if (order == KernelOrder::at_once) return seconds_at_once(kernels);
  return units == 1 ? seconds_in_turn(kernels) : seconds_on_units(kernels, units);
}

}  // namespace sluice::tune
