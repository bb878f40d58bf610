#include "cli/fail_condition.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "base/nearest.h"
#include "profiler/analyze/condition_text.h"

namespace sluice::cli {
namespace {

using analyze::ComparedFigure;
using analyze::Comparison;

}  // namespace

Result<FailCondition> parse_fail_condition(const std::string& text, const Comparison& comparison) {
  const auto split = analyze::split_condition(text, "<>");
  const auto value = split ? analyze::finite_number(split->bound) : std::nullopt;
  if (!value) {
    return make_error(ErrorCode::config,
                      "--fail-if {}: write a figure, > or <, and a change, like 'step_time>+3%' or "
                      "'loss>0.05'",
                      text);
  }
  const FailCondition condition{.text = text,
                                .key = split->key,
                                .is_above = split->sign == '>',
                                .is_percent = split->is_percent,
                                .bound = split->is_percent ? *value / 100 : *value};
  std::vector<std::string> keys;
  for (const ComparedFigure& figure : comparison.figures) keys.push_back(figure.key);
  if (std::ranges::count(keys, condition.key) > 0) return condition;
  return make_error(ErrorCode::config,
                    "--fail-if {}: '{}' is no figure of both runs{}; there are {}", text,
                    condition.key, did_you_mean(condition.key, keys), fmt::join(keys, ", "));
}

bool is_tripped(const FailCondition& condition, const Comparison& comparison) {
  const auto figure = std::ranges::find(comparison.figures, condition.key, &ComparedFigure::key);
  if (figure == comparison.figures.end() || !figure->is_more_than_noise()) return false;
  const double change = condition.is_percent ? figure->change() : figure->b - figure->a;
  return condition.is_above ? change > condition.bound : change < condition.bound;
}

}  // namespace sluice::cli
