// Files that are made to break a reader, each through all three readers of TOML files.

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>

#include "core/toml_file/toml_file.h"
#include "tests/core/toml_file/readers.h"

namespace sluice::toml_file {
namespace {

std::string repeated(std::string_view text, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

struct Hostile {
  std::string_view what;
  std::string toml;
  std::string message;  // it begins so
};

const std::string kTooDeep = "keys, tables and arrays nest deeper than 32 levels here";

std::vector<Hostile> hostile_files() {
  constexpr int kMany = 50'000;
  const std::string dots = repeated("a.", kMany) + "a";
  return {
      {"a key of many parts", "x = 1\n" + dots + " = 1\n", "f.toml:2: " + kTooDeep},
      {"a key of many parts without a value", dots, "f.toml:1: " + kTooDeep},
      {"a key of many quoted parts", repeated("'.'.", kMany) + "a = 1", "f.toml:1: " + kTooDeep},
      {"a header of many parts", "\n\n[" + dots + "]\n", "f.toml:3: " + kTooDeep},
      {"a list's header of many parts", "[[" + dots + "]]\n", "f.toml:1: " + kTooDeep},
      {"nested arrays", "a = " + repeated("[", kMany) + repeated("]", kMany),
       "f.toml:1: " + kTooDeep},
      {"nested arrays over many lines", "a = " + repeated("[\n", kMany), "f.toml:32: " + kTooDeep},
      {"nested inline tables", "a = " + repeated("{a=", kMany) + "1" + repeated("}", kMany),
       "f.toml:1: " + kTooDeep},
      {"a key of many parts in an inline table", "a = {b = 1, " + dots + " = 1}",
       "f.toml:1: " + kTooDeep},
      {"an inline table in an array, by turns", "a = " + repeated("[{a=", kMany),
       "f.toml:1: " + kTooDeep},
      {"all kinds, none too deep alone",
       "[" + repeated("a.", 10) + "a]\n" + repeated("b.", 10) + "b = {" + repeated("c.", 10) +
           "c = [1]}",
       "f.toml:2: " + kTooDeep},
      {"a text that is not closed, and many parts after it", "a = \"\n" + dots + " = 1",
       "f.toml:2: " + kTooDeep},
      {"a key longer than a file may be", repeated("a", kSizeMaxBytes) + " = 1",
       "f.toml: is larger than 1.05 MB"},
      {"a text longer than a file may be", "a = '" + repeated("a", kSizeMaxBytes) + "'",
       "f.toml: is larger than 1.05 MB"},
  };
}

TEST_CASE("a file that is too deep or too large is refused by each reader, with its line") {
  for (const FileReader& reader : kFileReaders) {
    for (const Hostile& hostile : hostile_files()) {
      CAPTURE(reader.name, hostile.what);
      const Status status = reader.read(hostile.toml);
      REQUIRE_FALSE(status.ok());
      CHECK(status.error().code() == ErrorCode::config);
      CHECK(status.error().message().substr(0, hostile.message.size()) == hostile.message);
    }
  }
}

TEST_CASE("of a file without an end no more is read than a file may have") {
  for (const char* path : {"/dev/zero", "/dev/urandom"}) {
    const auto text = read(path, "run file");
    REQUIRE_FALSE(text.ok());
    CHECK(text.error().code() == ErrorCode::config);
    CHECK(text.error().message().find("is larger than 1.05 MB") != std::string::npos);
  }
}

TEST_CASE("a pipe that nobody writes into is refused, and one that somebody has is read") {
  std::string folder = (std::filesystem::temp_directory_path() / "sluice-toml-XXXXXX").string();
  REQUIRE(::mkdtemp(folder.data()) != nullptr);
  const std::string pipe = folder + "/pipe.toml";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  const auto refused = read(pipe, "run file");
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code() == ErrorCode::config);
  CHECK(refused.error().message().find("is a pipe") != std::string::npos);

  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  REQUIRE(::write(ends[1], "a = 1", 5) == 5);
  ::close(ends[1]);
  const auto text = read("/dev/fd/" + std::to_string(ends[0]), "run file");
  REQUIRE(text.ok());
  CHECK(*text == "a = 1");
  ::close(ends[0]);
  std::filesystem::remove_all(folder);
}

TEST_CASE("a file as large as it may be is read") {
  const std::string path =
      (std::filesystem::temp_directory_path() / "sluice_toml_file_test.toml").string();
  std::ofstream(path) << std::string(static_cast<std::size_t>(kSizeMaxBytes), '#');
  const auto text = read(path, "run file");
  REQUIRE(text.ok());
  CHECK(parse(*text, path).ok());
  std::ofstream(path, std::ios::app) << '#';
  CHECK_FALSE(read(path, "run file").ok());
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace sluice::toml_file
