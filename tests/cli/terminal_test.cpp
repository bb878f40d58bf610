#include "cli/terminal.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <sstream>
#include <vector>

#include "base/split_mix.h"
#include "cli/paint.h"

using namespace sluice;
using namespace sluice::cli;

namespace {

// Numbers from a seed.
class Drawn {
 public:
  explicit Drawn(std::uint64_t seed) : seed_(seed) {}
  std::size_t below(std::size_t limit) { return split_mix(seed_, count_++) % limit; }

 private:
  std::uint64_t seed_;
  std::uint64_t count_ = 0;
};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream in(text);
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

}  // namespace

TEST_CASE("wrapped lines keep every word in order and are no wider than asked") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Drawn drawn(seed);
    std::string text;
    for (std::size_t word = 0, count = 1 + drawn.below(40); word < count; ++word) {
      text += (word > 0 ? " " : "") + std::string(1 + drawn.below(30), 'w');
    }
    const int columns = 20 + static_cast<int>(drawn.below(80));
    const std::string wrapped_text = wrapped(text, columns, "  ");
    INFO(seed);
    CHECK(words_of(wrapped_text) == words_of(text));
    for (const std::string& line : lines_of(wrapped_text)) {
      CHECK((line.size() <= static_cast<std::size_t>(columns) || words_of(line).size() == 1));
    }
  }
}

TEST_CASE("a number stays with its per cent, and a name cannot end a line") {
  CHECK(wrapped("it takes 12 % more", 12, "") == "it takes\n12 % more\n");
  CHECK(wrapped("a\nb", 80, "") == "a\\x0ab\n");
}

TEST_CASE("columns are those that a terminal gives") {
  CHECK(columns_of("abc") == 3);
  CHECK(columns_of("äöü") == 3);
  CHECK(columns_of("層") == 2);
  CHECK(columns_of("e\xcc\x81") == 1);  // a letter and its accent
  CHECK(columns_of(amber("abc")) == 3);
  CHECK(padded("層", 4) == "層  ");
  CHECK(padded("abcdef", 4) == "abcdef");
}

TEST_CASE("any bytes have columns, also where a character is cut") {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    Drawn drawn(seed);
    std::string bytes;
    for (std::size_t i = 0, count = drawn.below(12); i < count; ++i)
      bytes += static_cast<char>(drawn.below(256));
    CHECK(columns_of(bytes) <= 2 * bytes.size());
    CHECK_FALSE(wrapped(bytes, 20, "").empty());
  }
}

TEST_CASE("a command on several lines is the command when it is pasted") {
  std::string command = "sluice train run.toml";
  for (int i = 0; i < 12; ++i) command += fmt::format(" --set key{}='a value of {}'", i, i);
  const std::string lines = command_lines(command, 60, 4);
  std::string pasted;
  for (const std::string& line : lines_of(lines)) {
    CHECK(line.size() <= 60);
    const std::string part = line.substr(pasted.empty() ? 0 : 4);
    pasted += part.ends_with('\\') ? part.substr(0, part.size() - 1) : part;
  }
  CHECK(pasted == command);
  CHECK(fitted(lines, 30) == lines);  // it is not cut apart again
}

TEST_CASE("lines that fit stay, longer ones go on behind their indent") {
  CHECK(fitted("short\n  also short\n", 40) == "short\n  also short\n");
  CHECK(fitted("  one two three four\n", 16) == "  one two three\n    four\n");
  CHECK(in_column("one two three", 40, 20) == "one two three\n");
}
