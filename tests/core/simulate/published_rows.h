#pragma once
// Published figures beside simulated ones: a row, a table of docs/published_results.md, and how far
// apart they may be.
//
// Thread contract: plain data and free functions.

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <vector>

namespace sluice::simulate {

struct PublishedRow {
  std::string what;
  double published;
  double simulated;
  double difference() const { return simulated / published - 1; }
};

inline void require_within(const std::vector<PublishedRow>& rows, double tolerance) {
  for (const PublishedRow& row : rows) {
    INFO(fmt::format("{}: published {}, simulated {:.2f}", row.what, row.published, row.simulated));
    CHECK(std::abs(row.difference()) <= tolerance);
  }
}

inline std::string published_table(const char* unit, const std::vector<PublishedRow>& rows) {
  std::string text = fmt::format("| | published, {0} | simulated, {0} | difference |\n", unit);
  text += "|---|---:|---:|---:|\n";
  for (const PublishedRow& row : rows) {
    text += fmt::format("| {} | {:.2f} | {:.2f} | {:+.1f} % |\n", row.what, row.published,
                        row.simulated, 100 * row.difference());
  }
  return text + "\n";
}

// A command that gives rows of a table, as the page shows it: `settings` are those that the rows
// were simulated with, `more` other options.
inline std::string simulate_command(const std::string& model, const std::string& platform,
                                    const std::vector<std::string>& settings,
                                    const std::vector<std::string>& more) {
  std::vector<std::string> words = {
      fmt::format("--platform sample_models/platforms/{}.toml", platform)};
  for (const std::string& setting : settings) words.push_back("--set " + setting);
  words.insert(words.end(), more.begin(), more.end());
  std::string text;
  std::string line = fmt::format("    sluice simulate sample_models/models/{}.toml", model);
  for (const std::string& word : words) {
    if (line.size() + word.size() > 94) {
      text += line + " \\\n";
      line = "       ";
    }
    line += " " + word;
  }
  return text + line + "\n\n";
}

}  // namespace sluice::simulate
