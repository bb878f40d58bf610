#include "gui/widgets/setting_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace sluice::gui {

std::optional<double> parse_number(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string bytes_setting(std::int64_t bytes) {
  constexpr std::array<const char*, 5> kUnits = {"", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  while (bytes != 0 && bytes % 1024 == 0 && unit + 1 < kUnits.size()) {
    bytes /= 1024;
    unit += 1;
  }
  return std::to_string(bytes) + kUnits[unit];
}

std::string shares_setting(const std::vector<double>& shares) {
  const auto is_first = [&shares](double share) { return share == shares.front(); };
  if (std::ranges::all_of(shares, is_first)) return "even";
  std::string text;
  for (const double share : shares) text += fmt::format("{}{:.6g}", text.empty() ? "" : ",", share);
  return text;
}

std::optional<std::vector<double>> parse_shares(const std::string& text, std::size_t count) {
  if (count == 0) return std::nullopt;
  if (text == "even") return std::vector<double>(count, 1.0);
  std::vector<double> shares;
  std::size_t at = 0;
  while (at <= text.size()) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::optional<double> share = parse_number(text.substr(at, end - at));
    if (!share || !(*share >= 0) || !std::isfinite(*share)) return std::nullopt;
    shares.push_back(*share);
    at = end + 1;
  }
  const bool is_zero = std::ranges::all_of(shares, [](double share) { return share == 0; });
  return shares.size() == count && !is_zero ? std::optional(shares) : std::nullopt;
}

}  // namespace sluice::gui
