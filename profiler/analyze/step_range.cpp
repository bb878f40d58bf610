#include "profiler/analyze/step_range.h"

#include <charconv>
#include <optional>
#include <string_view>

namespace sluice::analyze {
namespace {

std::optional<std::int64_t> step_number(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 1) return std::nullopt;
  return number;
}

}  // namespace

std::string name_of(const StepRange& steps) {
  return steps.first == steps.last ? fmt::format("step {}", steps.first + 1)
                                   : fmt::format("steps {} to {}", steps.first + 1, steps.last + 1);
}

Result<StepRange> parse_step_range(const std::string& option, const std::string& text) {
  const std::string_view words = text;
  const std::size_t dots = words.find("..");
  const auto first = step_number(words.substr(0, dots));
  const auto last = dots == std::string_view::npos ? first : step_number(words.substr(dots + 2));
  if (first && last && *last >= *first) return StepRange{*first - 1, *last - 1};
  return make_error(ErrorCode::config,
                    "{} {}: is no range of steps; write A..B, the first step is 1", option, text);
}

}  // namespace sluice::analyze
