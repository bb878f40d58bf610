#pragma once
// A knob as people and programs see it: a setting that may change in a live run. The
// declaration is the table of settings (core/settings/run_config.h); this is what travels.
//
// Thread contract: plain data.

#include <optional>
#include <string>
#include <vector>

namespace sluice::control {

struct Knob {
  std::string key;
  std::string type;                // integer, number, boolean, word, bytes, shares
  std::optional<double> min;       // of numbers
  std::optional<double> max;       // none: as large as one likes
  std::vector<std::string> words;  // of type word
  std::string values;              // the same in words: "1 to 64", "host, csd"
  std::string unit;                // may be empty
  std::string default_value;
  std::string help;   // one sentence
  std::string value;  // in force, as --set would take it
};

}  // namespace sluice::control
