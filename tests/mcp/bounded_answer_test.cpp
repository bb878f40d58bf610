#include "mcp/bounded_answer.h"

#include <catch2/catch.hpp>

namespace sluice::mcp {
namespace {

TEST_CASE("what does not fit is counted, and a heart is cut last") {
  Answered answered;
  for (int i = 0; i < 1000; ++i) {
    answered.data["rows"].push_back({{"i", i}});
    answered.spans.push_back(i);
  }
  answered.data["heart"] = std::string(1500, 'h');
  answered.heart = {"heart"};
  for (const std::size_t bytes : {4096u, 8192u, 1u << 18}) {
    const Json answer = bounded_answer(answered, bytes);
    CHECK(text_of(answer).size() <= bytes);
    CHECK(answer["heart"] == answered.data["heart"]);
    std::int64_t left = 0;
    for (const Json& row : answer.value("left_off", Json::array())) {
      if (row["at"] == "/rows") left += row["count"].get<std::int64_t>();
    }
    CHECK(answer["rows"].size() + static_cast<std::size_t>(left) == 1000);
  }
  CHECK(text_of(bounded_answer(answered, kAnswerBytesLeast)).size() <= kAnswerBytesLeast);
}

TEST_CASE("text of a database is data: control characters and no UTF-8 are written out") {
  Answered answered;
  answered.data["name"] = "a\x1b[2J\xff\n";
  answered.data["by"] = {{"\x07key", "\xe2\x80\xae"}};
  const Json answer = bounded_answer(answered, 4096);
  CHECK(answer["name"] == "a\\x1b[2J\\xff\\x0a");
  CHECK(answer["by"].contains("\\x07key"));
  CHECK(text_of(answer).find("\xe2\x80\xae") == std::string::npos);
}

}  // namespace
}  // namespace sluice::mcp
