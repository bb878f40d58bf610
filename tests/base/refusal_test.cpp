#include "base/refusal.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <csignal>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace sluice {
namespace {

void refuse() { throw std::bad_alloc(); }

struct Ended {
  int status = 0;
  std::string said;  // on stderr
};

// A child that says its uncaught refusals and does this.
template <typename Body>
Ended ended(const Body& body) {
  std::array<int, 2> ends{};
  REQUIRE(pipe(ends.data()) == 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    std::signal(SIGABRT, SIG_DFL);  // Catch2 would report it as a failure
    say_uncaught_refusals("speaker: ");
    body();
    _exit(0);
  }
  close(ends[1]);
  Ended found;
  std::array<char, 4096> piece{};
  for (ssize_t size = 0; (size = read(ends[0], piece.data(), piece.size())) > 0;) {
    found.said.append(piece.data(), static_cast<std::size_t>(size));
  }
  close(ends[0]);
  REQUIRE(waitpid(child, &found.status, 0) == child);
  return found;
}

TEST_CASE("refused memory comes out of the border as a sentence with what counted") {
  const Status refused = at_refusal_border([]() -> Status { throw std::bad_alloc(); });
  REQUIRE(!refused.ok());
  CHECK(refused.error().code() == ErrorCode::internal);  // exit code 1: the run failed
  CHECK_THAT(refused.error().message(), Catch::StartsWith("memory was refused: this process may"));
  CHECK_THAT(refused.error().message(), Catch::Contains(" ("));

  const Result<int> too_long = at_refusal_border([]() -> Result<int> {
    std::vector<int> values;
    values.reserve(values.max_size() + 1);
    return 1;
  });
  REQUIRE(!too_long.ok());
  CHECK_THAT(too_long.error().message(), Catch::StartsWith("memory was refused"));
}

TEST_CASE("a refused thread comes out of the border, other exceptions as they are") {
  const auto throwing = [](std::errc code) {
    return at_refusal_border(
        [code]() -> Status { throw std::system_error(make_error_code(code)); });
  };
  const Status refused = throwing(std::errc::resource_unavailable_try_again);
  REQUIRE(!refused.ok());
  CHECK_THAT(refused.error().message(), Catch::StartsWith("a thread was refused: "));
  CHECK_THROWS_AS(throwing(std::errc::permission_denied), std::system_error);
  CHECK_THROWS_AS(at_refusal_border([]() -> Status { throw std::runtime_error("other"); }),
                  std::runtime_error);
  CHECK(at_refusal_border([]() -> Result<int> { return 7; }).value() == 7);
}

TEST_CASE("a refusal in a thread ends the program with a sentence, and not by abort") {
  const Ended found = ended([] { std::thread(refuse).join(); });
  CHECK(WIFEXITED(found.status));
  CHECK(WEXITSTATUS(found.status) == 1);
  CHECK_THAT(found.said, Catch::StartsWith("speaker: memory was refused: this process may have"));
}

TEST_CASE("a refusal that no function may let out ends alike") {
  const Ended found = ended([]() noexcept { refuse(); });
  CHECK(WEXITSTATUS(found.status) == 1);
  CHECK_THAT(found.said, Catch::StartsWith("speaker: memory was refused"));
}

TEST_CASE("another exception that nobody catches ends as it always did") {
  const Ended found = ended([] { std::thread([] { throw std::runtime_error("other"); }).join(); });
  CHECK(WIFSIGNALED(found.status));
  CHECK(WTERMSIG(found.status) == SIGABRT);
  CHECK(found.said.find("speaker: ") == std::string::npos);
}

}  // namespace
}  // namespace sluice
