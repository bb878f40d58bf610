#include "profiler/collect/cost_watch.h"

#include <time.h>

#include <utility>

namespace sluice::collect {
namespace {

constexpr int kOverInARow = 3;

TimeNs thread_cpu_ns() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return TimeNs{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

void CostWatch::begin_pass() { begin_cpu_ns_ = thread_cpu_ns(); }
void CostWatch::end_pass() { cost_ns_ += thread_cpu_ns() - begin_cpu_ns_; }

std::optional<double> CostWatch::look(TimeNs now_ts, TimeNs dur_min) {
  const TimeNs dur = now_ts - looked_ts_;
  if (dur <= 0 || dur < dur_min) return std::nullopt;
  looked_ts_ = now_ts;
  return static_cast<double>(std::exchange(cost_ns_, 0)) / static_cast<double>(dur);
}

bool CostWatch::is_too_much(double share, double share_max) {
  over_count_ = share > share_max ? over_count_ + 1 : 0;
  return over_count_ >= kOverInARow;
}

}  // namespace sluice::collect
