#include "cli/fail_condition.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <vector>

#include "base/nearest.h"

namespace sluice::cli {
namespace {

using analyze::ComparedFigure;
using analyze::Comparison;

std::optional<double> number(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value)
                                                                  : std::nullopt;
}

}  // namespace

Result<FailCondition> parse_fail_condition(const std::string& text, const Comparison& comparison) {
  FailCondition condition;
  condition.text = text;
  const std::size_t sign = text.find_first_of("<>");
  const auto bad = [&] {
    return make_error(ErrorCode::config,
                      "--fail-if {}: write a figure, > or <, and a change, like 'step_time>+3%' or "
                      "'loss>0.05'",
                      text);
  };
  if (sign == std::string::npos || sign == 0) return bad();
  condition.key = text.substr(0, sign);
  condition.is_above = text[sign] == '>';
  std::string bound = text.substr(sign + 1);
  condition.is_percent = bound.ends_with('%');
  if (condition.is_percent) bound.pop_back();
  if (bound.starts_with('+')) bound.erase(0, 1);
  const auto value = number(bound);
  if (!value || !std::isfinite(*value)) return bad();
  condition.bound = condition.is_percent ? *value / 100 : *value;
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
