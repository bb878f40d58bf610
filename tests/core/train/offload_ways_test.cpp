#include "tests/core/train/offload_ways.h"

#include <catch2/catch.hpp>

namespace sluice {

TEST_CASE("the ways that suites go through have each pair of settings that there is") {
  const std::vector<OffloadWay> every = every_way_to_offload();
  const std::vector<OffloadWay> chosen = ways_with_each_pair(every);
  std::set<SettingPair> had;
  for (const OffloadWay& way : chosen) had.merge(pairs_of(way));
  for (const OffloadWay& way : every) {
    for (const SettingPair& pair : pairs_of(way)) {
      INFO(pair.first << " with " << pair.second);
      CHECK(had.count(pair) == 1);
    }
  }
  CHECK(chosen.size() < every.size() / 5);
}

}  // namespace sluice
