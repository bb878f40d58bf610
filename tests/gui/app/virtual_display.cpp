#include "tests/gui/app/virtual_display.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <utility>

namespace sluice::gui {
namespace {

constexpr int kStartMs = 20'000;

// In a child before it becomes another program: it ends with this one, however this one ends, also
// when that was before it could ask for it.
void begin_child(pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);
  const int nowhere = ::open("/dev/null", O_RDWR);
  ::dup2(nowhere, STDIN_FILENO);
  ::dup2(nowhere, STDOUT_FILENO);
  ::dup2(nowhere, STDERR_FILENO);
}

int exit_code_of(int process) {
  int status = 0;
  if (process <= 0 || ::waitpid(process, &status, 0) != process) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

std::unique_ptr<VirtualDisplay> VirtualDisplay::start(std::string& why, bool has_opengl,
                                                      const std::string& screen) {
  if (!has_program("Xvfb")) {
    why = "there is no Xvfb (Debian: xvfb; scripts/setup installs it)";
    return nullptr;
  }
  int number_pipe[2];
  if (::pipe(number_pipe) != 0) return nullptr;
  const pid_t parent = ::getpid();
  const int process = ::fork();
  if (process == 0) {
    ::close(number_pipe[0]);
    begin_child(parent);
    const std::string fd = std::to_string(number_pipe[1]);
    const std::string size = screen + "x24";
    ::execlp("Xvfb", "Xvfb", "-displayfd", fd.c_str(), "-screen", "0", size.c_str(), "-nolisten",
             "tcp", "-noreset", has_opengl ? "+extension" : "-extension", "GLX",
             static_cast<char*>(nullptr));
    ::_exit(127);
  }
  ::close(number_pipe[1]);
  // It writes its number when it takes connections.
  std::string number;
  pollfd waiting{.fd = number_pipe[0], .events = POLLIN, .revents = 0};
  char c = 0;
  while (::poll(&waiting, 1, kStartMs) == 1 && ::read(number_pipe[0], &c, 1) == 1 && c != '\n')
    number += c;
  ::close(number_pipe[0]);
  std::unique_ptr<VirtualDisplay> display(new VirtualDisplay(process));
  if (number.empty()) {
    why = "Xvfb did not start";
    return nullptr;
  }
  if (const char* before = std::getenv("DISPLAY")) display->display_before_ = before;
  ::setenv("DISPLAY", (":" + number).c_str(), 1);
  ::unsetenv("WAYLAND_DISPLAY");
  return display;
}

VirtualDisplay::~VirtualDisplay() {
  if (display_before_.empty()) {
    ::unsetenv("DISPLAY");
  } else {
    ::setenv("DISPLAY", display_before_.c_str(), 1);
  }
  ::kill(process_, SIGTERM);
  exit_code_of(process_);
}

ChildProcess::ChildProcess(const std::string& command) {
  const pid_t parent = ::getpid();
  process_ = ::fork();
  if (process_ != 0) return;
  begin_child(parent);
  ::execl("/bin/sh", "sh", "-c", ("exec " + command).c_str(), static_cast<char*>(nullptr));
  ::_exit(127);
}

ChildProcess::~ChildProcess() {
  if (process_ <= 0) return;
  ::kill(process_, SIGKILL);
  exit_code_of(process_);
}

int ChildProcess::wait() { return exit_code_of(std::exchange(process_, -1)); }

bool has_program(const std::string& name) {
  return ChildProcess("sh -c 'command -v " + name + "'").wait() == 0;
}

std::string program_folder() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path().string();
}

}  // namespace sluice::gui
