#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <set>
#include <thread>
#include <vector>

#include "core/data/text_facts.h"
#include "core/data/token_file.h"
#include "tests/core/data/files.h"

namespace sluice::data {
namespace {

using Catch::Matchers::Contains;

std::set<std::string> names_in(const TemporaryFolder& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "")) {
    names.insert(entry.path().filename().string());
  }
  return names;
}

TEST_CASE("a text becomes its bytes") {
  const TemporaryFolder folder;
  // Longer than one piece of reading, so that pieces are joined right.
  std::string text;
  for (std::int64_t i = 0; i < 300'000; ++i) text += std::to_string(i * 7919 % 100'003);
  write_file(folder / "text", text);
  REQUIRE(prepare_byte_tokens(folder / "text", folder / "tokens").ok());
  const Result<TokenFile> file = TokenFile::open(folder / "tokens");
  REQUIRE(file.ok());
  REQUIRE(file->token_count() == static_cast<std::int64_t>(text.size()));
  const bool equal = std::ranges::equal(all_tokens(*file), text);
  CHECK(equal);
  CHECK(names_in(folder) == std::set<std::string>{"text", "tokens"});
}

TEST_CASE("ranks that make the same tokens at the same time leave one whole file") {
  const TemporaryFolder folder;
  std::string text(3'000'000, 'a');
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>('a' + i % 23);
  write_file(folder / "text", text);
  std::vector<std::thread> ranks;
  std::atomic<int> good_count = 0;
  for (int rank = 0; rank < 8; ++rank) {
    ranks.emplace_back([&] {
      if (!prepare_byte_tokens(folder / "text", folder / "tokens").ok()) return;
      const Result<TokenFile> file = TokenFile::open(folder / "tokens");
      if (file.ok() && file->token_count() == std::ssize(text)) good_count += 1;
    });
  }
  for (std::thread& rank : ranks) rank.join();
  CHECK(good_count == 8);
  CHECK(names_in(folder) == std::set<std::string>{"text", "tokens"});
}

TEST_CASE("one byte is a text") {
  const TemporaryFolder folder;
  write_file(folder / "text", "x");
  REQUIRE(prepare_byte_tokens(folder / "text", folder / "tokens").ok());
  CHECK(TokenFile::open(folder / "tokens")->token_count() == 1);
}

TEST_CASE("an empty text and a missing one are errors") {
  const TemporaryFolder folder;
  write_file(folder / "empty", "");
  CHECK_THAT(prepare_byte_tokens(folder / "empty", folder / "tokens").error().message(),
             Contains("empty"));
  CHECK(prepare_byte_tokens(folder / "none", folder / "tokens").error().code() ==
        ErrorCode::not_found);
  CHECK_FALSE(std::filesystem::exists(folder / "tokens"));
}

TEST_CASE("tokens of the same text are left alone, of another text made again") {
  const TemporaryFolder folder;
  write_file(folder / "text", "first");
  REQUIRE(prepare_byte_tokens(folder / "text", folder / "tokens").ok());
  // A hard link to the old file shows whether the name was given to a new one.
  std::filesystem::create_hard_link(folder / "tokens", folder / "link");
  REQUIRE(prepare_byte_tokens(folder / "text", folder / "tokens").ok());
  CHECK(std::filesystem::hard_link_count(folder / "tokens") == 2);

  write_file(folder / "text", "other");  // the same size
  REQUIRE(prepare_byte_tokens(folder / "text", folder / "tokens").ok());
  CHECK(std::filesystem::hard_link_count(folder / "tokens") == 1);
  CHECK(all_tokens(*TokenFile::open(folder / "tokens"))[0] == 'o');
}

TEST_CASE("damaged tokens are made again") {
  const TemporaryFolder folder;
  write_file(folder / "text", "a text");
  REQUIRE(prepare_byte_tokens(folder / "text", folder / "tokens").ok());
  const std::string whole = read_file(folder / "tokens");
  write_file(folder / "tokens", whole.substr(0, whole.size() - 1));
  REQUIRE(prepare_byte_tokens(folder / "text", folder / "tokens").ok());
  CHECK(read_file(folder / "tokens") == whole);
}

TEST_CASE("a file that is not ours is not overwritten") {
  const TemporaryFolder folder;
  write_file(folder / "text", "a text");
  write_file(folder / "thesis", "years of work");
  const Status status = prepare_byte_tokens(folder / "text", folder / "thesis");
  REQUIRE_FALSE(status.ok());
  CHECK_THAT(status.error().message(), Contains("not overwritten"));
  CHECK(read_file(folder / "thesis") == "years of work");
}

TEST_CASE("a folder that is missing is named") {
  const TemporaryFolder folder;
  write_file(folder / "text", "a text");
  const Status status = prepare_byte_tokens(folder / "text", folder / "no/tokens");
  REQUIRE_FALSE(status.ok());
  CHECK_THAT(status.error().message(), Contains(folder / "no/tokens"));
}

TEST_CASE("a token file is no text") {
  const TemporaryFolder folder;
  write_file(folder / "text", "some text to learn from");
  REQUIRE(prepare_byte_tokens(folder / "text", folder / "tokens").ok());
  const Status again = prepare_byte_tokens(folder / "tokens", folder / "more");
  REQUIRE_FALSE(again.ok());
  CHECK(again.error().code() == ErrorCode::config);
  CHECK_THAT(again.error().message(),
             Contains("tokens: is a token file (it begins with SLCTOKEN)") &&
                 Contains("name the text that it was made from"));
  CHECK(names_in(folder) == std::set<std::string>{"text", "tokens"});
  write_file(folder / "text", "SLCTOKE is shorter than that");
  CHECK(look_at_text(folder / "text").ok());
}

TEST_CASE("a text is known by its size and its bytes, and its begin by as many") {
  const TemporaryFolder folder;
  write_file(folder / "text", "In the beginning");
  write_file(folder / "longer", "In the beginning was more");
  const auto text = look_at_text(folder / "text");
  const auto longer = look_at_text(folder / "longer");
  REQUIRE((text.ok() && longer.ok()));
  CHECK(text->size_bytes == 16);
  CHECK_FALSE(*text == *longer);
  CHECK(*look_at_begin(folder / "longer", 16) == *text);
}

TEST_CASE("who has not made the sample's text is told how to") {
  CHECK(how_to_get_text("out/data/kjv.txt") ==
        "sample_models/data/prepare_kjv.sh out/data/kjv.txt makes it");
  CHECK(how_to_get_text("my.txt") == "");
}

}  // namespace
}  // namespace sluice::data
