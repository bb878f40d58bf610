// The three clocks against what every clock promises.

#include "core/runtime/clocks.h"
#include "tests/core/runtime/clock_conformance.h"

using namespace sluice;
using namespace sluice::runtime;
using namespace sluice::stages;

namespace {

std::unique_ptr<WorkExecutor> executor(io::IoEngineKind kind) {
  io::IoEngineOptions options;
  options.kind = kind;
  auto engine = io::open_io_engine(options);
  REQUIRE(engine.ok());
  auto made = WorkExecutor::make(std::move(*engine), {});
  REQUIRE(made.ok());
  return std::move(*made);
}

}  // namespace

TEST_CASE("the real clock keeps what every clock promises") {
  const auto kind = GENERATE(io::IoEngineKind::io_uring, io::IoEngineKind::posix);
  const auto make = [kind](const platform::Platform&) {
    return std::make_unique<RealClock>(executor(kind));
  };
  check_conformance(clock_cases(), ClockMaker{.does_work = true, .make = make});
}

TEST_CASE("the emulated clock keeps what every clock promises, slowed and sped up") {
  const double time_scale = GENERATE(0.01, 1.0, 3.0);
  const auto make = [time_scale](const platform::Platform& platform) {
    return std::make_unique<EmulatedClock>(executor(io::IoEngineKind::posix), platform, time_scale);
  };
  check_conformance(clock_cases(), ClockMaker{.does_work = true, .make = make});
}

TEST_CASE("an emulated engine's kernels come back in the order asked, however late one's work is") {
  const auto make = [](const platform::Platform& platform) {
    return std::make_unique<EmulatedClock>(executor(io::IoEngineKind::posix), platform, 1.0);
  };
  std::atomic<bool> is_open = false;
  conformance::Driver driver({.does_work = true, .make = make});
  const conformance::OpensAtEnd gate{&is_open};
  Operation held = conformance::charged_kernel(driver.platform(), 10);
  conformance::set_function(
      held,
      [&is_open] {
        is_open.wait(false);
        return ok_status();
      },
      Workers::compute);
  Operation quick = conformance::charged_kernel(driver.platform(), 10);
  conformance::set_function(quick, [] { return ok_status(); }, Workers::host);
  OperationState* first = driver.start(held);
  OperationState* second = driver.start(quick);
  // The work of the second is long done; the engine still has the first.
  CHECK_FALSE(driver.wait(20'000'000));
  CHECK(driver.under_way() == 2);
  gate.open();
  driver.wait_for_all();
  CHECK(driver.back() == std::vector<OperationState*>{first, second});
  CHECK(second->end_ns >= first->end_ns);
}

TEST_CASE("a late kernel holds up those of its own compute unit, not those of the others") {
  platform::Platform platform = test_platform();
  platform.engine(platform.devices[0].engine).compute_units = 2;
  const EmulatedClock* clock = nullptr;
  const auto make = [&](const platform::Platform&) {  // instead of the driver's own
    auto made = std::make_unique<EmulatedClock>(executor(io::IoEngineKind::posix), platform, 1.0);
    clock = made.get();
    return made;
  };
  std::atomic<bool> is_open = false;
  conformance::Driver driver({.does_work = true, .make = make});
  const conformance::OpensAtEnd gate{&is_open};
  const auto quick = [&](double elements) {
    Operation operation = conformance::charged_kernel(platform, elements);
    conformance::set_function(operation, [] { return ok_status(); }, Workers::host);
    return driver.start(operation);
  };
  Operation held = conformance::charged_kernel(platform, 1'000'000);  // 5 ms, on the first unit
  conformance::set_function(
      held,
      [&is_open] {
        is_open.wait(false);
        return ok_status();
      },
      Workers::compute);
  OperationState* late = driver.start(held);
  OperationState* other = quick(1'600'000);  // 8 ms, on the second
  OperationState* behind = quick(400'000);   // on the first from 5 ms on, as the model has it
  OperationState* after_other = quick(10);   // from 7 ms on, on the first again: it is free then
  for (int waits = 0; waits < 5 && driver.back().empty(); ++waits) driver.wait(20'000'000);
  driver.wait(20'000'000);
  CHECK(driver.back() == std::vector<OperationState*>{other});
  CHECK(driver.under_way() == 3);
  gate.open();
  driver.wait_for_all();
  CHECK(driver.back() == std::vector<OperationState*>{other, late, behind, after_other});
  // What waited for the late one is late, too, and adds nothing to the time that was lost.
  const auto lateness = [](const OperationState* state) {
    return state->end_ns - state->modelled_end_ns;
  };
  const EmulationReport report = clock->report();
  CHECK(report.late_count >= 3);
  CHECK(report.late_ns >= lateness(late));
  CHECK(report.late_ns <= lateness(after_other) + 3'000'000 + lateness(other));
  CHECK(lateness(behind) > 0);
  CHECK(report.modelled_ns >= 15'000'000);  // 5, 8 and 2 ms, and hardly anything
}

TEST_CASE("an emulated clock whose times leave 64 bits is not on time") {
  const double time_scale = GENERATE(1e-300, 1e-30);
  const EmulatedClock* clock = nullptr;
  const auto make = [&](const platform::Platform& platform) {
    auto made =
        std::make_unique<EmulatedClock>(executor(io::IoEngineKind::posix), platform, time_scale);
    clock = made.get();
    return made;
  };
  std::atomic<bool> is_open = false;
  conformance::Driver driver({.does_work = true, .make = make});
  const conformance::OpensAtEnd gate{&is_open};
  Operation held = conformance::charged_kernel(driver.platform(), 10);
  conformance::set_function(
      held,
      [&is_open] {
        is_open.wait(false);
        return ok_status();
      },
      Workers::host);
  driver.start(held);
  CHECK_FALSE(driver.wait(1'000'000));
  gate.open();
  driver.wait_for_all();
  // The model is at its last instant: whatever begins and ends there is not on its time either.
  driver.start(conformance::charged_kernel(driver.platform(), 10));
  driver.start(conformance::charged_transfer(driver.platform(), 1000));
  driver.wait_for_all();
  CHECK(clock->report().operation_count == 3);
  CHECK(clock->report().late_count == 3);
}

TEST_CASE("what an emulated machine never gets to does not end at once") {
  const double time_scale = GENERATE(1e20, 1e300);
  const auto make = [time_scale](const platform::Platform& platform) {
    return std::make_unique<EmulatedClock>(executor(io::IoEngineKind::posix), platform, time_scale);
  };
  conformance::Driver driver({.does_work = true, .make = make});
  driver.start(conformance::charged_kernel(driver.platform(), 10));
  CHECK_FALSE(driver.wait(20'000'000));
  CHECK(driver.under_way() == 1);
}

TEST_CASE("the simulated clock keeps what every clock promises") {
  const auto make = [](const platform::Platform& platform) {
    return std::make_unique<SimulatedClock>(platform, Disturbance{});
  };
  check_conformance(clock_cases(), ClockMaker{.does_work = false, .make = make});
}

TEST_CASE("the simulated clock is as deterministic as it says, with delays by seed") {
  const auto ends_of = [](std::uint64_t seed) {
    conformance::Driver driver(
        {.does_work = false, .make = [seed](const platform::Platform& platform) {
           return std::make_unique<SimulatedClock>(
               platform, Disturbance{.seed = seed, .delay_max_ns = 100'000});
         }});
    for (int i = 0; i < 20; ++i)
      driver.start(conformance::charged_transfer(driver.platform(), 1000 * i));
    driver.wait_for_all();
    std::vector<TimeNs> ends;
    for (const OperationState* state : driver.back()) ends.push_back(state->end_ns);
    return ends;
  };
  CHECK(ends_of(1) == ends_of(1));
  CHECK(ends_of(1) != ends_of(2));
}
