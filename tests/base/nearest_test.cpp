#include "base/nearest.h"

#include <catch2/catch.hpp>
#include <vector>

namespace sluice {
namespace {

const std::vector<std::string> kKeys = {"buffers", "density", "devices", "device_map"};

TEST_CASE("a misspelt word finds the word that was meant") {
  CHECK(nearest_word("bufers", kKeys) == "buffers");
  CHECK(nearest_word("densty", kKeys) == "density");
  CHECK(nearest_word("devicemap", kKeys) == "device_map");
  CHECK(did_you_mean("bufers", kKeys) == " (did you mean 'buffers'?)");
}

TEST_CASE("a word spelt right is its own nearest word") {
  for (const std::string& key : kKeys) CHECK(nearest_word(key, kKeys) == key);
}

TEST_CASE("a word far from all candidates has no suggestion") {
  CHECK(nearest_word("xyzzy", kKeys).empty());
  CHECK(did_you_mean("xyzzy", kKeys).empty());
  CHECK(nearest_word("buffers", {}).empty());
}

TEST_CASE("of two words equally near the first is suggested") {
  const std::vector<std::string> candidates = {"read", "real"};
  CHECK(nearest_word("reap", candidates) == "read");
}

}  // namespace
}  // namespace sluice
