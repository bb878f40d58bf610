#include "core/data/token_file.h"

#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "base/fnv.h"
#include "core/data/token_header.h"
#include "tests/core/data/foreign_tokens.h"

namespace sluice::data {
namespace {

using Catch::Matchers::Contains;

std::string byte_file(const std::string& text) {
  TokenHeader header;
  header.token_count = text.size();
  header.vocabulary = 256;
  return sluice_tokens(header, text);
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
  CHECK(all_tokens(*file) == std::vector<std::int32_t>{'a', 'b', 0, 255});
}

TEST_CASE("two-byte tokens are little-endian") {
  const TemporaryFolder folder;
  TokenHeader header;
  header.bytes_per_token = 2;
  header.token_count = 2;
  header.vocabulary = 50257;
  write_file(folder / "t.tok", sluice_tokens(header, "\x50\xc4\x01\x02"));
  const Result<TokenFile> file = TokenFile::open(folder / "t.tok");
  REQUIRE(file.ok());
  CHECK(all_tokens(*file) == std::vector<std::int32_t>{50256, 0x0201});
}

TEST_CASE("a token outside the vocabulary is refused with its offset") {
  TokenHeader header;
  header.bytes_per_token = 2;
  header.token_count = 2;
  header.vocabulary = 50257;
  const Error error = error_of(sluice_tokens(header, "\x50\xc4\x51\xc4"));
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

TEST_CASE("tokens are read from anywhere, over as many pieces as there are") {
  const TemporaryFolder folder;
  TokenHeader header;
  header.bytes_per_token = 2;
  header.token_count = 10'000;
  header.vocabulary = 50257;
  std::string bytes;
  const auto token_of = [](std::int64_t index) { return static_cast<std::int32_t>(index * 5 + 3); };
  for (std::int64_t i = 0; i < 10'000; ++i) {
    bytes += {static_cast<char>(token_of(i) & 0xff), static_cast<char>(token_of(i) >> 8)};
  }
  write_file(folder / "t.tok", sluice_tokens(header, bytes));
  const Result<TokenFile> file = TokenFile::open(folder / "t.tok");
  REQUIRE(file.ok());
  for (const std::int64_t first : {std::int64_t{0}, std::int64_t{1}, std::int64_t{777}}) {
    std::vector<std::int32_t> tokens(9'000);
    REQUIRE(file->read(first, tokens).ok());
    for (std::int64_t i = 0; i < std::ssize(tokens); ++i) {
      REQUIRE(tokens[static_cast<std::size_t>(i)] == token_of(first + i));
    }
  }
}

TEST_CASE("a file that is cut while it is open is an error with its offset, not a signal") {
  const TemporaryFolder folder;
  write_file(folder / "t.tok", byte_file("In the beginning"));
  const Result<TokenFile> file = TokenFile::open(folder / "t.tok");
  REQUIRE(file.ok());
  std::vector<std::int32_t> tokens(16);
  REQUIRE(file->read(0, tokens).ok());
  for (const int size_bytes : {70, 0}) {
    std::filesystem::resize_file(folder / "t.tok", static_cast<std::uintmax_t>(size_bytes));
    const Status read = file->read(0, tokens);
    REQUIRE_FALSE(read.ok());
    CHECK(read.error().code() == ErrorCode::corrupt);
    CHECK_THAT(read.error().message(), Contains(folder / "t.tok") && Contains("was cut") &&
                                           Contains(size_bytes == 70 ? "offset 70" : "offset 64"));
  }
}

TEST_CASE("a token that is changed while the file is open does not leave the vocabulary") {
  const TemporaryFolder folder;
  TokenHeader header;
  header.bytes_per_token = 2;
  header.token_count = 2;
  header.vocabulary = 50257;
  const std::string whole = sluice_tokens(header, "\x50\xc4\x01\x02");
  write_file(folder / "t.tok", whole);
  const Result<TokenFile> file = TokenFile::open(folder / "t.tok");
  REQUIRE(file.ok());
  write_file(folder / "t.tok", whole.substr(0, 66) + "\xff\xff");  // the same file
  std::vector<std::int32_t> tokens(2);
  const Status read = file->read(0, tokens);
  REQUIRE_FALSE(read.ok());
  CHECK_THAT(read.error().message(), Contains("offset 66") && Contains("50257"));
}

TEST_CASE("a pipe, a socket or a device in a file's place is said, and not waited for") {
  const TemporaryFolder folder;
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  for (const std::string& path : {folder / "pipe", std::string("/dev/null")}) {
    const Result<TokenFile> file = TokenFile::open(path);
    REQUIRE_FALSE(file.ok());
    CHECK_THAT(file.error().message(), Contains(path) && Contains("not a regular file"));
    CHECK_THAT(prepare_byte_tokens(path, folder / "tokens").error().message(),
               Contains("not a regular file"));
  }
  write_file(folder / "text", "a text");
  CHECK_THAT(prepare_byte_tokens(folder / "text", folder / "pipe").error().message(),
             Contains("is a pipe"));
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
