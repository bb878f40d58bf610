#include "core/weights/safetensors.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>

#include "base/float16.h"
#include "tests/core/weights/weights_files.h"
#include "tests/test_folder.h"

namespace sluice::weights {
namespace {

using Catch::Contains;

const std::string kHostile = "tests/fixtures/hostile_safetensors/";

struct HostileCase {
  std::string name;
  bool is_read = false;
};

// The reference library's word on each file; a key that is there twice it reads, the last wins.
std::vector<HostileCase> hostile_cases() {
  std::ifstream file("tests/fixtures/hostile_expected.txt");
  std::vector<HostileCase> cases;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    HostileCase of_line;
    std::string word;
    words >> of_line.name >> word;
    of_line.is_read = word == "read" && of_line.name != "duplicate_key";
    if (!of_line.name.empty()) cases.push_back(of_line);
  }
  return cases;
}

Result<SafetensorsFile> open_bytes(const TestFolder& folder, const std::string& bytes) {
  write_bytes(folder.file("x.safetensors"), bytes);
  return SafetensorsFile::open(folder.file("x.safetensors"));
}

std::string with_header(const std::string& text, std::size_t data_bytes) {
  const std::uint64_t size = text.size();
  return std::string(reinterpret_cast<const char*>(&size), 8) + text +
         std::string(data_bytes, '\0');
}

}  // namespace

TEST_CASE("each hostile file is read or refused as by the reference library, and named") {
  const std::vector<HostileCase> cases = hostile_cases();
  REQUIRE(cases.size() == 28);
  int read = 0;
  for (const HostileCase& of_file : cases) {
    const std::string path = kHostile + of_file.name + ".safetensors";
    INFO(path);
    const Result<SafetensorsFile> file = SafetensorsFile::open(path);
    CHECK(file.ok() == of_file.is_read);
    read += file.ok() ? 1 : 0;
    if (file.ok()) continue;
    INFO(file.error().message());
    CHECK(file.error().code() == ErrorCode::corrupt);
    CHECK_THAT(file.error().message(), Contains(path));
    CHECK(file.error().message().size() < 400);
  }
  CHECK(read == 6);
}

TEST_CASE("what is wrong with a file is said with its byte or its tensor") {
  const auto message_of = [](const char* name) {
    return SafetensorsFile::open(kHostile + name + ".safetensors").error().message();
  };
  CHECK_THAT(message_of("hole"), Contains("tensor b") && Contains("a hole before it"));
  CHECK_THAT(message_of("overlap"), Contains("tensor b") && Contains("overlaps"));
  CHECK_THAT(message_of("duplicate_key"), Contains("'a' is there twice"));
  CHECK_THAT(message_of("unknown_dtype"), Contains("F31") && Contains("did you mean 'F32'"));
  CHECK_THAT(message_of("trailing_bytes"), Contains("4 bytes are of no tensor"));
  CHECK_THAT(message_of("shape_disagrees"), Contains("are 8 bytes") && Contains("takes 12"));
  CHECK_THAT(message_of("deep_nesting"), Contains("nested"));
  CHECK_THAT(message_of("header_length_huge"), Contains("may have 100000000"));
  CHECK_THAT(message_of("not_json"), Contains("byte 10: is no JSON"));
}

TEST_CASE("a zero byte and a second value end no header unseen") {
  const TestFolder folder;
  const std::string good = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  REQUIRE(open_bytes(folder, with_header(good, 8)).ok());
  CHECK_FALSE(open_bytes(folder, with_header(good + std::string(1, '\0') + "x", 8)).ok());
  CHECK_FALSE(open_bytes(folder, with_header(good + "{}", 8)).ok());
  CHECK_FALSE(open_bytes(folder, with_header("\xef\xbb\xbf" + good, 8)).ok());
  CHECK_FALSE(open_bytes(folder, with_header("// no comment\n" + good, 8)).ok());
}

TEST_CASE("BF16, F16 and F32 are widened without a loss, from any element on") {
  const TestFolder folder;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::vector<float> values = {0.0f,    -0.0f, 1.0f,      -2.5f,     0.09375f,
                                     1024.0f, -7.0f, kInfinity, -kInfinity};
  for (const char* dtype : {"F32", "BF16", "F16"}) {
    INFO(dtype);
    const auto file = open_bytes(folder, safetensors_bytes({{"w", {{3, 3}, values, dtype}}}));
    REQUIRE(file.ok());
    const StoredTensor& tensor = file->tensors().front();
    for (std::size_t first = 0; first < values.size(); ++first) {
      for (std::size_t count = 0; count <= values.size() - first; ++count) {
        std::vector<float> out(count, 99.0f);
        REQUIRE(file->read(tensor, static_cast<std::int64_t>(first), out).ok());
        for (std::size_t i = 0; i < count; ++i) {
          CHECK(std::bit_cast<std::uint32_t>(out[i]) ==
                std::bit_cast<std::uint32_t>(values[first + i]));
        }
      }
    }
  }
}

TEST_CASE("a dtype that no weight has is refused where it is read, and only there") {
  const TestFolder folder;
  const auto file = open_bytes(
      folder, with_header(R"({"q":{"dtype":"I8","shape":[4],"data_offsets":[0,4]}})", 4));
  REQUIRE(file.ok());
  std::vector<float> out(4);
  const Status read = file->read(file->tensors().front(), 0, out);
  REQUIRE_FALSE(read.ok());
  CHECK_THAT(read.error().message(), Contains("tensor q has the dtype I8"));
}

TEST_CASE("a file that shrinks after it was opened is an error and no crash") {
  const TestFolder folder;
  const auto file =
      open_bytes(folder, safetensors_bytes({{"w", {{4096}, std::vector<float>(4096, 1.0f)}}}));
  REQUIRE(file.ok());
  write_bytes(file->path(), "short");
  std::vector<float> out(4096);
  CHECK_FALSE(file->read(file->tensors().front(), 0, out).ok());
}

}  // namespace sluice::weights
