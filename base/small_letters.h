#pragma once
// Texts without regard to capitals: of the letters of ASCII, others stay as they are.
//
// Thread contract: a free function.

#include <algorithm>
#include <string>

namespace sluice {

inline std::string small_letters(std::string text) {
  std::ranges::transform(text, text.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return text;
}

}  // namespace sluice
