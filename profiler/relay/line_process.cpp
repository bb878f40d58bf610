#include "profiler/relay/line_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace sluice::relay {
namespace {

constexpr std::size_t kWordsKept = 4096;
constexpr int kGracePolls = 20;
constexpr std::chrono::milliseconds kGracePause{100};

struct Ends {
  int read = -1;
  int write = -1;
};
Result<Ends> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    return make_error(ErrorCode::io, "cannot make a pipe: {}", std::strerror(errno));
  return Ends{ends[0], ends[1]};
}

// To the process: a socket, since a pipe whose reader has gone ends the writer by SIGPIPE, which is
// the program's own to settle.
Result<Ends> make_socket() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return make_error(ErrorCode::io, "cannot make a pair of sockets: {}", std::strerror(errno));
  return Ends{ends[0], ends[1]};
}

void close_all(std::initializer_list<int> descriptors) {
  for (const int descriptor : descriptors)
    if (descriptor >= 0) ::close(descriptor);
}

// In the child: only calls that are safe between fork and exec.
[[noreturn]] void become(char* const* words, int in, int out, int errors, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(126);  // it was gone before that took hold
  ::signal(SIGPIPE, SIG_DFL);
  ::dup2(in, STDIN_FILENO);
  ::dup2(out, STDOUT_FILENO);
  if (errors >= 0) ::dup2(errors, STDERR_FILENO);
  ::execvp(words[0], words);
  ::_exit(errno == ENOENT ? 127 : 126);
}

// The process ends by itself once its pipes are closed; what does not is told to.
int wait_for(pid_t process) {
  int status = 0;
  for (int poll = 0; poll < kGracePolls; ++poll) {
    const pid_t ended = ::waitpid(process, &status, WNOHANG);
    if (ended != 0) return ended < 0 ? -1 : status;
    ::poll(nullptr, 0, static_cast<int>(kGracePause.count()));
    if (poll == kGracePolls / 2) ::kill(process, SIGTERM);
  }
  ::kill(process, SIGKILL);
  while (::waitpid(process, &status, 0) < 0) {
    if (errno != EINTR) return -1;
  }
  return status;
}

}  // namespace

Result<LineProcess> LineProcess::start(const std::vector<std::string>& command,
                                       ErrorOutput errors) {
  ASSIGN_OR_RETURN(const Ends in, make_socket());
  Result<Ends> out = make_pipe();
  Result<Ends> said = Ends{};
  if (out.ok() && errors == ErrorOutput::kept) said = make_pipe();
  if (!out.ok() || !said.ok()) {
    close_all({in.read, in.write});
    if (out.ok()) close_all({out->read, out->write});
    return out.ok() ? said.error() : out.error();
  }
  std::vector<char*> words;  // made before the fork, behind which nothing may be allocated
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  const pid_t parent = ::getpid();
  const pid_t process = ::fork();
  const int error = errno;
  if (process == 0) become(words.data(), in.read, out->write, said->write, parent);
  close_all({in.read, out->write, said->write});
  LineProcess line(process, in.write, out->read, said->read);
  if (process < 0)
    return make_error(ErrorCode::io, "cannot start a process: {}", std::strerror(error));
  return line;
}

LineProcess::LineProcess(pid_t process, int to, int from, int errors)
    : process_(process), to_(to), from_(from), errors_(errors) {}

LineProcess::LineProcess(LineProcess&& other) noexcept
    : process_(std::exchange(other.process_, -1)),
      to_(std::exchange(other.to_, -1)),
      from_(std::exchange(other.from_, -1)),
      errors_(std::exchange(other.errors_, -1)),
      words_(std::move(other.words_)) {}

LineProcess::~LineProcess() { (void)finish(); }

bool LineProcess::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::send(to_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count < 0 && errno != EINTR) return false;
    if (count > 0) bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

LineProcess::Heard LineProcess::hear(std::chrono::milliseconds within, std::string& into) {
  std::array<pollfd, 2> polled = {{{from_, POLLIN, 0}, {errors_, POLLIN, 0}}};
  if (::poll(polled.data(), polled.size(), static_cast<int>(within.count())) <= 0)
    return Heard::nothing;
  if (polled[1].revents != 0) take_errors();
  if (polled[0].revents == 0) return Heard::nothing;
  std::array<char, 64 << 10> bytes;
  const ssize_t count = ::read(from_, bytes.data(), bytes.size());
  if (count < 0 && errno == EINTR) return Heard::nothing;
  if (count <= 0) return Heard::end;
  into.append(bytes.data(), static_cast<std::size_t>(count));
  return Heard::bytes;
}

void LineProcess::take_errors() {
  std::array<char, 1024> bytes;
  const ssize_t count = ::read(errors_, bytes.data(), bytes.size());
  if (count < 0 && errno == EINTR) return;
  if (count <= 0) {
    close_all({std::exchange(errors_, -1)});
    return;
  }
  words_.append(bytes.data(), static_cast<std::size_t>(count));
  if (words_.size() > kWordsKept) words_.erase(0, words_.size() - kWordsKept);
}

int LineProcess::finish() {
  if (errors_ >= 0 && ::fcntl(errors_, F_SETFL, O_NONBLOCK) == 0) take_errors();
  close_all({std::exchange(to_, -1), std::exchange(from_, -1), std::exchange(errors_, -1)});
  if (process_ < 0) return -1;
  const int status = wait_for(std::exchange(process_, -1));
  if (status < 0) return -1;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

std::string LineProcess::last_words() const {
  const std::size_t end = words_.find_last_not_of(" \r\n");
  if (end == std::string::npos) return "";
  const std::size_t before = words_.find_last_of("\r\n", end);
  const std::size_t begin = before == std::string::npos ? 0 : before + 1;
  return words_.substr(begin, end - begin + 1);
}

}  // namespace sluice::relay
