#include "gui/data/child_process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>

#include "base/program_name.h"
#include "base/safe_file.h"

namespace sluice::gui {
namespace {

class Pipe {
 public:
  Pipe() {
    if (::pipe2(ends_.data(), O_CLOEXEC) != 0) ends_ = {-1, -1};
  }
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  bool is_open() const { return ends_[0] >= 0; }
  int read_end() const { return ends_[0]; }
  int write_end() const { return ends_[1]; }
  void close_end(std::size_t end) {
    if (ends_[end] >= 0) ::close(ends_[end]);
    ends_[end] = -1;
  }

 private:
  std::array<int, 2> ends_{-1, -1};
};

// The pointers that execv wants; made before the fork, behind which nothing may be allocated.
std::vector<char*> pointers(const std::vector<std::string>& arguments) {
  std::vector<char*> all;
  for (const std::string& argument : arguments) all.push_back(const_cast<char*>(argument.c_str()));
  all.push_back(nullptr);
  return all;
}

// In the child: only calls that are safe between fork and exec.
[[noreturn]] void become(char* const* arguments, int out, int err, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(126);  // it was gone before that took hold
  ::setpriority(PRIO_PROCESS, 0, kNiceness);
  const int nothing = ::open("/dev/null", O_RDONLY);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(err, STDERR_FILENO);
  ::execv(arguments[0], arguments);
  ::_exit(127);
}

int exit_code_of(pid_t process) {
  int status = 0;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// False: the end.
bool read_some(int descriptor, std::string& into) {
  std::array<char, 16 << 10> bytes;
  const ssize_t count = ::read(descriptor, bytes.data(), bytes.size());
  if (count < 0 && errno == EINTR) return true;
  if (count <= 0) return false;
  into.append(bytes.data(), static_cast<std::size_t>(count));
  return true;
}

Status collect(int out, int err, int stop_descriptor, ChildOutput& output) {
  std::array<pollfd, 3> polled = {
      {{out, POLLIN, 0}, {err, POLLIN, 0}, {stop_descriptor, POLLIN, 0}}};
  while (polled[0].fd >= 0 || polled[1].fd >= 0) {
    if (::poll(polled.data(), polled.size(), -1) < 0 && errno != EINTR)
      return make_error(ErrorCode::io, "poll: {}", ::strerror(errno));
    if ((polled[2].revents & POLLIN) != 0)
      return make_error(ErrorCode::cancelled, "it is no longer wanted");
    if (polled[0].revents != 0 && !read_some(out, output.out)) polled[0].fd = -1;
    if (polled[1].revents != 0 && !read_some(err, output.err)) polled[1].fd = -1;
    if (output.out.size() + output.err.size() > kChildOutputMax)
      return make_error(ErrorCode::internal, "it wrote more than {} bytes", kChildOutputMax);
  }
  return ok_status();
}

bool is_program(const std::filesystem::path& path) {
  return ::access(path.c_str(), X_OK) == 0 && std::filesystem::is_regular_file(path);
}

}  // namespace

Result<ChildOutput> run_child(const std::vector<std::string>& arguments, int stop_descriptor) {
  Pipe out;
  Pipe err;
  if (!out.is_open() || !err.is_open())
    return make_error(ErrorCode::io, "pipe: {}", ::strerror(errno));
  const std::vector<char*> words = pointers(arguments);
  const pid_t parent = ::getpid();
  const pid_t process = ::fork();
  if (process < 0) return make_error(ErrorCode::io, "fork: {}", ::strerror(errno));
  if (process == 0) become(words.data(), out.write_end(), err.write_end(), parent);
  out.close_end(1);
  err.close_end(1);
  ChildOutput output;
  const Status status = collect(out.read_end(), err.read_end(), stop_descriptor, output);
  if (!status.ok()) ::kill(process, SIGKILL);
  output.exit_code = exit_code_of(process);
  if (!status.ok()) return status.error().with_context(arguments.front());
  return output;
}

std::string why_failed(const std::string& program, const ChildOutput& output) {
  const std::string& text = output.err;
  const std::size_t end = text.find_last_not_of(" \n\r");
  if (end == std::string::npos)
    return fmt::format("{} ended with {} and no message", program, output.exit_code);
  const std::size_t before = text.find_last_of("\n\r", end);
  const std::size_t begin = before == std::string::npos ? 0 : before + 1;
  return text.substr(begin, end - begin + 1);
}

std::string find_sluice() {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path own = fs::read_symlink("/proc/self/exe", error);
  if (!error && is_program(own.parent_path() / "sluice")) return own.parent_path() / "sluice";
  return find_program("sluice");
}

std::string pasted_sluice() {
  const std::string program = find_sluice();
  const char* path = std::getenv("PATH");
  return program.empty() ? "sluice" : pasted_program(program, path == nullptr ? "" : path);
}

std::string find_program(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::string folders = path == nullptr ? "" : path;
  while (!folders.empty()) {
    const std::size_t end = std::min(folders.find(':'), folders.size());
    const std::filesystem::path program = std::filesystem::path(folders.substr(0, end)) / name;
    if (is_program(program)) return program;
    folders.erase(0, end + 1);
  }
  return {};
}

// Twice forked, so that it is nobody's child and nothing of the window's is left to it.
Result<long> start_detached(const std::vector<std::string>& arguments, const std::string& log) {
  Pipe id_pipe;
  if (!id_pipe.is_open()) return make_error(ErrorCode::io, "pipe: {}", ::strerror(errno));
  const auto failed = [&](int error_number) {
    return make_error(ErrorCode::io, "{}: {}", log, ::strerror(error_number));
  };
  ASSIGN_OR_RETURN(const int file,
                   open_regular_file(log, O_WRONLY | O_CREAT, FileTrust::own, failed));
  if (::ftruncate(file, 0) != 0) {
    const int error_number = errno;
    ::close(file);
    return failed(error_number);
  }
  const std::vector<char*> words = pointers(arguments);
  const pid_t first = ::fork();
  if (first == 0) {
    ::setsid();
    const pid_t second = ::fork();
    if (second != 0) {
      const long id = second;
      const ssize_t written = ::write(id_pipe.write_end(), &id, sizeof id);
      ::_exit(written == sizeof id ? 0 : 1);
    }
    const int nothing = ::open("/dev/null", O_RDONLY);
    ::dup2(nothing, STDIN_FILENO);
    ::dup2(file, STDOUT_FILENO);
    ::dup2(file, STDERR_FILENO);
    ::execv(words[0], words.data());
    ::_exit(127);
  }
  ::close(file);
  if (first < 0) return make_error(ErrorCode::io, "fork: {}", ::strerror(errno));
  exit_code_of(first);
  long id = -1;
  const ssize_t count = ::read(id_pipe.read_end(), &id, sizeof id);
  if (count != sizeof id || id < 0)
    return make_error(ErrorCode::io, "{}: no process could be started", arguments.front());
  return id;
}

}  // namespace sluice::gui
