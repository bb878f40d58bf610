#include "cli/sweep.h"

#include <algorithm>
#include <charconv>

#include "base/units.h"

namespace sluice::cli {
namespace {

constexpr std::uint64_t kMostValues = 10'000;

Error values_error(const std::string& values, const std::string& what) {
  return make_error(ErrorCode::config, "{}: {}; write 1..10 or a,b,c", values, what);
}

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::size_t first = 0;
  for (std::size_t end = 0; end != std::string::npos; first = end + 1) {
    end = text.find(separator, first);
    parts.push_back(text.substr(first, end - first));
  }
  return parts;
}

}  // namespace

Result<std::vector<std::string>> parse_sweep_values(const std::string& values) {
  const std::size_t dots = values.find("..");
  if (dots == std::string::npos) {
    std::vector<std::string> listed = split(values, ',');
    if (std::ranges::count(listed, "") > 0) return values_error(values, "a value is empty");
    return listed;
  }
  const auto first = whole_number(std::string_view(values).substr(0, dots));
  const auto last = whole_number(std::string_view(values).substr(dots + 2));
  if (!first || !last) return values_error(values, "the ends of a range are whole numbers");
  if (*last < *first) return values_error(values, "the range runs backwards");
  // Unsigned: the ends may be as far apart as numbers go.
  const std::uint64_t distance =
      static_cast<std::uint64_t>(*last) - static_cast<std::uint64_t>(*first);
  if (distance >= kMostValues) return values_error(values, "the range is too long");
  std::vector<std::string> counted;
  for (std::int64_t value = *first; value <= *last; ++value) {
    counted.push_back(std::to_string(value));
  }
  return counted;
}

Result<Sweep> parse_sweep(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    return make_error(ErrorCode::config,
                      "--sweep {}: there is no key; write key=1..10 or key=a,b,c", text);
  }
  Sweep sweep;
  sweep.key = text.substr(0, equals);
  auto values = parse_sweep_values(text.substr(equals + 1));
  if (!values.ok()) return values.error().with_context("--sweep " + sweep.key);
  sweep.values = std::move(*values);
  return sweep;
}

std::string sweep_table(const Sweep& sweep, const std::string& of_what,
                        const std::vector<SweepRow>& rows) {
  std::string text =
      fmt::format("SIMULATED: {}; seconds a step\n{:>16} {:>10} {:>10} {:>10} {:>10} {:>9}\n",
                  of_what, sweep.key, "forward", "backward", "update", "total", "speed-up");
  for (const SweepRow& row : rows) {
    text += fmt::format("{:>16} {:>10.3f} {:>10.3f} {:>10.3f} {:>10.3f} {:>9.2f}\n", row.value,
                        row.step.seconds[0], row.step.seconds[1], row.step.seconds[2],
                        row.step.total_seconds,
                        rows.front().step.total_seconds / row.step.total_seconds);
  }
  return text;
}

std::string sweep_csv(const Sweep& sweep, const std::vector<SweepRow>& rows) {
  std::string text = sweep.key + ",forward_s,backward_s,update_s,total_s\n";
  for (const SweepRow& row : rows) {
    text += fmt::format("{},{},{},{},{}\n", row.value, row.step.seconds[0], row.step.seconds[1],
                        row.step.seconds[2], row.step.total_seconds);
  }
  return text;
}

}  // namespace sluice::cli
