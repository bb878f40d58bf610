#pragma once
// The grammar of conditions on figures: `sluice compare --fail-if`, `sluice watch --when`.
//
// Thread contract: free functions.

#include <optional>
#include <string>
#include <string_view>

namespace sluice::analyze {

// "step_time>+3%": key, sign, and what stands behind it without a plus and without a per cent.
struct ConditionText {
  std::string key;
  char sign = '>';  // '>', '<' or '='
  bool is_percent = false;
  std::string bound;
};
// None: no key, or none of `signs`.
std::optional<ConditionText> split_condition(const std::string& text, std::string_view signs);

// A finite number and nothing else.
std::optional<double> finite_number(const std::string& text);

}  // namespace sluice::analyze
