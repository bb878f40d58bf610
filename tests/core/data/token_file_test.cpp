#include "core/data/token_file.h"

#include <catch2/catch.hpp>
#include <cstring>

#include "base/fnv.h"
#include "core/data/token_header.h"
#include "tests/core/data/files.h"

namespace sluice::data {
namespace {

using Catch::Matchers::Contains;

// A file as another program would write it, from docs/token_format.md.
std::string token_file(TokenHeader header, const std::string& payload) {
  header.token_checksum = fnv1a(payload);
  header.header_checksum = header.expected_header_checksum();
  std::string bytes(sizeof header, '\0');
  std::memcpy(bytes.data(), &header, sizeof header);
  return bytes + payload;
}

std::string byte_file(const std::string& text) {
  TokenHeader header;
  header.token_count = text.size();
  header.vocabulary = 256;
  return token_file(header, text);
}

Error error_of(const std::string& bytes) {
  const TemporaryFolder folder;
  write_file(folder / "t.tok", bytes);
  const Result<TokenFile> file = TokenFile::open(folder / "t.tok");
  REQUIRE_FALSE(file.ok());
  CHECK_THAT(file.error().message(), Contains(folder / "t.tok"));
  return file.error();
}

TEST_CASE("FNV-1a gives its published values") {
  CHECK(fnv1a("") == 0xcbf29ce484222325u);
  CHECK(fnv1a("a") == 0xaf63dc4c8601ec8cu);
  CHECK(fnv1a("foobar") == 0x85944171f73967e8u);
}

TEST_CASE("byte tokens read back as the bytes they are") {
  const TemporaryFolder folder;
  write_file(folder / "t.tok", byte_file(std::string("ab\0\xff", 4)));
  const Result<TokenFile> file = TokenFile::open(folder / "t.tok");
  REQUIRE(file.ok());
  CHECK(file->token_count() == 4);
  CHECK(file->vocabulary() == 256);
  CHECK(file->token(0) == 'a');
  CHECK(file->token(2) == 0);
  CHECK(file->token(3) == 255);
}

TEST_CASE("two-byte tokens are little-endian") {
  const TemporaryFolder folder;
  TokenHeader header;
  header.bytes_per_token = 2;
  header.token_count = 2;
  header.vocabulary = 50257;
  write_file(folder / "t.tok", token_file(header, "\x50\xc4\x01\x02"));
  const Result<TokenFile> file = TokenFile::open(folder / "t.tok");
  REQUIRE(file.ok());
  CHECK(file->token(0) == 50256);
  CHECK(file->token(1) == 0x0201);
}

TEST_CASE("a token outside the vocabulary is refused with its offset") {
  TokenHeader header;
  header.bytes_per_token = 2;
  header.token_count = 2;
  header.vocabulary = 50257;
  const Error error = error_of(token_file(header, "\x50\xc4\x51\xc4"));
  CHECK(error.code() == ErrorCode::corrupt);
  CHECK_THAT(error.message(), Contains("offset 66") && Contains("50257"));
}

TEST_CASE("each damaged byte of a header is noticed") {
  const std::string whole = byte_file("In the beginning");
  for (std::size_t at = 0; at < 64; ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    const Error error = error_of(damaged);
    INFO("offset " << at << ": " << error.message());
    if (at >= 8 && at < 12) {
      CHECK(error.code() == ErrorCode::unsupported);
    } else {
      CHECK(error.code() == ErrorCode::corrupt);
    }
  }
}

TEST_CASE("each damaged token is noticed") {
  const std::string whole = byte_file("In the beginning");
  for (std::size_t at = 64; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x01);
    CHECK_THAT(error_of(damaged).message(), Contains("damaged"));
  }
}

TEST_CASE("a file cut anywhere is refused") {
  const std::string whole = byte_file("In the beginning");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    CHECK(error_of(whole.substr(0, size)).code() == ErrorCode::corrupt);
  }
}

TEST_CASE("a file that has grown is refused") {
  CHECK_THAT(error_of(byte_file("In the beginning") + "x").message(), Contains("grown"));
}

TEST_CASE("a foreign file is called one") {
  CHECK_THAT(error_of(std::string(200, 'x')).message(), Contains("not a token file"));
}

TEST_CASE("a missing file and a folder are errors that name the path") {
  const TemporaryFolder folder;
  CHECK(TokenFile::open(folder / "none").error().code() == ErrorCode::not_found);
  CHECK_FALSE(TokenFile::open(folder / "").ok());
}

}  // namespace
}  // namespace sluice::data
