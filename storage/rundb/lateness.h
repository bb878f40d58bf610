#pragma once
// The meaning of table `lateness` for a run's figures: by the emulated clock an operation takes its
// modelled time, or longer where this computer's work for it does. Where many did, times, and all
// that is fitted to them, are partly those of this computer and not of the modelled machine.
//
// Thread contract: plain data and free functions.

#include <cstdint>
#include <span>
#include <string>

#include "storage/rundb/rows.h"

namespace sluice::rundb {

// From these shares on figures are called late: of operations, and of the time that the model gives
// them. `sluice train` has the first one, too.
inline constexpr double kLateOperations = 0.05;
inline constexpr double kLateTime = 0.02;

struct LatenessSum {
  std::int64_t operations = 0;
  std::int64_t late = 0;
  TimeNs modelled_ns = 0;
  TimeNs late_ns = 0;

  void add(const LatenessRow& row);
  double late_share() const;  // of the operations
  double time_share() const;  // by how much longer they took
  bool is_late() const { return late_share() > kLateOperations || time_share() > kLateTime; }
  // "70.0 % of 256 060 modelled operations ended late, all together by 45 % of their time"
  std::string words() const;
};
LatenessSum sum_of(std::span<const LatenessRow> rows);

// The time scale with which the work of these operations should fit into their modelled time, with
// a tenth to spare: that of the stage which exceeded its time most, among those with a tenth of all
// lateness or more. `time_scale` is what they ran with, and comes back where nothing was late.
double needed_time_scale(std::span<const LatenessRow> rows, double time_scale);

}  // namespace sluice::rundb
