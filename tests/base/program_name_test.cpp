#include "base/program_name.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace sluice {
namespace {

namespace fs = std::filesystem;

// Folders `here` and `there`, each with an executable `sluice`; in `none` is none.
struct Programs {
  Programs() {
    std::string pattern = (fs::temp_directory_path() / "sluice-name-XXXXXX").string();
    folder = ::mkdtemp(pattern.data());
    for (const char* place : {"here", "there", "none", "of others"}) {
      fs::create_directory(folder + "/" + place);
      if (place == std::string("none")) continue;
      std::ofstream(in(place)) << "#!/bin/sh\n";
      fs::permissions(in(place), fs::perms::owner_all);
    }
  }
  ~Programs() { fs::remove_all(folder); }
  std::string in(const std::string& place) const { return folder + "/" + place + "/sluice"; }
  std::string path(const std::string& first, const std::string& second) const {
    return folder + "/" + first + ":" + folder + "/" + second;
  }

  std::string folder;
};

TEST_CASE("a program is called by its name where that leads to it, else as it was called") {
  const Programs programs;
  const std::string here = programs.in("here");
  CHECK(pasted_program("sluice", "") == "sluice");  // a shell has found it
  CHECK(pasted_program(here, "") == here);
  CHECK(pasted_program(here, programs.path("none", "here")) == "sluice");
  CHECK(pasted_program(here, programs.path("there", "here")) == here);  // another comes first
  CHECK(pasted_program(programs.folder + "/none/../here/sluice", programs.path("here", "none")) ==
        "sluice");
  CHECK(pasted_program("build/release/bin/sluice", programs.path("none", "none")) ==
        "build/release/bin/sluice");
  CHECK(pasted_program(programs.in("of others"), "") == "'" + programs.in("of others") + "'");
}

TEST_CASE("several ranks are started by mpirun, one by itself") {
  CHECK(launcher_of_ranks(1).empty());
  CHECK(launcher_of_ranks(4) ==
        std::vector<std::string>{"mpirun", "-n", "4", "--mca", "mpi_yield_when_idle", "1"});
}

}  // namespace
}  // namespace sluice
