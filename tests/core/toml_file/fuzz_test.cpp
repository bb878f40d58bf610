// Good files with seeded damage, through the reader of their kind. What this looks for is found by
// the address sanitizer; without it, that each ends as a value or as one error with the file's
// name.

#include <catch2/catch.hpp>
#include <fstream>
#include <random>
#include <sstream>

#include "core/toml_file/toml_file.h"
#include "tests/core/toml_file/readers.h"

namespace sluice::toml_file {
namespace {

constexpr std::array<std::string_view, 40> kTokens = {"\"",
                                                      "'",
                                                      "\"\"\"",
                                                      "'''",
                                                      "[",
                                                      "]",
                                                      "[[",
                                                      "]]",
                                                      "{",
                                                      "}",
                                                      ".",
                                                      ",",
                                                      "=",
                                                      "\n",
                                                      "\r",
                                                      "#",
                                                      "\\",
                                                      "\\u0000",
                                                      "\\U0010ffff",
                                                      "\\ud800",
                                                      "0x",
                                                      "1e999",
                                                      "-0",
                                                      "9223372036854775807",
                                                      "-9223372036854775808",
                                                      "99999999999999999999",
                                                      "nan",
                                                      "-inf",
                                                      "1e-320",
                                                      "true",
                                                      "2026-02-30",
                                                      "00:00:61",
                                                      "1979-05-27T07:32:00-25:00",
                                                      "\xff",
                                                      "\xc3",
                                                      "\xe2\x80\xae",
                                                      "a.b.c",
                                                      "\"1e30 GB/s\"",
                                                      "\"-1 us\"",
                                                      "name"};

std::string file_text(std::string_view name) {
  std::ifstream file(fmt::format("{}/sample_models/{}", SLUICE_SOURCE_DIR, name));
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

class Damage {
 public:
  explicit Damage(unsigned seed) : random_(seed) {}

  std::string of(std::string text, std::string_view other) {
    for (std::size_t i = 0, count = 1 + below(4); i < count; ++i) hurt(text, other);
    return text;
  }

 private:
  std::size_t below(std::size_t limit) {
    return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random_);
  }
  void hurt(std::string& text, std::string_view other) {
    const std::size_t at = below(text.size() + 1);
    const std::size_t size = 1 + below(60);
    switch (below(8)) {
      case 0:
        if (at < text.size()) text[at] = static_cast<char>(below(256));
        return;
      case 1:
        text.erase(at, size);
        return;
      case 2:
        text.insert(at, text.substr(at, size));
        return;
      case 3:
        text.resize(at);
        return;
      case 4:
        text.insert(at, other.substr(below(other.size()), size));
        return;
      case 5:  // one value in place of another
        text.replace(std::min(text.find('=', at), text.size() - 1) + 1, 1 + below(8),
                     kTokens[below(kTokens.size())]);
        return;
      case 6:
        for (std::size_t i = 0; i < size; ++i) text.insert(at, kTokens[below(12)]);
        return;
      default:
        text.insert(at, kTokens[below(kTokens.size())]);
    }
    if (text.empty()) text = "\n";
  }

  std::mt19937 random_;
};

TEST_CASE("a damaged file is a value or one error that names it") {
  std::size_t refused = 0;
  std::size_t taken = 0;
  for (const FileReader& reader : kFileReaders) {
    const std::string good = file_text(reader.good);
    REQUIRE(reader.read(good).ok());
    for (unsigned seed = 0; seed < 1500; ++seed) {
      CAPTURE(reader.name, seed);
      const std::string toml = Damage(seed).of(good, file_text(kFileReaders[seed % 3].good));
      const Status status = reader.read(toml);
      (status.ok() ? taken : refused) += 1;
      if (status.ok()) continue;
      REQUIRE(status.error().code() == ErrorCode::config);
      REQUIRE(status.error().message().starts_with("f.toml:"));
    }
  }
  CHECK(refused > 1000);  // the damage is some, and not all of it at once
  CHECK(taken > 100);
}

}  // namespace
}  // namespace sluice::toml_file
