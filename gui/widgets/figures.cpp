#include "gui/widgets/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <string_view>

namespace sluice::gui {
namespace {

constexpr std::string_view kThin = "\u2009";

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_unit(std::string_view word) {
  constexpr std::array<std::string_view, 16> kUnits = {"%",   "ns",   "us",   "ms",  "s",  "min",
                                                       "h",   "B",    "kB",   "MB",  "GB", "TB",
                                                       "B/s", "kB/s", "MB/s", "GB/s"};
  return std::ranges::find(kUnits, word) != kUnits.end();
}

std::string_view word_at(std::string_view text, std::size_t begin) {
  std::size_t end = begin;
  while (end < text.size() && (std::isalpha(static_cast<unsigned char>(text[end])) ||
                               text[end] == '%' || text[end] == '/')) {
    ++end;
  }
  return text.substr(begin, end - begin);
}

std::string three_digits(double value) {
  const double size = std::abs(value);
  const int digits = size >= 100 ? 0 : size >= 10 ? 1 : 2;
  return fmt::format("{:.{}f}", value, digits);
}

std::string scaled(double value, std::string_view unit) {
  constexpr std::array<std::string_view, 6> kPrefixes = {"", "k", "M", "G", "T", "P"};
  std::size_t power = 0;
  // 999.6 would be written as 1000.
  while (std::abs(value) >= 999.5 && power + 1 < kPrefixes.size()) {
    value /= 1000;
    power += 1;
  }
  const std::string number = power == 0 ? fmt::format("{:.0f}", value) : three_digits(value);
  if (kPrefixes[power].empty() && unit.empty()) return number;
  return fmt::format("{}{}{}{}", number, kThin, kPrefixes[power], unit);
}

}  // namespace

std::string grouped_text(std::int64_t value) {
  const std::string digits = std::to_string(value < 0 ? -value : value);
  std::string text = value < 0 ? "\u2212" : "";
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += kThin;
    text += digits[i];
  }
  return text;
}

std::string time_text(TimeNs dur_ns) {
  if (dur_ns < 0) return "\u2212" + time_text(-dur_ns);
  const auto ns = static_cast<double>(dur_ns);
  if (ns >= 59.95e9) {
    const auto seconds = static_cast<std::int64_t>(std::llround(ns / 1e9));
    if (seconds >= 3600)
      return fmt::format("{}{}h {:02}{}min", seconds / 3600, kThin, seconds / 60 % 60, kThin);
    return fmt::format("{}{}min {:02}{}s", seconds / 60, kThin, seconds % 60, kThin);
  }
  if (ns >= 0.9995e9) return three_digits(ns / 1e9) + std::string(kThin) + "s";
  if (ns >= 0.9995e6) return three_digits(ns / 1e6) + std::string(kThin) + "ms";
  if (ns >= 0.9995e3) return three_digits(ns / 1e3) + std::string(kThin) + "us";
  return fmt::format("{}{}ns", dur_ns, kThin);
}

std::string bytes_text(double bytes) { return scaled(bytes, "B"); }
std::string rate_text(double bytes_per_s) { return scaled(bytes_per_s, "B/s"); }
std::string count_text(double count) { return scaled(count, ""); }

std::string percent_text(double share, int digits) {
  return fmt::format("{:.{}f}{}%", share * 100, digits, kThin);
}

std::string step_text(std::int64_t step_id) { return grouped_text(step_id + 1); }

std::string figure_text(double value, int digits) {
  return std::isfinite(value) ? fmt::format("{:.{}f}", value, digits) : "-";
}

std::string with_units_kept(const std::string& text) {
  std::string kept;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_behind_figure = text[i] == ' ' && i > 0 && is_digit(text[i - 1]);
    if (is_behind_figure && is_unit(word_at(text, i + 1))) {
      kept += kThin;
    } else {
      kept += text[i];
    }
  }
  return kept;
}

double tick_distance(double least) {
  if (!(least > 0)) return 1;
  const double power = std::pow(10.0, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= least * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

}  // namespace sluice::gui
