// Databases of which bytes are wrong or missing: each command that reads one answers or refuses,
// and leaves it as it was.

#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>

#include "base/split_mix.h"
#include "cli/exit_code.h"
#include "tests/cli/command_line_fixture.h"
#include "tests/sanitizer.h"
#include "tests/test_folder.h"

using namespace sluice;
using namespace sluice::cli;

namespace {

constexpr std::uint64_t kDamages = kIsSanitized ? 12 : 40;

std::string bytes_of(const std::string& path) {
  std::ostringstream bytes;
  bytes << std::ifstream(path, std::ios::binary).rdbuf();
  return bytes.str();
}

// Some bytes changed, or the end cut off.
std::string damaged(std::string bytes, std::uint64_t seed) {
  std::uint64_t count = 0;
  const auto below = [&](std::size_t limit) { return split_mix(seed, count++) % limit; };
  if (below(4) == 0) return bytes.substr(0, below(bytes.size()));
  for (std::size_t i = 0, changes = 1 + below(30); i < changes; ++i)
    bytes[below(bytes.size())] = static_cast<char>(below(256));
  return bytes;
}

}  // namespace

TEST_CASE("a damaged database is read or refused by every command that takes one") {
  const TestFolder folder;
  const std::string whole = folder.file("whole.db");
  REQUIRE(run(simulated_into(whole)) == kDone);
  const std::string bytes = bytes_of(whole);
  const std::string path = folder.file("damaged.db");
  for (std::uint64_t seed = 0; seed < kDamages; ++seed) {
    INFO("damage " << seed);
    const std::string found = damaged(bytes, seed);
    std::ofstream(path, std::ios::binary) << found;
    for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
             {"show", path, "--json"},
             {"compare", whole, path},
             {"replay", path, "--drives", "3"},
             {"report", path, "-o", folder.file("page.html"), "--force"},
             {"export", path, "--format", "chrome", "-o", folder.file("trace"), "--force"},
             {"simulate", "--like", path, "--fit"}}) {
      const int code = run(words);
      INFO(words.front() << " ended with " << code);
      CHECK((code == kDone || code == kFailed || code == kUsage));
    }
    CHECK(bytes_of(path) == found);
  }
}
