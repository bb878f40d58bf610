#pragma once
// Values of settings as text, as a run takes and writes them (docs/settings.md).
//
// Thread contract: free functions.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sluice::gui {

// All of `text`; none: it is no number.
std::optional<double> parse_number(const std::string& text);
// "1MiB" for 1048576: the largest unit that divides it.
std::string bytes_setting(std::int64_t bytes);
// "3,1,1,1"; "even" where all are alike.
std::string shares_setting(const std::vector<double>& shares);
// None: `text` is not that many shares of at least 0, or all are 0.
std::optional<std::vector<double>> parse_shares(const std::string& text, std::size_t count);

}  // namespace sluice::gui
