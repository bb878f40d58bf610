#pragma once
// Commands in this process, so that sanitizers watch them.

#include <string>
#include <vector>

#include "cli/command_line.h"

namespace sluice::cli {

// The exit code of `sluice WORDS...`. What it says goes where this program's own words go.
inline int run(const std::vector<std::string>& words) {
  std::vector<const char*> arguments = {"sluice"};
  for (const std::string& word : words) arguments.push_back(word.c_str());
  return run_command_line(static_cast<int>(arguments.size()), arguments.data());
}

// Commands that make a run without training: four simulated steps.
inline std::vector<std::string> simulated_into(const std::string& database) {
  return {"simulate",   "sample_models/models/gpt2-1.7b.toml",
          "--platform", "sample_models/platforms/smartssd-a5000.toml",
          "--set",      "devices=2",
          "--db",       database};
}

}  // namespace sluice::cli
