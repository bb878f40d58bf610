#pragma once
// Values of a query's rows as what they should be. A column of another kind, or NULL, is 0, empty
// or what was asked for: a foreign row must not stop the window.
//
// Thread contract: free functions.

#include <charconv>
#include <limits>
#include <optional>
#include <string>

#include "storage/rundb/rows.h"

namespace sluice::gui {

inline std::int64_t integer_of(const rundb::Cell& cell, std::int64_t otherwise = 0) {
  const auto* value = std::get_if<std::int64_t>(&cell);
  return value == nullptr ? otherwise : *value;
}

inline double number_of(const rundb::Cell& cell) {
  if (const auto* value = std::get_if<double>(&cell)) return *value;
  if (const auto* value = std::get_if<std::int64_t>(&cell)) return static_cast<double>(*value);
  return std::numeric_limits<double>::quiet_NaN();
}

// None: it is no whole number.
inline std::optional<std::int64_t> whole_number(const std::string& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

inline std::string text_of(const rundb::Cell& cell) {
  if (const auto* value = std::get_if<std::string>(&cell)) return *value;
  if (const auto* value = std::get_if<std::int64_t>(&cell)) return std::to_string(*value);
  return {};
}

}  // namespace sluice::gui
