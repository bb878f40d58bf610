// Thousands of steps in simulated time, each with its own seed: sizes, buffer, drives and
// micro-batches differ, operations are delayed, and in half of the steps one fails. What must hold
// in each: no deadlock, nothing read before it is written or over what is written, everything back
// before its backward, no more in memory than the buffer and the layer that is computed.

#include "core/activation/activation_carrier.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <random>

#include "base/units.h"
#include "core/runtime/clocks.h"
#include "tests/core/runtime/test_platform.h"

using namespace sluice;
using activation::ActivationCarrier;
using activation::ActivationPlan;
using stages::Stage;

namespace {

constexpr std::uint64_t kSeedCount = 10'000;
constexpr int kSteps = 2;

struct Setup {
  ActivationPlan plan;
  std::int32_t devices = 2;
  int accelerators = 0;
  TimeNs forward_ns = 30'000;
  runtime::Disturbance disturbance;
};

std::int64_t widest_bytes(const ActivationPlan& plan) {
  std::int64_t widest = 0;
  for (const LayerId layer : all_ids<LayerId>(static_cast<std::int32_t>(plan.layer_blocks.size())))
    widest = std::max(widest, plan.layer_bytes(layer));
  return widest;
}

std::int64_t step_bytes(const ActivationPlan& plan) {
  std::int64_t bytes = 0;
  for (const LayerId layer : all_ids<LayerId>(static_cast<std::int32_t>(plan.layer_blocks.size())))
    bytes += plan.micro_step_count * plan.layer_bytes(layer);
  return bytes;
}

// Watches the transfers: a place is read only once it is written, and not both at once.
class Checker final : public runtime::OperationSink {
 public:
  void on_submit(const runtime::OperationState& state) override {
    submitted += 1;
    const runtime::OperationLabel& label = state.operation.label;
    if (label.stage == Stage::activation_write) {
      Place& place = places_[{label.device, label.place_bytes}];
      REQUIRE_FALSE(place.is_busy);
      place = {.is_busy = true, .step = state.step, .layer = label.layer};
      CHECK(label.padding_bytes < kPageBytes);
    } else if (label.stage == Stage::activation_read) {
      Place& place = places_[{label.device, label.place_bytes}];
      REQUIRE_FALSE(place.is_busy);
      REQUIRE(place.is_written);
      REQUIRE(place.step == state.step);
      REQUIRE(place.layer == label.layer);
      place.is_busy = true;
      coming_[label.layer] += 1;
    } else if (label.stage == Stage::backward && micro_steps == 1) {
      REQUIRE(coming_[label.layer] == 0);
    }
  }
  void on_finish(const runtime::OperationState& state) override {
    const runtime::OperationLabel& label = state.operation.label;
    if (label.place_bytes < 0) return;
    Place& place = places_[{label.device, label.place_bytes}];
    place.is_busy = false;
    if (label.stage == Stage::activation_read) coming_[label.layer] -= 1;
    if (!state.status.ok()) return;
    place.is_written = true;
    (label.stage == Stage::activation_write ? out_bytes : in_bytes) += label.size_bytes;
  }

  void on_activation_wait(const stages::ActivationWaited& waited) override {
    REQUIRE(waited.to_ns > waited.from_ns);
    wait_ns[index_of(waited.why)] += waited.to_ns - waited.from_ns;
  }
  void on_activation_bytes(stages::ActivationTier tier, std::int64_t size_bytes,
                           TimeNs /*now_ns*/) override {
    REQUIRE(size_bytes >= 0);
    live_bytes[index_of(tier)] = size_bytes;
    std::int64_t& peak = peak_bytes[index_of(tier)];
    peak = std::max(peak, size_bytes);
  }

  std::array<TimeNs, stages::kActivationWaitCount> wait_ns{};
  std::array<std::int64_t, stages::kActivationTierCount> live_bytes{};
  std::array<std::int64_t, stages::kActivationTierCount> peak_bytes{};
  int micro_steps = 1;
  std::int64_t submitted = 0;
  std::int64_t out_bytes = 0;
  std::int64_t in_bytes = 0;

 private:
  struct Place {
    bool is_busy = false;
    bool is_written = false;
    std::int32_t step = -1;
    LayerId layer = kNoLayer;
  };
  std::map<std::pair<DeviceId, std::int64_t>, Place> places_;
  std::map<LayerId, int> coming_;
};

class Machine {
 public:
  explicit Machine(const Setup& setup)
      : setup_(setup),
        platform_(test_platform(setup.devices, setup.accelerators)),
        runtime_(std::make_unique<runtime::SimulatedClock>(platform_, setup.disturbance)) {
    for (const DeviceId device : all_ids<DeviceId>(setup.devices)) {
      drives_.push_back(std::make_unique<csd::Drive>(runtime_, platform_.device(device), device,
                                                     csd::DriveOptions{1 << 20}));
    }
    for (std::size_t l = 0; l < setup.plan.layer_blocks.size(); ++l)
      layout_.layers.push_back({"layer", 0, 0});
    checker.micro_steps = setup.plan.micro_step_count;
    runtime_.add_sink(&checker);
    carrier.emplace(
        ActivationCarrier::Parts{runtime_, platform_, drives_, layout_, setup_.plan, nullptr});
  }

  Status take_step(int step) {
    runtime_.set_step(step);
    return runtime_.run(run_step());
  }
  TimeNs now_ns() { return runtime_.now_ns(); }

  Checker checker;
  std::optional<ActivationCarrier> carrier;

 private:
  runtime::Task<Status> run_step() {
    carrier->begin_step();
    Status computed = co_await layers();
    Status finished = co_await carrier->finish();
    co_return computed.ok() ? finished : computed;
  }
  runtime::Task<Status> layers() {
    const auto count = static_cast<std::int32_t>(layout_.layers.size());
    for (std::int32_t l = 0; l < count; ++l) {
      for (int m = 0; m < setup_.plan.micro_step_count; ++m) {
        Status room = co_await carrier->room(LayerId{l});
        CO_RETURN_IF_ERROR(room);
        Status done = co_await compute(Stage::forward, l);
        CO_RETURN_IF_ERROR(done);
        carrier->leave(LayerId{l}, m);
      }
    }
    for (std::int32_t l = count; l-- > 0;) {
      for (int m = 0; m < setup_.plan.micro_step_count; ++m) {
        Status there = co_await carrier->bring_back(LayerId{l}, m);
        CO_RETURN_IF_ERROR(there);
        Status done = co_await compute(Stage::backward, l);
        CO_RETURN_IF_ERROR(done);
        carrier->done(LayerId{l}, m);
      }
    }
    co_return ok_status();
  }
  runtime::Operation compute(Stage stage, std::int32_t layer) {
    runtime::Operation operation;
    operation.runtime = &runtime_;
    operation.label.stage = stage;
    operation.label.layer = LayerId{layer};
    operation.cost.engine = platform_.compute_engine;
    operation.cost.engine_dur_ns = setup_.forward_ns;
    return operation;
  }

  Setup setup_;
  platform::Platform platform_;
  model::FlatLayout layout_;
  runtime::Runtime runtime_;
  IdVector<DeviceId, std::unique_ptr<csd::Drive>> drives_;
};

Setup random_setup(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Setup setup;
  setup.devices = 1 + static_cast<std::int32_t>(random() % 3);
  setup.plan.micro_step_count = 1 + static_cast<int>(random() % 3);
  for (int layer = 0; layer < 7; ++layer) {
    auto& blocks = setup.plan.layer_blocks.emplace_back();
    for (std::uint64_t block = random() % 4; block > 0; --block) {
      blocks.push_back(1 + static_cast<std::int64_t>(random() % 30'000));
    }
  }
  const std::int64_t widest = widest_bytes(setup.plan);
  setup.plan.buffer_bytes = static_cast<std::int64_t>(random() % 5) * widest / 2;
  setup.forward_ns = static_cast<TimeNs>(random() % 300'000);
  setup.accelerators = static_cast<int>(random() % 3);
  const auto layer_count = static_cast<std::int32_t>(setup.plan.layer_blocks.size());
  for (std::int32_t i = 0; i < layer_count * setup.plan.micro_step_count; ++i) {
    setup.plan.in_host.push_back(setup.accelerators > 0 && random() % 3 == 0);
  }
  for (std::int32_t layer = 0; layer < layer_count; ++layer) {
    setup.plan.staying_bytes.push_back(static_cast<std::int64_t>(random() % 5'000));
  }
  setup.disturbance.seed = seed;
  setup.disturbance.delay_max_ns = seed % 5 == 0 ? 0 : 200'000;
  return setup;
}

// What moved, and what did not have to.
struct Sums {
  std::int64_t failed = 0;
  std::int64_t forwarded = 0;
  std::int64_t cancelled = 0;
  std::int64_t read_bytes = 0;
};

void check_steps(const Setup& setup, Sums& sums) {
  Machine machine(setup);
  Status status;
  for (int step = 0; step < kSteps && status.ok(); ++step) status = machine.take_step(step);
  const ActivationCarrier::Counts& counts = machine.carrier->counts();
  REQUIRE(counts.resident_peak_bytes <= setup.plan.buffer_bytes + widest_bytes(setup.plan));
  if (setup.disturbance.failing_operation < 0) REQUIRE(status.ok());
  sums.failed += status.ok() ? 0 : 1;
  if (!status.ok()) {
    REQUIRE_THAT(status.error().message(), !Catch::Contains("stuck"));
    return;
  }
  for (const stages::ActivationWait why :
       {stages::ActivationWait::room, stages::ActivationWait::block}) {
    REQUIRE(machine.checker.wait_ns[index_of(why)] == counts.wait_ns(why));
  }
  for (const std::int64_t live_bytes : machine.checker.live_bytes) REQUIRE(live_bytes == 0);
  REQUIRE(machine.checker.out_bytes == counts.written_bytes);
  REQUIRE(machine.checker.in_bytes == counts.read_bytes);
  REQUIRE(counts.read_bytes <= counts.written_bytes);
  REQUIRE(counts.host_bytes <= kSteps * setup.plan.host_bytes());
  REQUIRE(counts.written_bytes + counts.host_bytes <= kSteps * step_bytes(setup.plan));
  REQUIRE(counts.cancelled <= counts.forwarded);
  if (counts.cancelled == 0) {
    REQUIRE(counts.written_bytes + counts.host_bytes == kSteps * step_bytes(setup.plan));
  }
  if (counts.forwarded == 0) REQUIRE(counts.read_bytes == counts.written_bytes);
  sums.forwarded += counts.forwarded;
  sums.cancelled += counts.cancelled;
  sums.read_bytes += counts.read_bytes;
}

}  // namespace

TEST_CASE(
    "seeded steps: everything is back in time, within the buffer, whatever is late or fails") {
  Sums sums;
  for (std::uint64_t seed = 0; seed < kSeedCount; ++seed) {
    INFO("seed " << seed);
    Setup setup = random_setup(seed);
    if (seed % 2 == 1) setup.disturbance.failing_operation = static_cast<std::int64_t>(seed % 97);
    check_steps(setup, sums);
  }
  CHECK(sums.failed > static_cast<std::int64_t>(kSeedCount) / 4);
  CHECK(sums.forwarded > 0);
  CHECK(sums.cancelled > 0);
  CHECK(sums.read_bytes > 0);
}

TEST_CASE("what backward needs while it is leaving is not read, and a queued write is not made") {
  Setup setup;
  setup.plan.layer_blocks = {{}, {1'000'000}, {1'000'000}, {1'000'000}, {1'000'000}};
  setup.plan.buffer_bytes = 10'000'000;  // room for all of it
  setup.forward_ns = 1'000;
  setup.devices = 1;
  Sums sums;
  check_steps(setup, sums);
  // Two of the four were being written when backward came, and two waited for their turn.
  CHECK(sums.forwarded == kSteps * 4);
  CHECK(sums.cancelled == kSteps * 2);
  CHECK(sums.read_bytes == 0);
}

TEST_CASE("with room for everything a plan moves nothing") {
  Setup setup;
  setup.plan.layer_blocks = {{}, {100'000}, {100'000, 5}, {}};
  setup.plan.buffer_bytes = 300'000;
  setup.plan.stays = true;
  Machine machine(setup);
  for (int step = 0; step < kSteps; ++step) REQUIRE(machine.take_step(step).ok());
  CHECK(machine.checker.out_bytes == 0);
  CHECK(machine.checker.in_bytes == 0);
  CHECK(machine.carrier->counts().resident_peak_bytes == 200'005);
}

TEST_CASE("without forwarding all that left is read back, each byte once") {
  Setup setup;
  setup.plan.layer_blocks = {{}, {100'000, 7}, {100'000}, {}};
  setup.plan.buffer_bytes = 0;
  setup.forward_ns = 100'000'000;
  Sums sums;
  check_steps(setup, sums);
  CHECK(sums.forwarded == 0);
  CHECK(sums.read_bytes == kSteps * 200'007);
}

TEST_CASE("what is needed next comes while a layer is computed, as far as the buffer goes") {
  const auto step_ns = [](std::int64_t buffer_bytes) {
    Setup setup;
    setup.plan.layer_blocks = {{}, {400'000}, {400'000}, {400'000}, {400'000}, {}};
    setup.plan.buffer_bytes = buffer_bytes;
    setup.forward_ns = 20'000'000;
    Machine machine(setup);
    REQUIRE(machine.take_step(0).ok());
    return machine.now_ns();
  };
  const TimeNs ahead_ns = step_ns(800'000);
  CHECK(ahead_ns < step_ns(0));
  // Twelve operations of 20 ms, and nothing that they wait for but the writes of the last forward.
  CHECK(ahead_ns < 12 * 20'000'000 + 5'000'000);
}

TEST_CASE("what stays in host memory crosses to it and back, and no drive has it") {
  Setup setup;
  setup.plan.layer_blocks = {{}, {100'000}, {100'000, 7}, {}};
  setup.plan.in_host = {false, false, true, false};
  setup.plan.staying_bytes = {0, 0, 0, 4'000};
  setup.plan.buffer_bytes = 0;
  setup.forward_ns = 100'000'000;
  setup.accelerators = 1;
  Machine machine(setup);
  REQUIRE(machine.take_step(0).ok());
  CHECK(machine.carrier->counts().host_bytes == 100'007);
  CHECK(machine.carrier->counts().written_bytes == 100'000);
  CHECK(machine.checker.out_bytes == 100'000);
  CHECK(machine.checker.in_bytes == 100'000);
  using stages::ActivationTier;
  const auto& peak = machine.checker.peak_bytes;
  CHECK(peak[index_of(ActivationTier::drives)] == 100'000);
  CHECK(peak[index_of(ActivationTier::host)] == 100'007);
  CHECK(peak[index_of(ActivationTier::accelerator)] == 100'007);
}

TEST_CASE("forward waits for what leaves, backward for what comes back, each by its layer") {
  Setup setup;
  setup.plan.layer_blocks = {{}, {400'000}, {400'000}, {400'000}};
  setup.plan.buffer_bytes = 0;
  setup.forward_ns = 1'000'000;
  setup.devices = 1;
  Machine machine(setup);
  REQUIRE(machine.take_step(0).ok());
  const auto& waits = machine.carrier->counts().layer_wait_ns;
  const auto of = [&](std::size_t layer, stages::ActivationWait why) {
    return waits[layer][index_of(why)];
  };
  CHECK(of(1, stages::ActivationWait::room) == 0);          // nothing left before it
  CHECK(of(2, stages::ActivationWait::room) >= 2'000'000);  // 400 kB at 200 MB/s
  CHECK(of(3, stages::ActivationWait::room) >= 2'000'000);
  CHECK(of(3, stages::ActivationWait::block) == 0);          // it was still leaving
  CHECK(of(1, stages::ActivationWait::block) >= 1'000'000);  // 400 kB at 400 MB/s
  // Six operations of a millisecond, and what the counter says was waited for; the last write may
  // end behind them.
  CHECK(machine.now_ns() >= 6'000'000 +
                                machine.carrier->counts().wait_ns(stages::ActivationWait::room) +
                                machine.carrier->counts().wait_ns(stages::ActivationWait::block));
}
