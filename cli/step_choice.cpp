#include "cli/step_choice.h"

#include <charconv>
#include <optional>
#include <string_view>

namespace sluice::cli {
namespace {

std::optional<std::int64_t> step_number(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 1) return std::nullopt;
  return number;
}

}  // namespace

Result<report::RunPart> chosen_part(rundb::Reader& reader, const StepChoice& choice) {
  if (choice.last > 0) return report::part_of_last_steps(reader, choice.last);
  if (choice.steps.empty()) return report::RunPart{};
  const std::string_view text = choice.steps;
  const std::size_t dots = text.find("..");
  const auto first = step_number(text.substr(0, dots));
  const auto last = dots == std::string_view::npos ? first : step_number(text.substr(dots + 2));
  if (!first || !last || *last < *first) {
    return make_error(ErrorCode::config,
                      "--steps {}: is no range of steps; write A..B, the first step is 1",
                      choice.steps);
  }
  return report::part_of_steps(reader, *first, *last);
}

}  // namespace sluice::cli
