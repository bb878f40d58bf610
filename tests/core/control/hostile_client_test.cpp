// Clients that are broken, slow, many or hostile: the server answers the others, and stays small.

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <list>
#include <thread>

#include "base/split_mix.h"
#include "core/control/socket_address.h"
#include "tests/core/control/served_run.h"
#include "tests/sanitizer.h"
#include "tests/test_all.h"

namespace sluice::control {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kVeryLong{10'000};

const int kFuzzMessages = is_testing_all() ? 1'000'000 : kIsSanitized ? 50'000 : 200'000;
// AddressSanitizer keeps 256 MiB of what was freed, and shadows every page beside.
constexpr std::int64_t kMostResidentKib = (kIsSanitized ? 1024 : 400) * 1024;

Descriptor raw_client(const std::string& path) {
  const auto address = socket_address(path);
  REQUIRE(address.ok());
  Descriptor fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  REQUIRE(connect(fd.get(), reinterpret_cast<const sockaddr*>(&address->address),
                  address->size_bytes) == 0);
  return fd;
}

void send_all(const Descriptor& fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL);
    if (count <= 0) return;  // the server has let us go: that is its right
    text.remove_prefix(static_cast<std::size_t>(count));
  }
}

void is_served(ServedRun& run) {
  const auto answer = run.connect()->ask({.kind = RequestKind::knobs}, kVeryLong);
  REQUIRE(answer.ok());
  REQUIRE(answer->knobs.size() == 1);
}

// Half of them nearly right, the others bytes.
class Fuzz {
 public:
  explicit Fuzz(std::uint64_t seed) : seed_(seed) {}

  std::string line() {
    static const std::vector<std::string> pieces = {
        R"({"id":1,"do":"set","knobs":{"buffers":4}})",
        R"({"id":1,"do":"status"})",
        R"({"id":2,"do":"knobs"})",
        R"({"id":9223372036854775807,"do":"subscribe"})",
        R"({"do":"set","knobs":{"buffers":-1e308,"density":"nan"},"revert_if":"loss>+1e5%"})",
        R"({"id":3,"do":"stop"})",
        R"({"id":18446744073709551616,"do":"set","knobs":{"":""},"watch_steps":1.5})",
        std::string(3000, '['),
        R"({"do":"\ud800","who":"\u0000"})"};
    std::string text = pieces[next() % pieces.size()];
    const std::uint64_t edits = next() % 4;
    for (std::uint64_t i = 0; i < edits && !text.empty(); ++i) edit(text);
    std::erase(text, '\n');
    return text + "\n";
  }

 private:
  std::uint64_t next() { return split_mix(seed_, count_++); }
  void edit(std::string& text) {
    const std::size_t at = next() % text.size();
    switch (next() % 4) {
      case 0:
        text[at] = static_cast<char>(next());
        break;
      case 1:
        text.erase(at, next() % 8);
        break;
      case 2:
        text.insert(at, 1, static_cast<char>(next()));
        break;
      default:
        text.insert(at, text.substr(at, next() % 16));
        break;
    }
  }

  std::uint64_t seed_;
  std::uint64_t count_ = 0;
};

TEST_CASE("a million messages, right, nearly right and wrong, are each answered") {
  ServedRun run;
  std::atomic<bool> is_over{false};
  std::thread schedule([&] {  // the run is live: it takes what is due
    while (!is_over) {
      run.server->take_due();
      run.server->tell(RunStatus());
      std::this_thread::sleep_for(milliseconds(1));
    }
  });
  const Descriptor fd = raw_client(run.path);
  std::int64_t answers = 0;
  std::thread reader([&] {
    std::vector<char> bytes(1 << 16);
    std::string unread;  // may end in the middle of a line
    for (;;) {
      const ssize_t count = recv(fd.get(), bytes.data(), bytes.size(), 0);
      if (count <= 0) return;
      unread.append(bytes.data(), static_cast<std::size_t>(count));
      // The greeting and the events of `subscribe` have no "ok".
      std::size_t begin = 0;
      for (std::size_t end; (end = unread.find('\n', begin)) != std::string::npos; begin = end + 1)
        answers += unread.substr(begin, end - begin).find("\"ok\":") != std::string::npos;
      unread.erase(0, begin);
    }
  });
  Fuzz fuzz(20);
  std::string batch;
  for (int i = 0; i < kFuzzMessages; ++i) {
    batch += fuzz.line();
    if (batch.size() > 32'000) {
      send_all(fd, batch);
      batch.clear();
    }
  }
  send_all(fd, batch);
  is_served(run);
  shutdown(fd.get(), SHUT_WR);
  reader.join();
  is_over = true;
  schedule.join();
  CHECK(answers == kFuzzMessages);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  CHECK(usage.ru_maxrss < kMostResidentKib);
}

TEST_CASE("half a line is waited for, and harms nobody") {
  ServedRun run;
  const Descriptor half = raw_client(run.path);
  send_all(half, R"({"id":1,"do":"kno)");
  is_served(run);
  send_all(half, "bs\"}\n");
  std::string got;
  std::vector<char> bytes(4096);
  while (got.find("\"knobs\"") == std::string::npos) {
    pollfd polled{half.get(), POLLIN, 0};
    REQUIRE(poll(&polled, 1, 5000) == 1);
    const ssize_t count = recv(half.get(), bytes.data(), bytes.size(), 0);
    REQUIRE(count > 0);
    got.append(bytes.data(), static_cast<std::size_t>(count));
  }
}

TEST_CASE("a line without an end is refused, and its client let go") {
  ServedRun run;
  const Descriptor endless = raw_client(run.path);
  send_all(endless, std::string(1 << 20, 'x'));
  std::string got;
  std::vector<char> bytes(4096);
  for (;;) {
    const ssize_t count = recv(endless.get(), bytes.data(), bytes.size(), 0);
    if (count <= 0) break;
    got.append(bytes.data(), static_cast<std::size_t>(count));
  }
  CHECK(got.find("a request has at most 65536 bytes") != std::string::npos);
  is_served(run);
}

TEST_CASE("a request that is too long is refused, whether or not its end has come with it") {
  ServedRun run;
  for (const std::size_t size_bytes : {65'536U, 65'537U, 70'000U, 80'000U, 130'000U}) {
    const Descriptor client = raw_client(run.path);
    std::string request = R"({"id":7,"do":"knobs"})";
    request.insert(1, size_bytes - request.size(), ' ');
    send_all(client, request + "\n");
    std::string got;
    std::vector<char> bytes(1 << 16);
    while (got.find("\"ok\":") == std::string::npos || !got.ends_with('\n')) {
      const ssize_t count = recv(client.get(), bytes.data(), bytes.size(), 0);
      REQUIRE(count > 0);
      got.append(bytes.data(), static_cast<std::size_t>(count));
    }
    INFO(size_bytes << " bytes: " << got);
    const bool is_too_long = size_bytes > 65'536;
    CHECK((got.find("a request has at most 65536 bytes") != std::string::npos) == is_too_long);
  }
}

TEST_CASE("a client that never reads is let go when a megabyte waits for it") {
  ServedRun run;
  const Descriptor deaf = raw_client(run.path);
  send_all(deaf, "{\"do\":\"subscribe\"}\n");
  is_served(run);
  for (int i = 0; i < 40'000; ++i) run.server->tell(RunStatus());
  is_served(run);
  // What the kernel holds may still be read; then it is over.
  std::vector<char> bytes(1 << 16);
  std::int64_t got_bytes = 0;
  for (;;) {
    pollfd polled{deaf.get(), POLLIN, 0};
    REQUIRE(poll(&polled, 1, 5000) == 1);
    const ssize_t count = recv(deaf.get(), bytes.data(), bytes.size(), 0);
    if (count <= 0) break;
    got_bytes += count;
  }
  CHECK(got_bytes < 8 << 20);
}

TEST_CASE("two hundred clients are served; past 256 one is told so") {
  ServedRun run;
  std::vector<std::unique_ptr<ControlClient>> clients;
  for (int i = 0; i < 200; ++i) clients.push_back(run.connect());
  for (const auto& client : clients) {
    REQUIRE(client->ask({.kind = RequestKind::subscribe}, kVeryLong).ok());
  }
  run.server->tell(RunStatus());
  for (const auto& client : clients) CHECK(client->next_event(kVeryLong).value()->status);
  for (int i = 200; i < 256; ++i) clients.push_back(run.connect());
  const auto refused = ControlClient::connect(run.path, kVeryLong);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().message().find("256 clients are connected already") != std::string::npos);
  clients.resize(100);
  for (int i = 0; i < 1000; ++i) {  // until the server has seen them go
    if (ControlClient::connect(run.path, kVeryLong).ok()) break;
    std::this_thread::sleep_for(milliseconds(5));
  }
  is_served(run);
}

// Whether a client is told so. Forked, for descriptors of its own.
bool is_told_of_open_files(const std::string& path) {
  const Descriptor none(open("/dev/null", O_RDONLY | O_CLOEXEC));
  std::vector<Descriptor> all;
  for (int fd = dup(none.get()); fd >= 0; fd = dup(none.get())) all.emplace_back(fd);
  const pid_t child = fork();
  if (child == 0) {
    all.clear();
    const auto client = ControlClient::connect(path, kVeryLong);
    const std::string text = client.ok() ? "" : client.error().message();
    _exit(text.find("as many files open as it may") != std::string::npos ? 0 : 1);
  }
  int status = 1;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST_CASE("where no more files may be opened a client is told so, and others are served again") {
  ServedRun run;
  const auto before = run.connect();
  rlimit limit{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &limit) == 0);
  rlimit small = limit;
  small.rlim_cur = 64;
  REQUIRE(setrlimit(RLIMIT_NOFILE, &small) == 0);
  for (int i = 0; i < 3; ++i) CHECK(is_told_of_open_files(run.path));
  REQUIRE(setrlimit(RLIMIT_NOFILE, &limit) == 0);
  CHECK(before->ask({.kind = RequestKind::knobs}, kVeryLong).ok());
  is_served(run);
}

TEST_CASE("a client that is killed in the middle harms nobody") {
  ServedRun run;
  for (int i = 0; i < 200; ++i) {
    const Descriptor killed = raw_client(run.path);
    send_all(killed, "{\"do\":\"subscribe\"}\n{\"do\":\"knobs\"}\n{\"do\":\"se");
    run.server->tell(RunStatus());
  }
  is_served(run);
}

TEST_CASE("sets during shutdown are answered or the line is closed") {
  for (int i = 0; i < 20; ++i) {
    ServedRun run;
    auto client = run.connect();
    std::thread closing([&] { run.server->close("done"); });
    Request request;
    request.kind = RequestKind::set;
    request.set.settings = {"buffers=4"};
    for (;;) {
      const auto answer = client->ask(request, kVeryLong);
      if (!answer.ok()) {
        CHECK(answer.error().code() != ErrorCode::busy);
        break;
      }
    }
    closing.join();
  }
}

}  // namespace
}  // namespace sluice::control
