#pragma once
// --sweep: one setting, several values, a row each.
//
// Thread contract: free functions.

#include <string>
#include <vector>

#include "base/status.h"
#include "core/answers/simulated_step.h"

namespace sluice::cli {

struct Sweep {
  std::string key;
  std::vector<std::string> values;
};

// "devices=1..10" (whole numbers, both ends included) or "density=1,0.1,0.01". Errors say what is
// wrong with it; whether the key exists is for the settings to say.
Result<Sweep> parse_sweep(const std::string& text);
// "1..10" or "a,b,c".
Result<std::vector<std::string>> parse_sweep_values(const std::string& values);

using answers::SweepRow;

// `of_what`: model and machine, "gpt2-4.0b on 10 SmartSSD, RTX A5000".
std::string sweep_table(const Sweep& sweep, const std::string& of_what,
                        const std::vector<SweepRow>& rows);
std::string sweep_csv(const Sweep& sweep, const std::vector<SweepRow>& rows);

}  // namespace sluice::cli
