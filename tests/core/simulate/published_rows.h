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

}  // namespace sluice::simulate
