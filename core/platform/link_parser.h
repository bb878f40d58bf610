#pragma once
// The keys that every link has, shared or inside a device.
//
// Thread contract: free functions.

#include <string>
#include <string_view>
#include <vector>

#include "core/platform/platform.h"
#include "core/platform/toml_table.h"

namespace sluice::platform {

// `other_keys`: what else the table may hold. The link has no name yet.
Result<Link> parse_link(const TomlTable& table, std::vector<std::string> other_keys = {});

// A time that is zero or more; zero when the key is not there.
Result<TimeNs> parse_optional_duration(const TomlTable& table, std::string_view key);

// A rate that a link or an engine can have: at least one a second.
Result<double> check_rate(double per_second, std::string_view written);

// A number of bytes above zero; zero when the key is not there.
Result<std::int64_t> parse_optional_bytes(const TomlTable& table, std::string_view key);
// As "2400 USD".
Result<double> parse_optional_price(const TomlTable& table, std::string_view key);

// A name of letters, digits, '-' and '_'. The dot is left for "csd0.drive".
Result<std::string> parse_name(const TomlTable& table, std::string_view key);

}  // namespace sluice::platform
