#include "core/data/token_vocabulary.h"

#include <catch2/catch.hpp>

#include "tests/core/data/foreign_tokens.h"

namespace sluice::data {
namespace {

using Catch::Matchers::Contains;

const std::vector<std::string> kPieces = {"a", "b", "ab", "", "abc", std::string("\0\xff", 2), "c"};

Result<std::optional<TokenVocabulary>> loaded_vocabulary(const std::string& bytes) {
  const TemporaryFolder folder;
  write_file(folder / "t.vocab", bytes);
  return TokenVocabulary::load_beside(folder / "t.tok");
}

std::string vocabulary_error(const std::string& bytes) {
  const auto vocabulary = loaded_vocabulary(bytes);
  REQUIRE_FALSE(vocabulary.ok());
  CHECK_THAT(vocabulary.error().message(), Contains("t.vocab"));
  return vocabulary.error().message();
}

TEST_CASE("tokens have the bytes that stand in the file beside theirs") {
  const auto vocabulary = loaded_vocabulary(vocabulary_file(kPieces));
  REQUIRE((vocabulary.ok() && vocabulary->has_value()));
  REQUIRE((*vocabulary)->token_count() == std::ssize(kPieces));
  for (std::size_t token = 0; token < kPieces.size(); ++token) {
    CHECK((*vocabulary)->text_of(static_cast<std::int32_t>(token)) == kPieces[token]);
  }
  const TemporaryFolder folder;
  CHECK(TokenVocabulary::path_beside("x/t.bin") == "x/t.vocab");
  CHECK_FALSE(TokenVocabulary::load_beside(folder / "none.tok")->has_value());
}

TEST_CASE("a text becomes the longest tokens that fit, below the vocabulary") {
  const auto vocabulary = loaded_vocabulary(vocabulary_file(kPieces));
  REQUIRE(vocabulary.ok());
  using Tokens = std::vector<std::int32_t>;
  CHECK(*(*vocabulary)->tokens_of("abcab", 100) == Tokens{4, 2});
  CHECK((*vocabulary)->tokens_of("", 100)->empty());
  CHECK(*(*vocabulary)->tokens_of("abaab", 3) == Tokens{2, 0, 2});
  const auto none = (*vocabulary)->tokens_of("abc", 4);
  REQUIRE_FALSE(none.ok());
  CHECK(none.error().code() == ErrorCode::config);
  CHECK_THAT(none.error().message(), Contains("no token stands for the byte 2 of 'abc'"));
}

TEST_CASE("a vocabulary of which a byte is changed or missing is refused") {
  const std::string whole = vocabulary_file(kPieces);
  for (std::size_t at = 0; at < whole.size(); ++at) {
    CAPTURE(at);
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    vocabulary_error(damaged);
    vocabulary_error(whole.substr(0, at));
  }
  vocabulary_error(whole + "x");
}

TEST_CASE("lengths that do not add up to the bytes are refused, though the checksum is right") {
  const auto with_lengths = [](std::uint32_t first, std::uint32_t second) {
    const std::string body = words_of<std::uint32_t>({first, second}) + "abc";
    const std::uint64_t checksum = fnv1a(body);
    return "SLCVOCAB" + words_of<std::uint32_t>({1, 2, 3, 0}) +
           std::string(reinterpret_cast<const char*>(&checksum), 8) + body;
  };
  REQUIRE(loaded_vocabulary(with_lengths(1, 2)).ok());
  CHECK_THAT(vocabulary_error(with_lengths(1, 3)), Contains("token 1 ends behind the file's end"));
  CHECK_THAT(vocabulary_error(with_lengths(0xffffffff, 4)), Contains("token 0 ends behind"));
  CHECK_THAT(vocabulary_error(with_lengths(1, 1)),
             Contains("its tokens have 2 bytes, and 3 are there"));
}

TEST_CASE("what a header announces is compared with the file before it is taken") {
  const auto announcing = [](std::uint32_t tokens, std::uint32_t low, std::uint32_t high) {
    return "SLCVOCAB" + words_of<std::uint32_t>({1, tokens, low, high}) + std::string(8, '\0');
  };
  CHECK_THAT(vocabulary_error(announcing(0xffffffff, 0, 0)), Contains("are announced"));
  CHECK_THAT(vocabulary_error(announcing(0, 0, 0xffffffff)), Contains("are announced"));
  CHECK_THAT(vocabulary_error(announcing(1, 0xfffffffc, 0xffffffff)), Contains("are announced"));
}

}  // namespace
}  // namespace sluice::data
