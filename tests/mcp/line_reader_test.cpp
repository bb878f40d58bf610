#include "mcp/line_reader.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>

#include "tests/test_folder.h"

namespace sluice::mcp {
namespace {

TEST_CASE("a line above the bound is thrown away, and the next one is read") {
  const TestFolder folder;
  const std::string path = folder.file("lines");
  std::ofstream(path) << "first\n" << std::string(300'000, 'x') << "\nnext\n\nlast";
  std::FILE* const file = std::fopen(path.c_str(), "r");
  REQUIRE(file != nullptr);
  LineReader lines(fileno(file), 1000);
  using Kind = Line::Kind;
  for (const auto& [kind, text] : std::vector<std::pair<Kind, std::string>>{{Kind::whole, "first"},
                                                                            {Kind::too_long, ""},
                                                                            {Kind::whole, "next"},
                                                                            {Kind::whole, ""},
                                                                            {Kind::whole, "last"},
                                                                            {Kind::end, ""}}) {
    const Result<Line> line = lines.next();
    REQUIRE(line.ok());
    CHECK(line->kind == kind);
    CHECK(line->text == text);
  }
  std::fclose(file);
}

}  // namespace
}  // namespace sluice::mcp
