#include "cli/program.h"

#include <cstdlib>

#include "base/program_name.h"

namespace sluice::cli {
namespace {

std::string program_name = "sluice";

}  // namespace

void keep_program_name(const char* called_as) {
  const char* path = std::getenv("PATH");
  if (called_as != nullptr && *called_as != '\0')
    program_name = pasted_program(called_as, path == nullptr ? "" : path);
}

const std::string& program() { return program_name; }

std::string program_of_ranks(int rank_count) {
  std::string text;
  for (const std::string& word : launcher_of_ranks(rank_count)) text += word + " ";
  return text + program();
}

}  // namespace sluice::cli
