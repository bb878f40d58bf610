// The token files of other programs, which are recognised by what is in them, and what is refused
// of each with file, offset, number and value.

#include <catch2/catch.hpp>
#include <numeric>

#include "core/data/token_file.h"
#include "tests/core/data/foreign_tokens.h"

namespace sluice::data {
namespace {

using Catch::Matchers::Contains;

const std::vector<std::uint32_t> kTokens = {50256, 0, 17, 40000, 255, 256, 65535, 1};

std::vector<std::int32_t> signed_tokens(const std::vector<std::uint32_t>& tokens) {
  return {tokens.begin(), tokens.end()};
}

// As a run opens it: recognised, then opened.
Result<TokenFile> opened(const std::string& path, TokenFileOptions options = {}) {
  ASSIGN_OR_RETURN(const std::optional<TokenFormat> format, recognised_format(path));
  if (!format) return make_error(ErrorCode::config, "{}: a text", path);
  options.format = *format;
  return TokenFile::open(path, options);
}

Error refusal(const std::string& path, const TokenFileOptions& options = {}) {
  const auto file = opened(path, options);
  REQUIRE_FALSE(file.ok());
  CHECK_THAT(file.error().message(), Contains(path));
  return file.error();
}

struct Written {
  std::string name;  // of the file
  std::string bytes;
  std::string tokens_of;
  std::int64_t first_offset;
  std::int64_t width;
};

std::vector<Written> all_formats(const std::vector<std::uint32_t>& tokens) {
  return {{"own2.tok", sluice_tokens(tokens, 2, 65536), "sluice", 64, 2},
          {"own4.tok", sluice_tokens(tokens, 4, 65536), "sluice", 64, 4},
          {"gpt2.bin", llmc_tokens(tokens, 2), "llm.c", 1024, 2},
          {"llama3.bin", llmc_tokens(tokens, 4), "llm.c", 1024, 4},
          {"nano.bin", payload_of(tokens, 2), "nanoGPT", 0, 2}};
}

TEST_CASE("each format is recognised and gives its tokens") {
  const TemporaryFolder folder;
  for (const Written& file : all_formats(kTokens)) {
    INFO(file.name);
    write_file(folder / file.name, file.bytes);
    const auto tokens = opened(folder / file.name, {.model_vocabulary = 65536});
    REQUIRE(tokens.ok());
    CHECK(all_tokens(*tokens) == signed_tokens(kTokens));
    CHECK(tokens->facts().tokens_of == file.tokens_of);
    CHECK(tokens->facts().size_bytes == std::ssize(file.bytes));
  }
}

TEST_CASE("a format is recognised by its first bytes, whatever the file's name is") {
  const TemporaryFolder folder;
  write_file(folder / "a.txt", llmc_tokens(kTokens, 2));
  CHECK(opened(folder / "a.txt")->facts().tokens_of == "llm.c");
  write_file(folder / "a.bin", sluice_tokens(kTokens, 2, 65536));
  CHECK(opened(folder / "a.bin")->facts().tokens_of == "sluice");
  write_file(folder / "text", payload_of(kTokens, 2));
  CHECK_FALSE(recognised_format(folder / "text")->has_value());  // nothing says that it is no text
  const auto asked = TokenFile::open(folder / "text", {.format = TokenFormat::nanogpt});
  REQUIRE(asked.ok());
  CHECK(all_tokens(*asked) == signed_tokens(kTokens));
}

TEST_CASE("a token that the model does not have is refused by number, offset, value, vocabulary") {
  const TemporaryFolder folder;
  for (const Written& file : all_formats(kTokens)) {
    INFO(file.name);
    write_file(folder / file.name, file.bytes);
    for (const TokenCheck check : {TokenCheck::whole, TokenCheck::spots}) {
      const Error error = refusal(folder / file.name, {.check = check, .model_vocabulary = 50257});
      CHECK(error.code() == ErrorCode::config);
      CHECK_THAT(error.message(), Contains("token 6, at offset " +
                                           std::to_string(file.first_offset + 6 * file.width)) &&
                                      Contains("is 65535, and the model's vocabulary is 50257"));
    }
  }
}

// A hundred thousand tokens of which one is too large, far from every spot.
TEST_CASE("the whole finds any token, the spots not; and who reads it is told all the same") {
  const TemporaryFolder folder;
  std::vector<std::uint32_t> tokens(4'000'000);
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<std::uint32_t>(i % 1000);
  constexpr std::size_t kAt = 8'000;  // between the first and the second spot
  tokens[kAt] = 1000;
  for (const Written& file : all_formats(tokens)) {
    INFO(file.name);
    write_file(folder / file.name, file.bytes);
    CHECK_THAT(refusal(folder / file.name, {.model_vocabulary = 1000}).message(),
               Contains("token 8000, at offset"));
    const auto some =
        opened(folder / file.name, {.check = TokenCheck::spots, .model_vocabulary = 1000});
    REQUIRE(some.ok());
    std::vector<std::int32_t> window(64);
    CHECK(some->read(kAt + 1, window).ok());
    const Status read = some->read(kAt - 10, window);
    REQUIRE_FALSE(read.ok());
    CHECK_THAT(read.error().message(), Contains("token 8000, at offset") && Contains("is 1000"));
    std::filesystem::remove(folder / file.name);
  }
}

TEST_CASE("spots know a file from others of its size") {
  const TemporaryFolder folder;
  std::vector<std::uint32_t> tokens(3'000'000, 7);
  write_file(folder / "a.bin", payload_of(tokens, 2));
  const TextFacts facts = opened(folder / "a.bin", {.check = TokenCheck::spots})->facts();
  CHECK(opened(folder / "a.bin")->facts() == facts);  // the same, however much is looked at
  for (const std::size_t at : {std::size_t{0}, tokens.size() / 2, tokens.size() - 1}) {
    std::vector<std::uint32_t> other = tokens;
    for (std::size_t i = at; i < std::min(at + 20'000, other.size()); ++i) other[i] = 8;
    write_file(folder / "b.bin", payload_of(other, 2));
    CHECK_FALSE(opened(folder / "b.bin", {.check = TokenCheck::spots})->facts() == facts);
  }
}

TEST_CASE("tokens of 4 bytes that are no signed number are refused") {
  const TemporaryFolder folder;
  write_file(folder / "a.bin", llmc_tokens({1, 0x80000000u, 2}, 4));
  CHECK_THAT(refusal(folder / "a.bin").message(),
             Contains("token 1, at offset 1028, is 2147483648"));
  write_file(folder / "b.tok", sluice_tokens({1}, 4, (std::uint32_t{1} << 31) + 1));
  CHECK_THAT(refusal(folder / "b.tok").message(), Contains("vocabulary of 2147483649"));
}

TEST_CASE("4 bytes a token are of version 2") {
  const TemporaryFolder folder;
  TokenHeader header;
  header.bytes_per_token = 4;
  header.token_count = 1;
  header.vocabulary = 100;
  write_file(folder / "a.tok", sluice_tokens(header, std::string(4, '\0')));
  CHECK_THAT(refusal(folder / "a.tok").message(), Contains("from version 2 on 4"));
  header.version = 6;
  write_file(folder / "a.tok", sluice_tokens(header, std::string(4, '\0')));
  CHECK(refusal(folder / "a.tok").code() == ErrorCode::unsupported);
}

TEST_CASE("windows are of version 4, and tokens are whole ones") {
  const TemporaryFolder folder;
  const std::vector<std::uint8_t> marks(6, 1);
  const auto bytes_with = [&](std::uint32_t version, std::uint32_t window_tokens) {
    const std::string bytes = marked_tokens({1, 2, 3, 4, 5, 6}, 2, 7, marks, 3);
    TokenHeader header;
    std::memcpy(&header, bytes.data(), sizeof header);
    header.version = version;
    header.window_tokens = window_tokens;
    return sluice_tokens(header, bytes.substr(sizeof header));
  };
  write_file(folder / "a.tok", bytes_with(4, 3));
  CHECK(opened(folder / "a.tok")->window_tokens() == 3);
  for (const auto& [version, window_tokens] : {std::pair{4u, 0u}, {4u, 4u}, {4u, 7u}, {3u, 3u}}) {
    write_file(folder / "a.tok", bytes_with(version, window_tokens));
    CHECK_THAT(refusal(folder / "a.tok").message(),
               Contains(fmt::format("windows of {} tokens (offset 28)", window_tokens)));
  }
}

TEST_CASE("llm.c's files are refused where header and size do not agree") {
  const TemporaryFolder folder;
  const auto error_of = [&](const std::string& bytes) {
    write_file(folder / "a.bin", bytes);
    return refusal(folder / "a.bin").message();
  };
  const std::string whole = llmc_tokens(kTokens, 2);
  CHECK_THAT(error_of(whole.substr(0, whole.size() - 1)), Contains("is cut or has grown"));
  CHECK_THAT(error_of(whole + "xx"), Contains("is cut or has grown"));
  CHECK_THAT(error_of(whole.substr(0, 700)), Contains("700 bytes is too short"));
  CHECK_THAT(error_of(llmc_header(20240520, 1, -4)), Contains("-4 tokens of 2 bytes"));
  CHECK_THAT(error_of(llmc_header(20240801, 7, 2147483647)), Contains("0 bytes follow"));
  CHECK_THAT(error_of(llmc_header(20240520, 7, 0)), Contains("version 7 at offset 4"));
  CHECK_THAT(error_of(llmc_header(20240801, 1, 0)), Contains("version 1 at offset 4"));
  CHECK_THAT(error_of(llmc_header(20240522, 1, 0)), Contains("an evaluation file of llm.c"));
}

TEST_CASE("files called .bin that hold no tokens of nanoGPT are refused") {
  const TemporaryFolder folder;
  write_file(folder / "odd.bin", "abc");
  CHECK_THAT(refusal(folder / "odd.bin").message(),
             Contains("3 bytes are no tokens of nanoGPT") && Contains("text_format = \"bytes\""));
  write_file(folder / "weights.bin", std::string("PK\3\4____", 8));
  CHECK_THAT(refusal(folder / "weights.bin").message(), Contains("zip archive"));
  write_file(folder / "megatron.bin", payload_of(kTokens, 2));
  write_file(folder / "megatron.idx", std::string("MMIDIDX\0\0", 9));
  CHECK_THAT(refusal(folder / "megatron.bin").message(), Contains("tokens of Megatron"));
}

TEST_CASE("a check of the whole hears that it is to end") {
  const TemporaryFolder folder;
  write_file(folder / "a.bin", payload_of(std::vector<std::uint32_t>(2'000'000, 1), 2));
  int asked = 0;
  const auto file = TokenFile::open(folder / "a.bin", {.format = TokenFormat::nanogpt},
                                    [&] { return ++asked == 2; });
  REQUIRE_FALSE(file.ok());
  CHECK(file.error().code() == ErrorCode::cancelled);
}

}  // namespace
}  // namespace sluice::data
