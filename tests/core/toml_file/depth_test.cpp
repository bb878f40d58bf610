// The measure of depth against the tree that the parser makes.

#include "core/toml_file/depth.h"

#include <catch2/catch.hpp>
#include <random>

#include "core/toml_file/toml_file.h"

namespace sluice::toml_file {
namespace {

bool is_too_deep(std::string_view toml) { return !check_depth(toml, "f.toml").ok(); }

std::string parts(int count) {
  std::string key = "a";
  for (int i = 1; i < count; ++i) key += " . a";
  return key;
}

TEST_CASE("a key may have as many parts as the limit says, and no more") {
  CHECK_FALSE(is_too_deep(parts(kDepthMax) + " = 1"));
  CHECK(is_too_deep(parts(kDepthMax + 1) + " = 1"));
  CHECK_FALSE(is_too_deep("[" + parts(kDepthMax) + "]"));
  CHECK(is_too_deep("[" + parts(kDepthMax + 1) + "]"));
  CHECK_FALSE(is_too_deep("[" + parts(kDepthMax - 1) + "]\na = 1"));
  CHECK(is_too_deep("[" + parts(kDepthMax - 1) + "]\na.a = 1"));
  CHECK_FALSE(is_too_deep("a = {" + parts(kDepthMax - 1) + " = 1, a = 1}\n"));
  CHECK(is_too_deep("a = {a = 1, " + parts(kDepthMax) + " = 1}\n"));
}

TEST_CASE("a key begins anew after each statement") {
  std::string many;
  for (int i = 0; i < 1000; ++i) many += "[a.b.c]\nd.e = 1.5\nf = {g.h = [1.5, [2.5]], i.j = 1}\n";
  CHECK_FALSE(is_too_deep(many));
}

TEST_CASE("dots and brackets in texts, numbers and comments are no depth") {
  const std::string dots = parts(1000);
  const std::string brackets(1000, '[');
  for (const std::string& inside : {dots, brackets, dots + "#", std::string("{{{ = ") + dots}) {
    CHECK_FALSE(is_too_deep("a = \"" + inside + "\"\nb = 1"));
    CHECK_FALSE(is_too_deep("a = '" + inside + "'\nb = 1"));
    CHECK_FALSE(is_too_deep("\"" + inside + "\".'" + inside + "' = 1"));
    CHECK_FALSE(is_too_deep("['" + inside + "']"));
    CHECK_FALSE(is_too_deep("a = \"\\\"" + inside + "\\\\\"\nb = 1"));
    CHECK_FALSE(is_too_deep("a = '\\'\nb = '" + inside + "'"));
    CHECK_FALSE(is_too_deep("a = 1 # " + inside + "\nb = 1"));
    CHECK_FALSE(is_too_deep("[a] # " + inside));
    CHECK_FALSE(is_too_deep("a = [ # " + inside + "\n]"));
    CHECK_FALSE(is_too_deep("a = \"\"\"\n" + inside + "\n\"\"" + inside + "\"\"\"\nb = 1"));
    CHECK_FALSE(is_too_deep("a = '''\n" + inside + "\n''" + inside + "'''\nb = 1"));
    CHECK_FALSE(is_too_deep("a = \"\"\"\\\"\"\"" + inside + "\"\"\""));
    CHECK_FALSE(is_too_deep("a = [\"\", \"" + inside + "\", '', '" + inside + "']"));
  }
  CHECK_FALSE(is_too_deep("a = [1.5, 2.5, 1e5, 2026-01-01T00:00:00.5]"));
}

TEST_CASE("what follows a text counts, however many quotes close it") {
  const std::string deep = "\n" + parts(kDepthMax + 1) + " = 1";
  for (const char* text :
       {"\"\"", "''", "\"\"\"\"\"\"", "\"\"\"\"\"\"\"", "\"\"\"\"\"\"\"\"", "'''''''", "''''''''",
        "\"\\\\\"", "'\\'", "\"\"\"\\\"\"\"\"", "\"\"\"a\\\n  b\"\"\"", "'''\n#'''", "\"#\""}) {
    CAPTURE(text);
    const std::string good = fmt::format("a = {}", text);
    REQUIRE(parse(good, "f.toml").ok());  // so the parser goes on after it
    CHECK(is_too_deep(good + deep));
  }
}

TEST_CASE("the message has the line, also after texts of several lines") {
  const std::string deep = parts(kDepthMax + 1) + " = 1";
  const auto line_of = [&](const std::string& before) {
    return check_depth(before + deep, "f.toml").error().message().substr(0, 9);
  };
  CHECK(line_of("") == "f.toml:1:");
  CHECK(line_of("# one\r\n\r\n") == "f.toml:3:");
  CHECK(line_of("a = \"\"\"\n\n\"\"\"\n") == "f.toml:4:");
  CHECK(line_of("a = '''\n\n'''\n") == "f.toml:4:");
  CHECK(line_of("a = \"\"\"\\\n\"\"\"\n") == "f.toml:3:");
  CHECK(line_of("a = [\n1,\n2]\n") == "f.toml:4:");
}

// Any document whose values nest at random, with texts that look like what they are not.
class MadeDocument {
 public:
  explicit MadeDocument(unsigned seed) : random_(seed) {}

  std::string text() {
    std::string toml;
    for (int table = 0; table < 3; ++table) {
      toml += fmt::format("[t{}{}]{}\n", table, tail(below(16)), comment());
      for (int line = 0; line < 3; ++line)
        toml += fmt::format("k{}{} = {}{}\n", line, tail(below(10)), value(below(12)), comment());
    }
    return toml;
  }

 private:
  int below(int limit) { return std::uniform_int_distribution<int>(0, limit - 1)(random_); }
  std::string tail(int count) {
    static constexpr std::array kParts = {".a", " . a", ".'a.b'", ".\"[{.\\\"\""};
    std::string parts;
    for (int i = 0; i < count; ++i) parts += kParts[static_cast<std::size_t>(below(4))];
    return parts;
  }
  std::string comment() { return below(2) == 0 ? "" : " # a.b.c = [[{ ''' \"\"\" \""; }
  std::string scalar() {
    static constexpr std::array kScalars = {"1.5",
                                            "'a.b.c = [{'",
                                            "\"\\\"].}.\\\\\"",
                                            "\"\"\"\na.a.[\"\" \\\"\"\"\"",
                                            "'''\n''[.{'''",
                                            "2026-01-01T00:00:00.25Z",
                                            "\"\"",
                                            "''",
                                            "\"\"\"x\"\"\"\"\""};
    return kScalars[static_cast<std::size_t>(below(std::ssize(kScalars)))];
  }
  std::string value(int depth) {
    if (depth == 0) return scalar();
    if (below(2) == 0) return fmt::format("[{},{}\n{}]", scalar(), comment(), value(depth - 1));
    return fmt::format("{{a = {}, k{} = {}}}", scalar(), tail(below(3)), value(depth - 1));
  }

  std::mt19937 random_;
};

int depth_of(const toml::node& node) {
  int inside = 0;
  if (const toml::table* table = node.as_table()) {
    for (const auto& [key, value] : *table) inside = std::max(inside, 1 + depth_of(value));
  } else if (const toml::array* array = node.as_array()) {
    for (const toml::node& element : *array) inside = std::max(inside, 1 + depth_of(element));
  }
  return inside;
}

TEST_CASE("the depth that is refused is that of the tree which the parser would make") {
  int deep = 0;
  int flat = 0;
  for (unsigned seed = 0; seed < 2000; ++seed) {
    const std::string toml = MadeDocument(seed).text();
    CAPTURE(toml);
    const int depth = depth_of(toml::parse(toml));
    CHECK(is_too_deep(toml) == (depth > kDepthMax));
    (depth > kDepthMax ? deep : flat) += 1;
  }
  CHECK(deep > 200);
  CHECK(flat > 200);
}

}  // namespace
}  // namespace sluice::toml_file
