#include "base/setting_text.h"

#include <catch2/catch.hpp>

namespace sluice {
namespace {

TEST_CASE("a setting's text is cut at its first equals sign") {
  CHECK(key_of("buffers=4") == "buffers");
  CHECK(value_of("buffers=4") == "4");
  CHECK(key_of("sample_prompt=a=b") == "sample_prompt");
  CHECK(value_of("sample_prompt=a=b") == "a=b");
  CHECK(value_of("sample_prompt=") == "");
}

TEST_CASE("a text without an equals sign is a key without a value") {
  CHECK(key_of("buffers") == "buffers");
  CHECK(value_of("buffers") == "");
}

}  // namespace
}  // namespace sluice
