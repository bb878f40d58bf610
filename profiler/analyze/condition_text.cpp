#include "profiler/analyze/condition_text.h"

#include <charconv>
#include <cmath>

namespace sluice::analyze {

std::optional<ConditionText> split_condition(const std::string& text, std::string_view signs) {
  const std::size_t sign = text.find_first_of(signs);
  if (sign == std::string::npos || sign == 0) return std::nullopt;
  ConditionText condition;
  condition.key = text.substr(0, sign);
  condition.sign = text[sign];
  condition.bound = text.substr(sign + 1);
  condition.is_percent = condition.bound.ends_with('%');
  if (condition.is_percent) condition.bound.pop_back();
  if (condition.bound.starts_with('+')) condition.bound.erase(0, 1);
  return condition;
}

std::optional<double> finite_number(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_whole = error == std::errc() && end == text.data() + text.size();
  return is_whole && std::isfinite(value) ? std::optional(value) : std::nullopt;
}

}  // namespace sluice::analyze
