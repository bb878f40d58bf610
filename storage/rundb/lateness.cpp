#include "storage/rundb/lateness.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/figure_text.h"

namespace sluice::rundb {
namespace {

constexpr double kStageThatCounts = 0.1;  // of all lateness
constexpr double kSpare = 1.1;

double share_of(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

// To a whole number, or a tenth where that would be much; 44.0000001 is 44.
double rounded_up(double scale) {
  constexpr double kNothing = 1e-6;
  return scale >= 10 ? std::ceil(scale - kNothing) : std::ceil(scale * 10 - kNothing) / 10;
}

}  // namespace

void LatenessSum::add(const LatenessRow& row) {
  operations += row.operations;
  late += row.late;
  modelled_ns += row.modelled_ns;
  late_ns += row.late_ns;
}

double LatenessSum::late_share() const { return share_of(late, operations); }
double LatenessSum::time_share() const { return share_of(late_ns, modelled_ns); }

std::string LatenessSum::words() const {
  // Percents of many times as long say nothing.
  constexpr double kTimesFrom = 10;
  const std::string by = time_share() < kTimesFrom
                             ? fmt::format("by {:.0f} % of their time", time_share() * 100)
                             : fmt::format("by {:.3g} times their time", time_share());
  return fmt::format("{:.1f} % of {} modelled operations ended late, all together {}",
                     late_share() * 100, format_whole(operations), by);
}

LatenessSum sum_of(std::span<const LatenessRow> rows) {
  LatenessSum sum;
  for (const LatenessRow& row : rows) sum.add(row);
  return sum;
}

double needed_time_scale(std::span<const LatenessRow> rows, double time_scale) {
  std::map<std::string, LatenessSum> stages;
  for (const LatenessRow& row : rows) stages[row.stage].add(row);
  const TimeNs all_late_ns = sum_of(rows).late_ns;
  double exceeded = 0;
  for (const auto& [stage, sum] : stages) {
    if (share_of(sum.late_ns, all_late_ns) < kStageThatCounts) continue;
    exceeded = std::max(exceeded, sum.time_share());
  }
  return exceeded == 0 ? time_scale : rounded_up(time_scale * (1 + exceeded) * kSpare);
}

}  // namespace sluice::rundb
