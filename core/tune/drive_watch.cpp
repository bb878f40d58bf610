#include "core/tune/drive_watch.h"

#include <utility>

namespace sluice::tune {
namespace {

bool is_of_a_drive(const runtime::OperationState& state) {
  return state.operation.label.place_bytes >= 0 && state.operation.label.device != kNoDevice;
}

}  // namespace

void DriveWatch::on_submit(const runtime::OperationState& state) {
  if (!is_of_a_drive(state)) return;
  Drive& drive = drives_[state.operation.label.device];
  if (drive.under_way++ == 0) drive.busy_since_ns = state.submit_ns;
}

void DriveWatch::on_finish(const runtime::OperationState& state) {
  if (!is_of_a_drive(state)) return;
  Drive& drive = drives_[state.operation.label.device];
  use_.moved_bytes += state.operation.label.size_bytes;
  if (--drive.under_way == 0) use_.busy_ns += state.end_ns - drive.busy_since_ns;
}

DriveWatch::Use DriveWatch::take(TimeNs now_ns) {
  for (const DeviceId device : ids_of(drives_)) {
    Drive& drive = drives_[device];
    if (drive.under_way == 0) continue;
    use_.busy_ns += now_ns - drive.busy_since_ns;
    drive.busy_since_ns = now_ns;
  }
  return std::exchange(use_, {});
}

std::optional<double> DriftRule::on_window(double bytes_per_s) {
  if (!began_at_) {
    began_at_ = bytes_per_s;
    return std::nullopt;
  }
  const double factor = bytes_per_s / *began_at_;
  const bool is_apart = factor > kDrift || factor < 1 / kDrift;
  if (!std::exchange(was_apart_, is_apart) || !is_apart) return std::nullopt;
  return factor;
}

}  // namespace sluice::tune
