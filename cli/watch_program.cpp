#include "cli/watch_program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace sluice::cli {
namespace {

// The variables in place of those of their names.
std::vector<std::string> environment_with(const Variables& variables) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const bool is_replaced = std::ranges::any_of(
        variables, [text](const auto& variable) { return text.starts_with(variable.first + "="); });
    if (!is_replaced) all.emplace_back(text);
  }
  for (const auto& [name, value] : variables) all.push_back(name + "=" + value);
  return all;
}

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

std::string run_by_shell(const std::string& command, const Variables& variables) {
  std::vector<std::string> words = {"/bin/sh", "-c", command};
  std::vector<std::string> environment = environment_with(variables);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  pid_t child = 0;
  const int failed = posix_spawn(&child, "/bin/sh", &files, nullptr, pointers_to(words).data(),
                                 pointers_to(environment).data());
  posix_spawn_file_actions_destroy(&files);
  if (failed != 0) return fmt::format("cannot be started: {}", std::strerror(failed));
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return fmt::format("is lost: {}", std::strerror(errno));
  }
  if (WIFSIGNALED(status)) return fmt::format("was ended by signal {}", WTERMSIG(status));
  if (WEXITSTATUS(status) == 0) return "";
  return fmt::format("ended with exit code {}", WEXITSTATUS(status));
}

}  // namespace sluice::cli
