#pragma once
// The two halves of a setting's text, "key=value", as files, commands and messages carry it.
//
// Thread contract: free functions.

#include <string>
#include <string_view>

namespace sluice {

// The key: "buffers" of "buffers=4". A text without '=' is all key.
inline std::string key_of(std::string_view setting) {
  return std::string(setting.substr(0, setting.find('=')));
}

// The value: "4" of "buffers=4". A text without '=' has none.
inline std::string value_of(std::string_view setting) {
  const std::size_t equals = setting.find('=');
  return equals == std::string_view::npos ? "" : std::string(setting.substr(equals + 1));
}

}  // namespace sluice
