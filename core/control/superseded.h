#pragma once
// The last of several sets that wait for the same step counts, knob by knob. What is left of those
// before it is put in force with it; one of which nothing is left is superseded.
//
// Thread contract: free functions on plain data.

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/setting_text.h"

namespace sluice::control {

// Takes out of `settings` ("key=value") the knobs that `later` turns as well.
inline void drop_superseded(std::vector<std::string>& settings,
                            const std::vector<std::string>& later) {
  std::erase_if(settings, [&](const std::string& setting) {
    return std::ranges::any_of(
        later, [key = key_of(setting)](const std::string& other) { return key_of(other) == key; });
  });
}

// Why a set of which nothing is left never comes into force.
inline std::string superseded_by(std::string_view who) {
  return fmt::format("a later change ({}) turns the same knobs", who);
}

}  // namespace sluice::control
