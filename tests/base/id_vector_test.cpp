#include "base/id_vector.h"

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <memory>

#include "base/ids.h"

namespace sluice {
namespace {

// The signal that ended a child which did this.
template <typename Body>
int signal_of(const Body& body) {
  const pid_t child = fork();
  if (child == 0) {
    std::freopen("/dev/null", "w", stderr);
    std::signal(SIGABRT, SIG_DFL);  // Catch2 would report it as a failure
    body();
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

TEST_CASE("a list is read and written by its own ids") {
  IdVector<SubgroupId, std::int64_t> counts(3, 7);
  counts[SubgroupId{1}] = 8;
  REQUIRE(counts.count() == 3);
  REQUIRE(counts.values() == std::vector<std::int64_t>{7, 8, 7});
  static_assert(!std::is_invocable_v<decltype([](auto& list, auto id) -> decltype(list[id]) {
                                       return list[id];
                                     }),
                                     IdVector<SubgroupId, int>&, DeviceId>);
}

TEST_CASE("ids of a list come in its order") {
  IdVector<DeviceId, std::unique_ptr<int>> owners;
  REQUIRE(owners.next_id() == DeviceId{0});
  for (int value = 0; value < 3; ++value) owners.push_back(std::make_unique<int>(value));
  int expected = 0;
  for (const DeviceId device : ids_of(owners)) REQUIRE(*owners[device] == expected++);
  REQUIRE(expected == 3);
}

TEST_CASE("an id outside the list aborts") {
  IdVector<LayerId, int> list(2);
  REQUIRE(signal_of([&] { list[LayerId{1}] = 5; }) == 0);
  REQUIRE(signal_of([&] { list[LayerId{2}] = 5; }) == SIGABRT);
  REQUIRE(signal_of([&] { list[kNoLayer] = 5; }) == SIGABRT);
}

}  // namespace
}  // namespace sluice
