#pragma once
// How fast the drives of a live run are, and whether they still are as fast as they were: what
// makes a run plan again (replanner.h).
//
// A drive's rate is its bytes over the time in which it had a transfer under way, so a drive that
// idles is not a slow one. It depends on how the run asks, so rates are compared under the same
// settings only.
//
// Thread contract: the schedule's thread.

#include <optional>

#include "base/id_vector.h"
#include "core/runtime/operation.h"

namespace sluice::tune {

class DriveWatch final : public runtime::OperationSink {
 public:
  explicit DriveWatch(std::int32_t device_count) : drives_(device_count) {}

  void on_submit(const runtime::OperationState& state) override;
  void on_finish(const runtime::OperationState& state) override;
  void on_found(const runtime::OperationState& state) override { on_submit(state); }

  struct Use {
    std::int64_t moved_bytes = 0;  // by all drives
    TimeNs busy_ns = 0;            // of all drives
    double bytes_per_s() const {
      return static_cast<double>(moved_bytes) * 1e9 / static_cast<double>(busy_ns);
    }
  };
  // Since the last call.
  Use take(TimeNs now_ns);

 private:
  struct Drive {
    std::int32_t under_way = 0;
    TimeNs busy_since_ns = 0;
  };
  IdVector<DeviceId, Drive> drives_;
  Use use_;
};

// Whether rates, one a window of steps, have left where they began.
class DriftRule {
 public:
  static constexpr double kDrift = 1.25;  // a factor, either way

  // The factor by which rates have changed since restart(), once they are so in two windows in a
  // row: one may be a hiccup.
  std::optional<double> on_window(double bytes_per_s);
  // The next window says where rates begin.
  void restart() { *this = {}; }

 private:
  std::optional<double> began_at_;
  bool was_apart_ = false;
};

}  // namespace sluice::tune
