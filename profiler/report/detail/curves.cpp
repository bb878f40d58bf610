#include "profiler/report/detail/curves.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <sstream>

#include "storage/rundb/query.h"

namespace sluice::report::detail {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kPhaseBars = 400;
constexpr std::size_t kSkippedMarksMax = 2000;
constexpr std::size_t kValidationsMax = 2000;
// The view reads every span: a second for some millions.
constexpr std::int64_t kPhaseSpansMax = 50'000'000;

// A file has no NaN; null is what it draws as a gap.
Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

// Digits that nobody can see on a curve are left out.
Json coarse_number(double value) {
  if (!std::isfinite(value)) return nullptr;
  double coarse = 0;
  const std::string text = fmt::format("{:.6g}", value);
  std::from_chars(text.data(), text.data() + text.size(), coarse);
  return coarse;
}

Json validations_json(const std::vector<rundb::ValidationRow>& rows) {
  const std::size_t by = rows.size() / kValidationsMax + 1;
  Json points = Json::array();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i % by != 0 && i + 1 != rows.size()) continue;
    points.push_back({rows[i].step_id, number(rows[i].loss)});
    if (std::isfinite(rows[i].accuracy)) points.back().push_back(number(rows[i].accuracy));
  }
  return points;
}

std::int64_t integer_or_zero(const rundb::Cell& cell) {
  const auto* value = std::get_if<std::int64_t>(&cell);
  return value == nullptr ? 0 : *value;
}

}  // namespace

std::vector<std::size_t> drawn_steps(const std::vector<rundb::StepRow>& steps,
                                     std::size_t bucket_count) {
  std::vector<std::size_t> drawn;
  if (steps.size() <= bucket_count * 4) {
    for (std::size_t i = 0; i < steps.size(); ++i) drawn.push_back(i);
    return drawn;
  }
  for (std::size_t bucket = 0; bucket < bucket_count; ++bucket) {
    const std::size_t begin = steps.size() * bucket / bucket_count;
    const std::size_t end = steps.size() * (bucket + 1) / bucket_count;
    std::array<std::size_t, 4> kept = {begin, begin, begin, begin};
    const auto is_better = [&](std::size_t i, std::size_t than, auto&& less) {
      if (std::isnan(steps[i].loss)) return false;
      return std::isnan(steps[than].loss) || less(steps[i].loss, steps[than].loss);
    };
    for (std::size_t i = begin; i < end; ++i) {
      if (steps[i].dur < steps[kept[0]].dur) kept[0] = i;
      if (steps[i].dur > steps[kept[1]].dur) kept[1] = i;
      if (is_better(i, kept[2], std::less<>())) kept[2] = i;
      if (is_better(i, kept[3], std::greater<>())) kept[3] = i;
    }
    std::ranges::sort(kept);
    const auto [first, last] = std::ranges::unique(kept);
    drawn.insert(drawn.end(), kept.begin(), first);
    (void)last;
  }
  return drawn;
}

Json curves_json(const std::vector<rundb::StepRow>& steps,
                 const std::vector<rundb::ValidationRow>& validations, std::size_t bucket_count) {
  Json points = Json::array();
  Json rates = Json::array();  // beside the points
  for (const std::size_t i : drawn_steps(steps, bucket_count)) {
    points.push_back({steps[i].id, steps[i].dur, number(steps[i].loss)});
    rates.push_back(coarse_number(steps[i].lr));
  }
  Json skipped = Json::array();
  std::size_t skipped_count = 0;
  for (const rundb::StepRow& step : steps) {
    if (!step.skipped) continue;
    skipped_count += 1;
    if (skipped_count <= kSkippedMarksMax) skipped.push_back({step.id, step.dur});
  }
  return {{"points", std::move(points)},
          {"rates", std::move(rates)},
          {"validations", validations_json(validations)},
          {"skipped", std::move(skipped)},
          {"skipped_count", skipped_count}};
}

Result<Json> phases_json(rundb::Reader& reader, const analyze::RunInfo& info,
                         const std::vector<rundb::StepRow>& steps, const std::string& why_unknown) {
  Json bars = Json::array();
  const auto none = [](std::string why) {
    return Json{{"bars", Json::array()}, {"why_empty", std::move(why)}};
  };
  if (!why_unknown.empty()) return none(why_unknown);
  std::int64_t span_count = 0;
  RETURN_IF_ERROR(
      rundb::Query(reader).each_row("SELECT ifnull(sum(last_id - first_id + 1), 0) FROM span_run",
                                    [&span_count](std::span<const rundb::Cell> row) {
                                      span_count = integer_or_zero(row[0]);
                                      return ok_status();
                                    }));
  if (span_count > kPhaseSpansMax) {
    return none(fmt::format(
        "The run recorded {} operations, more than are read for a page; `sluice show` and the view "
        "step_phase have the phases.",
        span_count));
  }
  struct Bar {
    std::int64_t first = 0;
    std::int64_t last = 0;
    std::int64_t count = 0;
    std::array<double, 3> sum{};
  };
  const std::size_t bar_count = std::min(kPhaseBars, steps.size());
  std::vector<Bar> of_bar(bar_count);
  std::map<std::int64_t, std::size_t> index_of_step;
  for (std::size_t i = 0; i < steps.size(); ++i) index_of_step[steps[i].id] = i;
  RETURN_IF_ERROR(rundb::Query(reader).each_row(
      "SELECT step_id, forward_dur, backward_dur, update_dur FROM step_phase ORDER BY step_id",
      [&](std::span<const rundb::Cell> row) {
        const auto step = index_of_step.find(integer_or_zero(row[0]));
        // A step whose operations were recorded only in part has no phases.
        if (step == index_of_step.end() || std::holds_alternative<std::monostate>(row[1]) ||
            std::holds_alternative<std::monostate>(row[2]) ||
            std::holds_alternative<std::monostate>(row[3])) {
          return ok_status();
        }
        Bar& bar = of_bar[step->second * bar_count / steps.size()];
        if (bar.count == 0) bar.first = step->first;
        bar.last = step->first;
        bar.count += 1;
        for (std::size_t p = 0; p < bar.sum.size(); ++p)
          bar.sum[p] += static_cast<double>(std::max<std::int64_t>(0, integer_or_zero(row[p + 1])));
        return ok_status();
      }));
  for (const Bar& bar : of_bar) {
    if (bar.count == 0) continue;
    Json means = Json::array({bar.first, bar.last});
    for (const double sum : bar.sum)
      means.push_back(static_cast<std::int64_t>(sum / static_cast<double>(bar.count)));
    bars.push_back(std::move(means));
  }
  if (bars.empty()) {
    if (info.is_of_session()) return none(analyze::kNoPhasesOfSession);
    return none(
        "No step has all of its phases in the record: operations were not recorded, or only in "
        "part.");
  }
  return Json{{"bars", std::move(bars)}, {"why_empty", ""}};
}

}  // namespace sluice::report::detail
