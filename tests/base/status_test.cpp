#include "base/status.h"

#include <catch2/catch.hpp>
#include <memory>
#include <string>

namespace sluice {
namespace {

Result<int> half_of(int number) {
  if (number % 2 != 0)
    return make_error(ErrorCode::config, "{} is odd; ask for an even number", number);
  return number / 2;
}

Result<int> quarter_of(int number) {
  ASSIGN_OR_RETURN(const int half, half_of(number));
  ASSIGN_OR_RETURN(const int quarter, half_of(half));
  return quarter;
}

Status check_divisible(int number) {
  RETURN_IF_ERROR(quarter_of(number));
  return ok_status();
}

TEST_CASE("a result holds a value or an error that says what was wrong") {
  const Result<int> good = half_of(8);
  REQUIRE(good.ok());
  CHECK(*good == 4);
  const Result<int> bad = half_of(7);
  REQUIRE_FALSE(bad.ok());
  CHECK(bad.error().code() == ErrorCode::config);
  CHECK(bad.error().message() == "7 is odd; ask for an even number");
}

TEST_CASE("the first error leaves the function") {
  CHECK(*quarter_of(12) == 3);
  CHECK(quarter_of(6).error().message() == "3 is odd; ask for an even number");
  CHECK(check_divisible(12).ok());
  CHECK(check_divisible(5).error().message() == "5 is odd; ask for an even number");
}

TEST_CASE("context is put before the message and keeps the code") {
  const Error error = Error(ErrorCode::io, "read failed").with_context("state.bin");
  CHECK(error.message() == "state.bin: read failed");
  CHECK(error.code() == ErrorCode::io);
}

TEST_CASE("a result can hold what only moves") {
  const auto make = []() -> Result<std::unique_ptr<int>> { return std::make_unique<int>(5); };
  const auto use = [&]() -> Result<int> {
    ASSIGN_OR_RETURN(const std::unique_ptr<int> owned, make());
    return *owned;
  };
  CHECK(*use() == 5);
}

}  // namespace
}  // namespace sluice
