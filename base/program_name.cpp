#include "base/program_name.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/shell_quoted.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

// The first program of this name, as a shell looks for it; empty: there is none.
std::string found_in(const std::string& search_path, const std::string& name) {
  for (std::size_t begin = 0; begin <= search_path.size();) {
    const std::size_t end = std::min(search_path.find(':', begin), search_path.size());
    const fs::path program = fs::path(search_path.substr(begin, end - begin)) / name;
    std::error_code error;
    if (fs::is_regular_file(program, error) && ::access(program.c_str(), X_OK) == 0)
      return program.string();
    begin = end + 1;
  }
  return "";
}

}  // namespace

std::string pasted_program(const std::string& called_as, const std::string& search_path) {
  const std::size_t slash = called_as.rfind('/');
  if (slash == std::string::npos) return shell_quoted(called_as);
  const std::string name = called_as.substr(slash + 1);
  const std::string found = found_in(search_path, name);
  std::error_code error;
  const bool is_same = !found.empty() && fs::equivalent(found, called_as, error);
  return shell_quoted(is_same ? name : called_as);
}

std::vector<std::string> launcher_of_ranks(int rank_count) {
  if (rank_count == 1) return {};
  return {"mpirun", "-n", std::to_string(rank_count), "--mca", "mpi_yield_when_idle", "1"};
}

std::string path_of_library(const std::string& name) {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  return (program.parent_path().parent_path() / "lib" / name).string();
}

}  // namespace sluice
