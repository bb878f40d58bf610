#include "core/data/token_marks.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <random>

#include "base/fnv.h"
#include "core/data/token_file.h"
#include "tests/core/data/foreign_tokens.h"

namespace sluice::data {
namespace {

using Catch::Matchers::Contains;

constexpr std::uint8_t kBoth = kLearnt | kDocumentBegins;
const std::vector<std::uint32_t> kMarkedTokens = {7, 8, 9, 300, 11, 12};
const std::vector<std::uint8_t> kMarks = {kDocumentBegins, 0, kLearnt, kBoth, kLearnt, 0};

std::string marked_file() { return marked_tokens(kMarkedTokens, 2, 400, kMarks); }

// The file with the same header but for its checksum, which is made to fit.
std::string with_payload(const std::string& bytes, const std::string& payload) {
  TokenHeader header;
  std::memcpy(&header, bytes.data(), sizeof header);
  return sluice_tokens(header, payload);
}

Result<TokenFile> opened_marked(const TemporaryFolder& folder, const std::string& bytes,
                                TokenCheck check = TokenCheck::whole) {
  write_file(folder / "t.tok", bytes);
  return TokenFile::open(folder / "t.tok", {.check = check});
}

Error error_of_marked(const std::string& bytes, TokenCheck check = TokenCheck::whole) {
  const TemporaryFolder folder;
  const Result<TokenFile> file = opened_marked(folder, bytes, check);
  REQUIRE_FALSE(file.ok());
  CHECK_THAT(file.error().message(), Contains(folder / "t.tok"));
  return file.error();
}

std::vector<std::uint8_t> all_marks(const TokenFile& file) {
  std::vector<std::uint8_t> marks(static_cast<std::size_t>(file.token_count()), 0xff);
  REQUIRE(file.read_marks(0, marks).ok());
  return marks;
}

TEST_CASE("marks lie behind the tokens, four a byte, the first in the lowest bits") {
  const std::string bytes = marked_file();
  REQUIRE(bytes.size() == 64 + 12 + 2);
  CHECK(static_cast<unsigned char>(bytes[76]) == 0b11'01'00'10);
  CHECK(static_cast<unsigned char>(bytes[77]) == 0b00'00'00'01);
  const TemporaryFolder folder;
  const Result<TokenFile> file = opened_marked(folder, bytes);
  REQUIRE(file.ok());
  CHECK(file->has_marks());
  CHECK(all_marks(*file) == kMarks);
  CHECK(all_tokens(*file) == std::vector<std::int32_t>(kMarkedTokens.begin(), kMarkedTokens.end()));
  CHECK(file->facts().size_bytes == std::ssize(bytes));
  CHECK(file->facts().checksum == fnv1a(bytes.substr(64)));
}

TEST_CASE("tokens of each width have marks") {
  for (const std::uint32_t width : {1u, 2u, 4u}) {
    for (std::size_t count = 1; count < 10; ++count) {
      INFO(width << " bytes, " << count << " tokens");
      const std::vector<std::uint32_t> tokens(count, 5);
      std::vector<std::uint8_t> marks;
      for (std::size_t i = 0; i < count; ++i)
        marks.push_back(static_cast<std::uint8_t>((i * 3 + 1) % 4));
      const TemporaryFolder folder;
      const Result<TokenFile> file = opened_marked(folder, marked_tokens(tokens, width, 6, marks));
      REQUIRE(file.ok());
      CHECK(all_marks(*file) == marks);
    }
  }
}

TEST_CASE("without marks each token is learnt and no document is known to begin") {
  const TemporaryFolder folder;
  const Result<TokenFile> file = opened_marked(folder, sluice_tokens(kMarkedTokens, 2, 400));
  REQUIRE(file.ok());
  CHECK_FALSE(file->has_marks());
  CHECK(all_marks(*file) == std::vector<std::uint8_t>(kMarkedTokens.size(), kLearnt));
}

TEST_CASE("marks are read from anywhere, over as many pieces as there are") {
  std::mt19937 random(1);
  std::vector<std::uint8_t> marks;
  for (int i = 0; i < 70'001; ++i) marks.push_back(static_cast<std::uint8_t>(random() % 4));
  const TemporaryFolder folder;
  const Result<TokenFile> file = opened_marked(
      folder, marked_tokens(std::vector<std::uint32_t>(marks.size(), 1), 1, 2, marks));
  REQUIRE(file.ok());
  CHECK(all_marks(*file) == marks);
  for (const std::ptrdiff_t first : {1, 2, 3, 4, 777, 16'383}) {
    for (const std::ptrdiff_t count : {0, 1, 3, 16'384, 40'000}) {
      std::vector<std::uint8_t> some(static_cast<std::size_t>(count));
      REQUIRE(file->read_marks(first, some).ok());
      REQUIRE(std::equal(some.begin(), some.end(), marks.begin() + first));
    }
  }
}

TEST_CASE("a file with marks that is cut or has grown is refused") {
  const std::string whole = marked_file();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    CHECK(error_of_marked(whole.substr(0, size)).code() == ErrorCode::corrupt);
  }
  CHECK_THAT(error_of_marked(whole + '\0').message(),
             Contains("has grown") && Contains("2 bits of marks"));
  CHECK_THAT(error_of_marked(with_payload(whole, std::string(12, '\1'))).message(),
             Contains("is cut"));
}

TEST_CASE("each flipped bit of tokens and marks is noticed") {
  const std::string whole = marked_file();
  for (std::size_t bit = 64 * 8; bit < whole.size() * 8; ++bit) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    const Error error = error_of_marked(damaged);
    CHECK(error.code() == ErrorCode::corrupt);
    CHECK_THAT(error.message(), Contains("damaged"));
  }
}

TEST_CASE("bits behind the last mark are refused, where only spots are looked at, too") {
  const std::string whole = marked_file();
  for (const TokenCheck check : {TokenCheck::whole, TokenCheck::spots}) {
    for (const int bit : {4, 5, 6, 7}) {
      std::string payload = whole.substr(64);
      payload.back() = static_cast<char>(payload.back() | (1 << bit));
      const Error error = error_of_marked(with_payload(whole, payload), check);
      CHECK(error.code() == ErrorCode::corrupt);
      CHECK_THAT(error.message(), Contains("offset 77") && Contains("have to be 0"));
    }
  }
}

TEST_CASE("a file of which nothing is learnt is refused") {
  const std::vector<std::uint8_t> marks = {kDocumentBegins, 0, 0, kDocumentBegins, 0, 0};
  const Error error = error_of_marked(marked_tokens(kMarkedTokens, 2, 400, marks));
  CHECK(error.code() == ErrorCode::config);
  CHECK_THAT(error.message(), Contains("none of its 6 tokens") &&
                                  Contains("nothing would be trained") && Contains("offset 76"));
}

TEST_CASE("a token outside the vocabulary is named before the marks are") {
  const Error error = error_of_marked(
      marked_tokens(kMarkedTokens, 2, 300, std::vector<std::uint8_t>(kMarkedTokens.size())));
  CHECK(error.code() == ErrorCode::corrupt);
  CHECK_THAT(error.message(), Contains("offset 70") && Contains("vocabulary of 300"));
}

TEST_CASE("marks that are cut off while the file is open are an error with its offset") {
  const TemporaryFolder folder;
  const Result<TokenFile> file = opened_marked(folder, marked_file());
  REQUIRE(file.ok());
  std::filesystem::resize_file(folder / "t.tok", 77);
  std::vector<std::uint8_t> marks(6);
  const Status read = file->read_marks(0, marks);
  REQUIRE_FALSE(read.ok());
  CHECK_THAT(read.error().message(), Contains("offset 77") && Contains("was cut"));
  CHECK(file->read_marks(0, std::span(marks).first(4)).ok());
}

}  // namespace
}  // namespace sluice::data
