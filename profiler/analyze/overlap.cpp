#include "profiler/analyze/overlap.h"

#include <algorithm>

#include "profiler/analyze/intervals.h"

namespace sluice::analyze {
namespace {

// The part of a span that lies in the step.
Interval inside(const StepData& step, const Span& span) {
  return {std::max(step.row.ts, span.ts), std::min(step.row.ts + step.row.dur, span.end_ts())};
}

}  // namespace

Overlap overlap_of(const StepData& step) {
  Intervals compute, transfer;
  for (const Span& span : step.spans) {
    const auto [begin, end] = inside(step, span);
    if (!span.track->links.empty()) {
      transfer.add(begin, end);
    } else if (!span.track->is_beside_schedule() && !span.track->is_waiting() &&
               span.stage_cause() != cause_name(Cause::commit)) {
      compute.add(begin, end);
    }
  }
  return {compute.sum_ns(), transfer.sum_ns(), Intervals::both_ns(compute, transfer)};
}

std::vector<DeviceUse> device_use(const StepData& step) {
  struct Times {
    Intervals read, write, update, any;
  };
  const auto& rows = step.info->devices;
  std::vector<DeviceUse> devices(rows.size());
  std::vector<Times> times(rows.size());
  for (std::size_t d = 0; d < rows.size(); ++d) {
    devices[d].device = static_cast<std::int32_t>(rows[d].id);
    devices[d].name = rows[d].name;
  }
  for (const Span& span : step.spans) {
    const auto row = std::ranges::find(rows, span.device_id, &rundb::DeviceRow::id);
    if (row == rows.end()) continue;  // Evidence::unknown_devices says so
    const auto d = static_cast<std::size_t>(row - rows.begin());
    const auto [begin, end] = inside(step, span);
    if (end <= begin) continue;
    times[d].any.add(begin, end);
    if (span.track->links.empty()) {
      times[d].update.add(begin, end);
      continue;
    }
    const bool reads = span.track->direction == rundb::Direction::read;
    (reads ? times[d].read : times[d].write).add(begin, end);
    const double part = static_cast<double>(end - begin) / static_cast<double>(span.dur);
    (reads ? devices[d].read_bytes : devices[d].write_bytes) +=
        static_cast<std::int64_t>(part * static_cast<double>(span.bytes + span.padding_bytes));
  }
  for (std::size_t d = 0; d < rows.size(); ++d) {
    devices[d].read_ns = times[d].read.sum_ns();
    devices[d].write_ns = times[d].write.sum_ns();
    devices[d].update_ns = times[d].update.sum_ns();
    devices[d].busy_ns = times[d].any.sum_ns();
  }
  return devices;
}

double imbalance_of(const std::vector<DeviceUse>& devices) {
  double sum = 0;
  double most = 0;
  for (const DeviceUse& device : devices) {
    sum += static_cast<double>(device.busy_ns);
    most = std::max(most, static_cast<double>(device.busy_ns));
  }
  return sum <= 0 ? 1 : most * static_cast<double>(devices.size()) / sum;
}

}  // namespace sluice::analyze
