// What the simulation promises of a dataflow region: bounded FIFOs, and a region that stands still
// is found and names them.

#include "hls/sim/processes.h"

#include <catch2/catch.hpp>
#include <numeric>

#include "hls/kernels/dataflow.h"

using namespace sluice::hls_sim;

namespace {

// A path of its own for each half: the join wants one of each, and the fork sends `lead` of the
// first before any of the second.
template <int DEPTH>
int sum_of_forked(int count, int lead) {
  int sum = 0;
  HLS_BEGIN();
  hls::stream<int, DEPTH> early("early");
  hls::stream<int, 2> late("late");
  const auto fork = [&] {
    for (int i = 0; i < count + lead; ++i) {
      if (i < count) early.write(i);
      if (i >= lead) late.write(i - lead);
    }
  };
  const auto join = [&] {
    for (int i = 0; i < count; ++i) {
      const int second = late.read();
      sum += early.read() * second;
    }
  };
  HLS_PROCESS(fork());
  HLS_PROCESS(join());
  HLS_END();
  return sum;
}

int sum_of_squares(int count) { return (count - 1) * count * (2 * count - 1) / 6; }

}  // namespace

TEST_CASE("a region gives the same in sequence and as threads") {
  CHECK(sum_of_forked<8>(500, 5) == sum_of_squares(500));
  const ThreadsScope threads;
  CHECK(sum_of_forked<8>(500, 5) == sum_of_squares(500));
}

TEST_CASE("a FIFO that is too shallow for its region is named, with its depth and who waits") {
  const ThreadsScope threads;
  std::string message;
  try {
    sum_of_forked<4>(500, 6);
  } catch (const StuckFifo& stuck) {
    message = stuck.what();
  }
  CAPTURE(message);
  CHECK(message.find("FIFO 'early' is full at its depth of 4, and fork waits to write") !=
        std::string::npos);
  CHECK(message.find("FIFO 'late' is empty, and join waits to read") != std::string::npos);
}

TEST_CASE("the depth that just suffices does, and one less does not") {
  const ThreadsScope threads;
  CHECK(sum_of_forked<7>(200, 6) == sum_of_squares(200));
  CHECK_THROWS_AS(sum_of_forked<5>(200, 6), StuckFifo);
}

TEST_CASE("reading what nobody writes is an error in sequence, too") {
  const auto read_nothing = [] {
    HLS_BEGIN();
    hls::stream<int, 2> nothing("nothing");
    HLS_PROCESS(nothing.read());
    HLS_END();
  };
  CHECK_THROWS_WITH(read_nothing(), Catch::Contains("'nothing'"));
  const ThreadsScope threads;
  CHECK_THROWS_WITH(read_nothing(), Catch::Contains("'nothing'"));
}

TEST_CASE("what a process throws comes out of the region") {
  const auto throwing = [] {
    HLS_BEGIN();
    HLS_PROCESS(throw std::runtime_error("a port has no memory"));
    HLS_END();
  };
  CHECK_THROWS_WITH(throwing(), "a port has no memory");
  const ThreadsScope threads;
  CHECK_THROWS_WITH(throwing(), "a port has no memory");
}
