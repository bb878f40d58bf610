#include "base/units.h"

#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "base/saturating.h"

namespace sluice {
namespace {

struct NumberAndUnit {
  double number;
  std::string_view unit;
};

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

Result<NumberAndUnit> split(std::string_view text, std::string_view example) {
  const std::string copy(trim(text));
  char* end = nullptr;
  const double number = std::strtod(copy.c_str(), &end);
  const auto used = static_cast<std::size_t>(end - copy.c_str());
  if (used == 0 || !std::isfinite(number)) {
    return make_error(ErrorCode::config, "'{}' is not a number with a unit; write it like \"{}\"",
                      text, example);
  }
  const std::string_view trimmed = trim(text);
  return NumberAndUnit{number, trim(trimmed.substr(used))};
}

// Factor of a byte unit such as "GiB"; 0 if there is no such unit.
double byte_factor(std::string_view unit) {
  if (unit.empty() || unit == "B") return 1;
  static constexpr std::string_view kPrefixes = "kMGTP";
  const char first = unit.front() == 'K' ? 'k' : unit.front();
  const std::size_t power = kPrefixes.find(first);
  if (power == std::string_view::npos) return 0;
  const std::string_view rest = unit.substr(1);
  if (rest == "B") return std::pow(1000.0, static_cast<double>(power + 1));
  if (rest == "iB") return std::pow(1024.0, static_cast<double>(power + 1));
  return 0;
}

struct Scaled {
  double value;
  const char* prefix;
};

// From `limit` on the next prefix is taken.
Scaled scale_to_prefix(double value, double limit) {
  static constexpr std::array<const char*, 6> kPrefixes = {"", "k", "M", "G", "T", "P"};
  std::size_t power = 0;
  while (std::abs(value) >= limit && power + 1 < kPrefixes.size()) {
    value /= 1000;
    ++power;
  }
  return {value, kPrefixes[power]};
}

// Three digits; 999.5 would round up to a fourth.
std::string with_prefix(double value, std::string_view unit) {
  const auto [scaled, prefix] = scale_to_prefix(value, 999.5);
  const bool is_whole = *prefix == 0 && scaled == std::floor(scaled);
  const int digits = is_whole ? 0 : std::abs(scaled) < 9.995 ? 2 : std::abs(scaled) < 99.95 ? 1 : 0;
  return fmt::format("{:.{}f} {}{}", scaled, digits, prefix, unit);
}

}  // namespace

std::string format_bytes(std::int64_t bytes) {
  return with_prefix(static_cast<double>(bytes), "B");
}

std::string format_count(double count) {
  std::string text = with_prefix(count, "");
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

std::string format_rate(double per_second, std::string_view unit) {
  return with_prefix(per_second, unit);
}

std::string rate_text(double per_second, std::string_view unit, int digits) {
  const auto [scaled, prefix] = scale_to_prefix(per_second, 1000);
  return fmt::format("{:.{}g} {}{}", scaled, digits, prefix, unit);
}

std::string format_duration(TimeNs dur_ns) {
  const double seconds = static_cast<double>(dur_ns) / 1e9;
  if (dur_ns < 0) {
    constexpr TimeNs kMost = std::numeric_limits<TimeNs>::max();
    return "-" + format_duration(dur_ns < -kMost ? kMost : -dur_ns);
  }
  if (seconds < 1e-6) return fmt::format("{} ns", dur_ns);
  // The limits are where three digits would round up to the next unit.
  if (seconds < 999.5e-6) return fmt::format("{:.3g} us", seconds * 1e6);
  if (seconds < 999.5e-3) return fmt::format("{:.3g} ms", seconds * 1e3);
  if (seconds < 59.95) return fmt::format("{:.3g} s", seconds);
  const auto whole = static_cast<std::int64_t>(std::llround(seconds));
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
}

std::string format_seconds(double seconds) {
  return format_duration(saturating_whole(seconds * 1e9));
}

Result<std::int64_t> parse_bytes(std::string_view text) {
  ASSIGN_OR_RETURN(const NumberAndUnit parts, split(text, "64 MiB"));
  const double factor = byte_factor(parts.unit);
  if (factor == 0) {
    return make_error(ErrorCode::config,
                      "'{}' has no unit of bytes; write B, kB, MB, GB, TB or KiB, MiB, GiB, TiB",
                      text);
  }
  const double bytes = parts.number * factor;
  if (bytes < 0 || bytes > 9e18)
    return make_error(ErrorCode::config, "'{}' is out of range for a number of bytes", text);
  return static_cast<std::int64_t>(std::llround(bytes));
}

Result<double> parse_byte_rate(std::string_view text) {
  ASSIGN_OR_RETURN(const NumberAndUnit parts, split(text, "3.0 GB/s"));
  if (!parts.unit.ends_with("/s") ||
      byte_factor(parts.unit.substr(0, parts.unit.size() - 2)) == 0) {
    return make_error(ErrorCode::config,
                      "'{}' is not a bandwidth; write it like \"3.0 GB/s\" or \"100 MiB/s\"", text);
  }
  return parts.number * byte_factor(parts.unit.substr(0, parts.unit.size() - 2));
}

Result<double> parse_rate(std::string_view text, std::string_view unit) {
  ASSIGN_OR_RETURN(const NumberAndUnit parts, split(text, fmt::format("1.5 G{}", unit)));
  static constexpr std::string_view kPrefixes = "kMGTP";
  if (parts.unit == unit) return parts.number;
  if (!parts.unit.empty() && parts.unit.substr(1) == unit) {
    const std::size_t power = kPrefixes.find(parts.unit.front());
    if (power != std::string_view::npos)
      return parts.number * std::pow(1000.0, static_cast<double>(power + 1));
  }
  return make_error(ErrorCode::config, "'{}' is not in {}; write it like \"1.5 G{}\"", text, unit,
                    unit);
}

Result<TimeNs> parse_duration(std::string_view text) {
  ASSIGN_OR_RETURN(const NumberAndUnit parts, split(text, "80 us"));
  const double factor = parts.unit == "ns"   ? 1
                        : parts.unit == "us" ? 1e3
                        : parts.unit == "ms" ? 1e6
                        : parts.unit == "s"  ? 1e9
                                             : 0;
  if (factor == 0)
    return make_error(ErrorCode::config,
                      "'{}' is not a time; write ns, us, ms or s, like \"80 us\"", text);
  const double dur_ns = parts.number * factor;
  if (dur_ns < 0 || dur_ns > 9e18)
    return make_error(ErrorCode::config, "'{}' is out of range for a time", text);
  return static_cast<TimeNs>(std::llround(dur_ns));
}

}  // namespace sluice
