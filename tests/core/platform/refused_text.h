#pragma once
// What a platform file that is wrong is refused with: a good one with one of its lines replaced.

#include <catch2/catch.hpp>
#include <string>

#include "core/platform/platform.h"

namespace sluice::platform {

// Empty: it is not refused.
inline std::string message_of(const std::string& toml) {
  const auto platform = parse_platform(toml, "p.toml");
  if (platform.ok()) return "";
  CHECK(platform.error().code() == ErrorCode::config);
  return platform.error().message();
}

// The message when line `line` of `good`, from 1, is replaced.
inline std::string with_line_of(std::string good, int line, const std::string& text) {
  std::size_t begin = 0;
  for (int i = 1; i < line; ++i) begin = good.find('\n', begin) + 1;
  good.replace(begin, good.find('\n', begin) - begin, text);
  return message_of(good);
}

}  // namespace sluice::platform
