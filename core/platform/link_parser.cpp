#include "core/platform/link_parser.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace sluice::platform {
namespace {

// Above this a rate is a slip of the prefix, and sums of rates would lose digits.
constexpr double kRateMax = 1e18;

// Above this a time is a slip of the unit, and sums of times would leave 64 bits.
constexpr TimeNs kDurationMaxNs = 86'400'000'000'000;

Result<double> parse_link_rate(std::string_view written) {
  ASSIGN_OR_RETURN(const double bytes_per_s, parse_byte_rate(written));
  return check_rate(bytes_per_s, written);
}

Result<Duplex> parse_duplex(const TomlTable& table) {
  const auto word = table.text("duplex");
  if (!word.ok()) return word.error();
  if (*word == "full") return Duplex::full;
  if (*word == "half") return Duplex::half;
  return table.error(
      "duplex",
      fmt::format("'{}' is neither \"full\" (read and write each have their bandwidth) nor "
                  "\"half\" (they share time)",
                  *word));
}

Result<Sharing> parse_sharing(const TomlTable& table) {
  if (!table.has("sharing")) return Sharing::fair;
  ASSIGN_OR_RETURN(const std::string word, table.text("sharing"));
  if (word == "fair") return Sharing::fair;
  if (word == "in_order") return Sharing::in_order;
  return table.error("sharing", fmt::format("'{}' is neither \"fair\" (transfers flow at once) nor "
                                            "\"in_order\" (one after the other in each direction)",
                                            word));
}

Result<ChunkPoint> parse_chunk_point(const std::vector<std::string>& row) {
  if (row.size() != 3) {
    return make_error(ErrorCode::config,
                      "has {} texts; write three: request size, read, write, like "
                      "[\"4 KiB\", \"60 MB/s\", \"250 MB/s\"]",
                      row.size());
  }
  ASSIGN_OR_RETURN(const std::int64_t chunk_bytes, parse_bytes(row[0]));
  if (chunk_bytes <= 0) return make_error(ErrorCode::config, "'{}' is not above zero", row[0]);
  ASSIGN_OR_RETURN(const double read, parse_link_rate(row[1]));
  ASSIGN_OR_RETURN(const double write, parse_link_rate(row[2]));
  return ChunkPoint{chunk_bytes, read, write};
}

Result<std::vector<ChunkPoint>> parse_chunk_curve(const TomlTable& table) {
  static constexpr std::string_view kKey = "chunk_curve";
  std::vector<ChunkPoint> curve;
  if (!table.has(kKey)) return curve;
  ASSIGN_OR_RETURN(const auto rows, table.rows_of_texts(kKey));
  if (rows.empty()) return table.error(kKey, "has no points; leave the key out");
  for (const auto& row : rows) {
    const auto point = parse_chunk_point(row);
    const std::size_t number = curve.size() + 1;
    if (!point.ok())
      return table.error(kKey, fmt::format("point {}: {}", number, point.error().message()));
    if (!curve.empty() && point->chunk_bytes <= curve.back().chunk_bytes) {
      return table.error(
          kKey, fmt::format("point {}: '{}' is not above the size before it", number, row[0]));
    }
    curve.push_back(*point);
  }
  return curve;
}

// `rate` is the link's own in that direction.
Result<Burst> parse_burst(const TomlTable& table, const std::string& direction, double rate) {
  const std::string size_key = direction + "_burst";
  const std::string rate_key = direction + "_burst_rate";
  if (table.has(size_key) != table.has(rate_key)) {
    const bool has_size = table.has(size_key);
    return table.error(has_size ? size_key : rate_key,
                       fmt::format("needs {} beside it: N bytes after idling, at that rate",
                                   has_size ? rate_key : size_key));
  }
  Burst burst;
  if (!table.has(size_key)) return burst;
  ASSIGN_OR_RETURN(burst.size_bytes, parse_optional_bytes(table, size_key));
  ASSIGN_OR_RETURN(burst.bytes_per_s, table.quantity(rate_key, parse_link_rate));
  if (burst.bytes_per_s > rate) return burst;
  return table.error(rate_key,
                     fmt::format("is not above {}: a burst is faster than what lasts", direction));
}

}  // namespace

Result<double> check_rate(double per_second, std::string_view written) {
  if (per_second >= 1 && per_second <= kRateMax) return per_second;
  return make_error(ErrorCode::config, "'{}' is out of range: a rate is 1 to 10^18 a second",
                    written);
}

Result<Link> parse_link(const TomlTable& table, std::vector<std::string> other_keys) {
  static const std::array<std::string, 11> kKeys = {"read",
                                                    "write",
                                                    "duplex",
                                                    "sharing",
                                                    "latency",
                                                    "chunk_curve",
                                                    "read_burst",
                                                    "read_burst_rate",
                                                    "write_burst",
                                                    "write_burst_rate",
                                                    "processor_bandwidth"};
  other_keys.insert(other_keys.end(), kKeys.begin(), kKeys.end());
  RETURN_IF_ERROR(table.allow_only(other_keys));
  Link link;
  ASSIGN_OR_RETURN(link.read_bytes_per_s, table.quantity("read", parse_link_rate));
  ASSIGN_OR_RETURN(link.write_bytes_per_s, table.quantity("write", parse_link_rate));
  ASSIGN_OR_RETURN(link.duplex, parse_duplex(table));
  ASSIGN_OR_RETURN(link.sharing, parse_sharing(table));
  ASSIGN_OR_RETURN(link.latency_ns, parse_optional_duration(table, "latency"));
  ASSIGN_OR_RETURN(link.chunk_curve, parse_chunk_curve(table));
  ASSIGN_OR_RETURN(link.read_burst, parse_burst(table, "read", link.read_bytes_per_s));
  ASSIGN_OR_RETURN(link.write_burst, parse_burst(table, "write", link.write_bytes_per_s));
  if (table.has("processor_bandwidth")) {
    ASSIGN_OR_RETURN(link.processor_bytes_per_s,
                     table.quantity("processor_bandwidth", parse_link_rate));
  }
  return link;
}

Result<TimeNs> parse_optional_duration(const TomlTable& table, std::string_view key) {
  if (!table.has(key)) return TimeNs{0};
  const auto parse = [](std::string_view written) -> Result<TimeNs> {
    ASSIGN_OR_RETURN(const TimeNs dur_ns, parse_duration(written));
    if (dur_ns <= kDurationMaxNs) return dur_ns;
    return make_error(ErrorCode::config, "'{}' is out of range: at most a day, 86400 s", written);
  };
  ASSIGN_OR_RETURN(const TimeNs dur_ns, table.quantity(key, parse));
  return dur_ns;
}

Result<std::int64_t> parse_optional_bytes(const TomlTable& table, std::string_view key) {
  if (!table.has(key)) return std::int64_t{0};
  ASSIGN_OR_RETURN(const std::int64_t bytes, table.quantity(key, parse_bytes));
  if (bytes == 0) return table.error(key, "is zero; leave the key out if it is not known");
  return bytes;
}

Result<double> parse_optional_price(const TomlTable& table, std::string_view key) {
  if (!table.has(key)) return 0.0;
  ASSIGN_OR_RETURN(const std::string text, table.text(key));
  double price = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), price);
  const std::string_view unit(end, text.data() + text.size());
  if (error == std::errc() && unit == " USD" && price > 0 && price <= 1e12) return price;
  return table.error(key, fmt::format("'{}' is not a price; write it as \"2400 USD\"", text));
}

Result<std::string> parse_name(const TomlTable& table, std::string_view key) {
  ASSIGN_OR_RETURN(std::string name, table.text(key));
  const bool plain = std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
  });
  if (name.empty() || !plain)
    return table.error(key, fmt::format("'{}' is not a name of letters, digits, - and _", name));
  return name;
}

}  // namespace sluice::platform
