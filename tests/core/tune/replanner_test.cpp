// Drives of a live run that become slower: how it is noticed, what is planned then, and what the
// run is asked.

#include "core/tune/replanner.h"

#include <catch2/catch.hpp>

#include "core/tune/replan.h"
#include "tests/core/tune/block_memory.h"

namespace sluice::tune {
namespace {

runtime::OperationState transfer(DeviceId drive, std::int64_t size_bytes, TimeNs from_ns,
                                 TimeNs to_ns) {
  runtime::OperationState state;
  state.operation.label.device = drive;
  state.operation.label.place_bytes = 0;
  state.operation.label.size_bytes = size_bytes;
  state.submit_ns = from_ns;
  state.end_ns = to_ns;
  return state;
}

constexpr DeviceId kDrive{0};
constexpr DeviceId kOtherDrive{1};

platform::Platform machine() {
  const auto platform = platform::parse_platform(
      "name = 'one drive'\n[[link]]\nname = 'host'\nread = '40 GB/s'\nwrite = '40 GB/s'\n"
      "duplex = 'full'\n[host]\nmemory = '64 GB'\nadamw = '1 Gelem/s'\nstage = '20 Gelem/s'\n"
      "[compute]\nmatmul = '1 TFLOP/s'\n[[device]]\nname = 'drive'\nvia = ['host']\n"
      "[device.drive]\nduplex = 'full'\nread = '10 GB/s'\nwrite = '10 GB/s'\n",
      "drive.toml");
  REQUIRE(platform.ok());
  return *platform;
}

// Too little memory to keep activations, and a drive that takes them in no time.
plan::RunPlan run_that_offloads(const std::vector<std::string>& settings = {}) {
  std::vector<std::string> all = {
      "method=host",        "devices=1",          "batch=8",
      "sequence=128",       "buffers=2",          "subgroup_elements=400000",
      "bounce_memory=8MiB", "activations=offload"};
  all.insert(all.end(), settings.begin(), settings.end());
  const auto config = settings::parse_run_config(
      "name = 'p'\nmodel = 'm'\nplatform = 'p'\ntext = 'none'\n", "p.toml", all);
  REQUIRE(config.ok());
  auto run = plan::plan_run(*config, {"small", 4, 128, 4, 128, 256}, machine());
  REQUIRE(run.ok());
  return *std::move(run);
}

// The run as it is planned while its drive is fast; planned once, since that is long.
plan::RunPlan planned_run() {
  plan::RunPlan run = run_that_offloads();
  const std::int64_t cap = tier_memory(run, blocks_in_host_memory()).uses[0].peak_bytes;
  run = run_that_offloads({fmt::format("host_memory={}", cap)});
  const auto plan = replan({.run = run, .memory = blocks_in_host_memory()});
  REQUIRE(plan.ok());
  const auto config = settings::with_knobs(run.config, plan->settings, "test");
  REQUIRE(config.ok());
  REQUIRE(plan::set_knobs(run, *config).ok());
  return run;
}

ReplanRequest request(double drive_factor) {
  static const plan::RunPlan run = planned_run();
  return {.run = run, .memory = blocks_in_host_memory(), .drive_factor = drive_factor};
}

bool turns_activations(const std::vector<std::string>& settings) {
  return std::ranges::any_of(
      settings, [](const std::string& setting) { return setting.starts_with("activations="); });
}

// Steps of 100 us, in each of which the drive moves so many bytes in 40 of them.
struct SteppedRun {
  explicit SteppedRun(Replanner& of) : replanner(of) {}
  void steps(int count, std::int64_t size_bytes) {
    for (int i = 0; i < count; ++i, now_ns += 100'000) {
      const auto state = transfer(kDrive, size_bytes, now_ns, now_ns + 40'000);
      replanner.sink().on_submit(state);
      replanner.sink().on_finish(state);
      replanner.on_step({});
    }
  }
  Replanner& replanner;
  TimeNs now_ns = 0;
};

}  // namespace

TEST_CASE("a drive's rate is its bytes over the time in which it was busy") {
  DriveWatch watch(2);
  const auto first = transfer(kDrive, 1000, 0, 30);
  const auto second = transfer(kDrive, 500, 10, 50);  // beside the first
  const auto other = transfer(kOtherDrive, 700, 20, 60);
  const auto kernel = [] {
    runtime::OperationState state;
    state.operation.label.device = kDrive;
    return state;
  }();
  for (const runtime::OperationState* state : {&first, &second, &other, &kernel})
    watch.on_submit(*state);
  for (const runtime::OperationState* state : {&first, &second, &kernel}) watch.on_finish(*state);
  const DriveWatch::Use use = watch.take(55);
  CHECK(use.moved_bytes == 1500);
  CHECK(use.busy_ns == 50 + 35);  // the other drive is busy still
  CHECK(use.bytes_per_s() == Approx(1500 / 85e-9));
  watch.on_finish(other);
  CHECK(watch.take(90).busy_ns == 5);
  CHECK(watch.take(200).busy_ns == 0);
}

TEST_CASE("rates have drifted once they are a quarter apart in two windows in a row") {
  DriftRule rule;
  for (const double rate : {100.0, 85.0, 122.0, 70.0, 100.0, 130.0, 99.0}) {
    CHECK_FALSE(rule.on_window(rate));
  }
  CHECK_FALSE(rule.on_window(60));
  CHECK(rule.on_window(50).value() == Approx(0.5));
  rule.restart();
  for (const double rate : {50.0, 50.0, 90.0}) CHECK_FALSE(rule.on_window(rate));
  CHECK(rule.on_window(100).value() == Approx(2));
}

TEST_CASE("drives as they were leave the plan as it is, and slow ones change it") {
  const auto same = replan(request(1));
  REQUIRE(same.ok());
  CHECK(same->settings.empty());
  const auto slow = replan(request(0.02));
  REQUIRE(slow.ok());
  CHECK(slow->seconds < slow->seconds_before);
  CHECK(slow->seconds_before > same->seconds_before);
  CHECK(turns_activations(slow->settings));
  CHECK(settings::with_knobs(request(1).run.config, slow->settings, "test").ok());
}

TEST_CASE("a live run is asked for the new plan, with the reason, and not again after it") {
  SteppedRun* now = nullptr;
  Replanner replanner(
      1, [] { return request(1); }, [&] { return now == nullptr ? 0 : now->now_ns; });
  SteppedRun run(replanner);
  now = &run;
  run.steps(20, 50'000);
  replanner.wait();
  CHECK(replanner.take_changes().empty());
  run.steps(10, 1'000);
  replanner.wait();
  const std::vector<session::AskedChange> asked = replanner.take_changes();
  REQUIRE(asked.size() == 1);
  CHECK(asked[0].who.starts_with("replan: drives do 2 % of what they did; predicted "));
  CHECK(turns_activations(asked[0].settings));
  replanner.on_knobs_changed(30, run.now_ns, {}, &asked[0]);
  run.steps(20, 1'000);
  replanner.wait();
  CHECK(replanner.take_changes().empty());
}

TEST_CASE("drives that are hardly used say nothing of their rate") {
  TimeNs now_ns = 0;
  Replanner replanner(1, [] { return request(1); }, [&] { return now_ns; });
  for (int i = 0; i < 40; ++i, now_ns += 100'000) {
    const auto state = transfer(kDrive, i < 20 ? 50'000 : 1'000, now_ns, now_ns + 1'000);
    replanner.sink().on_submit(state);
    replanner.sink().on_finish(state);
    replanner.on_step({});
  }
  replanner.wait();
  CHECK(replanner.take_changes().empty());
}

}  // namespace sluice::tune
