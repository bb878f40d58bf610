// 10,000 steps of each pipeline in simulated time, each with its own seed: operations delayed and
// completed out of order, and in half of them one that fails. What must hold in every one: no
// deadlock, no extent read or written while another operation writes it, no more subgroups in
// flight than there are buffers, no layer computed with before its parameters are up, and after a
// failure nothing more is committed. In some of them subgroups move to other devices with their
// next version: all of them with the first commit, or none. In some only every second or third step
// commits: then no step writes where the last commit lies. In some the state of subgroups
// stays in memory: it is read once, and written before a commit. In some the 16-bit parameters lie
// on the drives: no layer is read before the last update of its subgroups is written, and each
// byte is counted. With overlap=exact the decision of each step is a planted one: what was updated
// ahead of it and is refuted is nowhere to be seen. With overlap=local no subgroup waits for a
// decision, and none is updated before its own gradients are final.

#include <array>
#include <catch2/catch.hpp>
#include <map>
#include <optional>
#include <random>
#include <set>

#include "core/csd/device_factory.h"
#include "core/offload/assembly.h"
#include "core/offload/assembly_plan.h"
#include "core/offload/offload.h"
#include "core/offload/offload_memory.h"
#include "core/offload/parameter_carrier.h"
#include "core/offload/speculation.h"
#include "core/offload/state_cache.h"
#include "core/offload/state_versions.h"
#include "core/offload/step_gradients.h"
#include "core/optimizer/split_update.h"
#include "core/runtime/clocks.h"
#include "core/train/gradient_work.h"
#include "core/train/layer_traffic.h"
#include "core/train/training_step.h"
#include "tests/core/offload/schedule_watch.h"
#include "tests/core/runtime/test_platform.h"
#include "tests/sanitizer.h"

using namespace sluice;
using stages::Stage;

namespace {

constexpr std::uint64_t kSeedCount = kIsSanitized ? 500 : 10'000;

struct Setup {
  offload::Method method = offload::Method::csd;
  offload::Pipeline pipeline = offload::Pipeline::nbuffer;
  offload::Wire wire = offload::Wire::fp32;
  optimizer::RuleKind rule = optimizer::RuleKind::adamw;
  StateFormat state_format;
  offload::GradientTier gradient_tier = offload::GradientTier::storage;
  double density = 1;
  bool prefetch = true;
  std::int32_t buffers = 2;
  std::int32_t devices = 2;
  std::int32_t accelerators = 0;
  std::int64_t subgroup_elements = 3000;
  std::int32_t commit_every = 1;
  std::int64_t state_cache_bytes = 0;
  bool is_planted = false;  // overlap=exact, with these decisions
  std::array<Decision, kSteps> decisions{};
  bool is_local = false;        // overlap=local
  TimeNs backward_ns = 40'000;  // of a layer
  offload::ParameterTier parameters = offload::ParameterTier::memory;
  std::int64_t parameter_buffer_bytes = 0;
  bool moves = false;  // to devices in the opposite shares, with the first step
  runtime::Disturbance disturbance;
};

offload::OffloadOptions options_of(const Setup& setup) {
  offload::OffloadOptions options;
  options.method = setup.method;
  options.pipeline = setup.pipeline;
  options.wire = setup.wire;
  options.state_format = setup.state_format;
  options.gradient_tier = setup.gradient_tier;
  options.density = setup.density;
  options.prefetch = setup.prefetch;
  options.buffers = setup.buffers;
  options.overlap = setup.is_planted ? offload::Overlap::exact
                    : setup.is_local ? offload::Overlap::local
                                     : offload::Overlap::off;
  options.commit_every = setup.commit_every;
  options.state_cache_bytes = setup.state_cache_bytes;
  options.parameters = setup.parameters;
  options.parameter_buffer_bytes = setup.parameter_buffer_bytes;
  options.bounce_bytes = 8192;
  options.bounce_count = 3;
  return options;
}

Checker::Limits limits_of(const Setup& setup, const state::DeviceMap& device_map,
                          const state::Layout& layout, const Course& course) {
  std::set<SubgroupId> kept;
  for (const auto& of_device :
       offload::choose_kept(options_of(setup), layout.geometry(), device_map)) {
    kept.insert(of_device.begin(), of_device.end());
  }
  const bool shares_one_set = setup.pipeline != offload::Pipeline::nbuffer;
  const std::int32_t subgroups = setup.pipeline == offload::Pipeline::serial     ? 1
                                 : setup.pipeline == offload::Pipeline::handover ? 2
                                                                                 : setup.buffers;
  return {subgroups,
          shares_one_set,
          layout.geometry(),
          device_map,
          setup.commit_every,
          layout,
          kept,
          options_of(setup).has_copy_in_memory(),
          course};
}

struct Outcome {
  bool ok = false;
  std::int64_t submitted = 0;
  TimeNs end_ns = 0;
  std::int64_t read_bytes = 0;  // of state
  std::int64_t written_bytes = 0;
  std::int64_t moved_elements = 0;  // of subgroups that another device updates from now on
  std::int64_t read_elsewhere_bytes = 0;
  std::int64_t brought_bytes = 0;
  std::int64_t ahead_count = 0;  // subgroups updated before the decision
  std::int64_t refuted_count = 0;
  // overlap=local: by subgroup and step, whether its update ended before the step's backward.
  IdVector<SubgroupId, std::vector<bool>> updated_first;
};

// The shares that the devices have at first; the shares to which everything moves are the opposite.
std::vector<double> rising_shares(std::int32_t devices) {
  std::vector<double> shares;
  for (std::int32_t d = 0; d < devices; ++d) shares.push_back(1 + d);
  return shares;
}

state::DeviceMap devices_of(const state::Layout& layout) {
  state::DeviceMap map;
  for (std::int32_t s = 0; s < layout.geometry().subgroup_count(); ++s) {
    map.push_back(layout.device(SubgroupId{s}));
  }
  return map;
}

model::FlatLayout small_layout() {
  model::FlatLayout layout;
  for (const std::int64_t count : {4000, 5000, 100, 5000, 64}) {
    layout.layers.push_back({"layer", layout.parameter_count, count});
    layout.parameter_count += count;
  }
  return layout;
}

state::Geometry geometry_of(const Setup& setup) {
  const StoredArrays stored = optimizer::stored_arrays(setup.rule, setup.state_format);
  // Split state is in whole groups.
  const std::int64_t subgroup_elements = stored.is_split()
                                             ? round_up(setup.subgroup_elements, kGroupElements)
                                             : setup.subgroup_elements;
  return {small_layout().parameter_count, subgroup_elements, stored.count, setup.devices,
          stored.codes};
}

// The state of a subgroup that stays in memory is read once and written with each commit; any other
// is read and written in each step, but for a copy in memory, which is not read.
void check_bytes(const Checker& checker, const Checker::Limits& limits, const Setup& setup) {
  const std::int64_t commits = (kSteps + setup.commit_every - 1) / setup.commit_every;
  std::int64_t read_bytes = 0;
  std::int64_t written_bytes = 0;
  for (const SubgroupId subgroup : all_ids<SubgroupId>(limits.geometry.subgroup_count())) {
    const bool is_kept = limits.kept.contains(subgroup);
    for (std::int32_t v = 0; v < limits.geometry.variable_count; ++v) {
      const bool is_copy = limits.has_copy && v == 0;
      const std::int64_t size_bytes =
          limits.geometry.array_bytes(v, limits.geometry.element_count(subgroup));
      read_bytes += size_bytes * (is_copy ? 0 : is_kept ? 1 : kSteps);
      written_bytes += size_bytes * (is_copy || is_kept ? commits : kSteps);
    }
  }
  // With method=host state that moves is read like any other.
  REQUIRE(checker.read_bytes + checker.read_elsewhere_bytes == read_bytes);
  REQUIRE(checker.written_bytes == written_bytes);
}

using Traffic = train::LayerTraffic;

runtime::Task<Status> forward_layers(train::StepContext& context, Traffic& traffic) {
  for (const LayerId layer : all_ids<LayerId>(context.layout.layer_count())) {
    Status there = co_await traffic.next_layer();
    CO_RETURN_IF_ERROR(there);
    Status computed = co_await train::layer_operation(context, Stage::forward, layer, 40'000);
    CO_RETURN_IF_ERROR(computed);
  }
  co_return ok_status();
}

runtime::Task<Status> backward_layers(train::StepContext& context, Traffic& traffic,
                                      train::GradientWork& work) {
  for (std::int32_t index = context.layout.layer_count(); index-- > 0;) {
    const LayerId layer{index};
    Status there = co_await traffic.next_layer();
    CO_RETURN_IF_ERROR(there);
    Result<runtime::Pool::Lease> lease = co_await context.offload.gradients().acquire(layer);
    CO_RETURN_IF_ERROR(lease);
    Status computed = co_await train::layer_operation(context, Stage::backward, layer, 40'000);
    CO_RETURN_IF_ERROR(computed);
    work.send(layer, std::move(*lease));
  }
  co_return ok_status();
}

runtime::Task<Status> forward_pass(train::StepContext& context) {
  Traffic traffic(context, Traffic::Pass::forward, 1);
  Status computed = co_await forward_layers(context, traffic);
  Status finished = co_await traffic.finish();
  co_return computed.ok() ? finished : computed;
}

runtime::Task<Status> backward_pass(train::StepContext& context) {
  Traffic traffic(context, Traffic::Pass::backward, 1);
  train::GradientWork work(context);
  Status computed = co_await backward_layers(context, traffic, work);
  Status left = co_await work.finish();
  Status finished = co_await traffic.finish();
  if (computed.ok()) computed = finished;
  co_return computed.ok() ? left : computed;
}

runtime::Task<Status> forward_and_backward(train::StepContext& context) {
  Status forward = co_await forward_pass(context);
  CO_RETURN_IF_ERROR(forward);
  Status backward = co_await backward_pass(context);
  CO_RETURN_IF_ERROR(backward);
  Status sent = co_await context.offload.gradients().sent();
  co_return sent;
}

// Two layers have other gradients; what is compressed is sent once.
runtime::Task<Status> replace_gradients(train::StepContext& context, std::int64_t step,
                                        Course& course) {
  Status halted = co_await context.offload.halt_ahead();
  CO_RETURN_IF_ERROR(halted);
  course.is_halted[static_cast<std::size_t>(step)] = true;
  if (context.offload.options().is_sparse()) co_return ok_status();
  offload::StepGradients& gradients = context.offload.gradients();
  for (const std::int32_t index : {4, 1}) {
    Result<runtime::Pool::Lease> lease = co_await gradients.acquire(LayerId{index});
    CO_RETURN_IF_ERROR(lease);
    gradients.send_again(LayerId{index}, std::move(*lease));
  }
  Status sent = co_await gradients.sent();
  co_return sent;
}

// As train::training_step goes, with a decision that no gradient is needed for.
runtime::Task<Status> take_planted_step(train::StepContext& context, const session::StepPlan& plan,
                                        Course& course) {
  const std::int64_t step = plan.position.step;
  const offload::StepDecision expected = session::expected_decision(plan, 1);
  context.offload.begin_step(static_cast<std::int32_t>(step), 1, {.expected = expected});
  Status computed = co_await forward_and_backward(context);
  CO_RETURN_IF_ERROR(computed);
  if (course.of(step) == Decision::replaced) {
    Status replaced = co_await replace_gradients(context, step, course);
    CO_RETURN_IF_ERROR(replaced);
  }
  offload::StepDecision decision = expected;
  if (course.of(step) == Decision::clipped) {
    decision.scalars = optimizer::update_scalars(plan.update, 1, 0.5);
  }
  decision.apply = course.of(step) != Decision::skipped;
  course.is_decided[static_cast<std::size_t>(step)] = true;
  Status updated = co_await context.offload.update(decision);
  CO_RETURN_IF_ERROR(updated);
  Status ended = co_await context.offload.end_step(plan.position);
  co_return ended;
}

runtime::Task<Status> planted_step(train::StepContext& context, const session::StepPlan& plan,
                                   Course& course) {
  context.runtime.set_step(static_cast<std::int32_t>(plan.position.step));
  Status status = co_await take_planted_step(context, plan, course);
  if (!status.ok()) {
    Status drained = co_await context.offload.drain();
    static_cast<void>(drained);
  }
  co_return status;
}

// Written once a step, read before forward, and before backward but for what is still in the
// window: of layers of 4, 1, 3 and 1 pages above the embedding all fit into 9, the last three into
// 5, and the last two into 4.
void check_parameter_bytes(const ParameterWatch& watch, const model::FlatLayout& layout,
                           const Setup& setup) {
  if (setup.parameters == offload::ParameterTier::memory) {
    REQUIRE(watch.read_bytes + watch.written_bytes == 0);
    return;
  }
  const std::int64_t pages = setup.parameter_buffer_bytes / kPageBytes;
  const std::int64_t reread = pages >= 9 ? 0 : pages == 4 ? 5100 : 5000;  // 0: 8 pages
  REQUIRE(watch.written_bytes == kSteps * 2 * layout.parameter_count);
  REQUIRE(watch.read_bytes == kSteps * 2 * (layout.parameter_count + reread));
}

void note_updated_first(const GradientWatch& watch, Outcome& result) {
  for (const std::vector<TimeNs>& updated_ns : watch.updated_ns) {
    std::vector<bool>& first = result.updated_first.emplace_back();
    for (std::size_t step = 0; step < kSteps; ++step) {
      first.push_back(updated_ns[step] < watch.backward_ns[step]);
    }
  }
}

// Some steps of a small model without payload, on a state that lies where `state_layout` says.
Outcome run_steps(const Setup& setup, state::Layout& state_layout,
                  const state::DeviceMap& device_map) {
  const platform::Platform platform = test_platform(setup.devices, setup.accelerators);
  const model::FlatLayout layout = small_layout();
  const state::Geometry& geometry = state_layout.geometry();
  const state::DeviceMap lies_on = devices_of(state_layout);

  runtime::Runtime runtime(std::make_unique<runtime::SimulatedClock>(platform, setup.disturbance));
  Course course{.decisions = setup.decisions};
  const Checker::Limits limits = limits_of(setup, device_map, state_layout, course);
  Checker checker(limits);
  runtime.add_sink(&checker);
  ParameterWatch watch(layout, geometry, options_of(setup), setup.accelerators > 0, course);
  runtime.add_sink(&watch);
  std::optional<GradientWatch> gradients;
  if (setup.is_local) runtime.add_sink(&gradients.emplace(layout, geometry));
  offload::AssemblyPlan assembled{.options = options_of(setup),
                                  .platform = &platform,
                                  .layout = &layout,
                                  .geometry = geometry,
                                  .device_map = device_map,
                                  .drive = {1 << 20},
                                  .device_memory_bytes = {},
                                  .payload = csd::Payload::none};
  assembled.device_memory_bytes.assign(setup.devices, 64 << 20);
  csd::EmulatedFactory factory(csd::Payload::none);
  const auto assembly = offload::Assembly::take(assembled, runtime, factory, {});
  REQUIRE(assembly.ok());
  (*assembly)->attach(state_layout);
  offload::Offload& offload = (*assembly)->offload();
  const std::vector<plan::LayerCost> costs(layout.layers.size(), {20'000, setup.backward_ns});
  train::StepContext context{runtime, platform, offload, nullptr, layout, costs, 64, 8};

  std::vector<state::SlotId> before;
  for (std::int32_t s = 0; s < geometry.subgroup_count(); ++s) {
    before.push_back(state_layout.current(SubgroupId{s}));
  }
  session::StepPlan plan;
  plan.update = optimizer::default_options(setup.rule);
  // Each begins while the one before is still being updated, where the pipeline allows it.
  train::StepOutcome outcome;
  Outcome result;
  Status status;
  for (int step = 0; step < kSteps && status.ok(); ++step) {
    plan.position.step = step;
    outcome = {};
    status = runtime.run(setup.is_planted ? planted_step(context, plan, course)
                                          : train::training_step(context, plan, outcome));
    if (setup.is_local) {
      result.ahead_count += outcome.ahead_count;
      result.refuted_count += outcome.refuted_count;
    }
    result.ahead_count += setup.is_planted ? offload.speculation().ahead_count() : 0;
    result.refuted_count += setup.is_planted ? offload.speculation().refuted_count() : 0;
  }
  const Status settled = runtime.run(offload.settle());
  if (status.ok()) status = settled;
  REQUIRE(checker.committed <= kSteps / setup.commit_every);
  if (status.ok()) status = runtime.run(offload.commit());  // what is left of steps between commits
  REQUIRE((checker.committed == (kSteps + setup.commit_every - 1) / setup.commit_every) ==
          status.ok());
  if (status.ok() && course.is_plain()) check_bytes(checker, limits, setup);
  if (status.ok() && course.is_plain()) check_parameter_bytes(watch, layout, setup);
  if (!status.ok()) REQUIRE_THAT(status.error().message(), !Catch::Contains("stuck"));
  // Copy-on-write: with every commit all of the subgroups are in another slot, or none. After two
  // they may be back where they were.
  std::int32_t moved_count = 0;
  result.ok = status.ok();
  result.submitted = checker.submitted;
  result.end_ns = runtime.now_ns();
  for (std::size_t s = 0; s < device_map.size(); ++s) {
    const SubgroupId subgroup{static_cast<std::int32_t>(s)};
    if (state_layout.current(subgroup) != before[s]) ++moved_count;
    if (course.is_plain())  // else a commit may be of skipped steps alone
      REQUIRE(state_layout.device(subgroup) == (checker.committed > 0 ? device_map : lies_on)[s]);
    if (device_map[s] != lies_on[s]) result.moved_elements += geometry.element_count(subgroup);
  }
  if (course.is_plain() && result.moved_elements == 0 &&
      (checker.committed == 0 || checker.committed % 2 == 1)) {
    REQUIRE(moved_count == (checker.committed % 2 == 1 ? geometry.subgroup_count() : 0));
  }
  result.read_bytes = checker.read_bytes;
  result.written_bytes = checker.written_bytes;
  result.read_elsewhere_bytes = checker.read_elsewhere_bytes;
  result.brought_bytes = checker.brought_bytes;
  if (setup.is_local && status.ok()) note_updated_first(*gradients, result);
  return result;
}

Outcome run_step(const Setup& setup) {
  const state::Geometry geometry = geometry_of(setup);
  std::vector<double> shares = rising_shares(setup.devices);
  state::Layout state_layout(geometry, state::make_device_map(geometry.subgroup_count(), shares));
  if (setup.moves) std::ranges::reverse(shares);
  return run_steps(setup, state_layout, state::make_device_map(geometry.subgroup_count(), shares));
}

// `plain` in a way of its own, by `random`.
Setup random_setup(const Setup& plain, std::uint64_t seed, std::int64_t operations,
                   std::mt19937_64& random) {
  const auto one_of = [&](auto... values) {
    const std::array all{values...};
    return all[random() % all.size()];
  };
  Setup setup = plain;
  setup.method = one_of(offload::Method::host, offload::Method::csd);
  setup.wire = one_of(offload::Wire::native, offload::Wire::fp32);
  setup.density = one_of(1.0, 0.05);
  setup.prefetch = one_of(true, true, false);
  if (setup.method == offload::Method::host) {
    setup.gradient_tier = one_of(offload::GradientTier::storage, offload::GradientTier::memory);
  }
  setup.buffers = one_of(1, 2, 3, 4);
  setup.devices = one_of(1, 2, 3);
  setup.moves = one_of(false, false, true);
  setup.commit_every = one_of(1, 1, 2, 3);
  setup.state_cache_bytes = one_of(0, 80'000, 160'000);
  setup.subgroup_elements = one_of(3000, 1200);
  setup.accelerators = one_of(0, 0, 1, 2);
  setup.parameters = one_of(offload::ParameterTier::memory, offload::ParameterTier::storage);
  setup.parameter_buffer_bytes = kPageBytes * one_of(0, 4, 5, 9);
  setup.state_format.kind =
      one_of(StateFormatKind::fp32, StateFormatKind::exact, StateFormatKind::compact);
  setup.disturbance.seed = seed;
  setup.disturbance.delay_max_ns = seed % 11 == 0 ? 0 : 200'000;
  if (seed % 2 == 1) {
    setup.disturbance.failing_operation =
        static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(operations));
  }
  return setup;
}

}  // namespace

TEST_CASE("10,000 seeded schedules of each pipeline: delays, reordered completions, one failure") {
  const auto pipeline =
      GENERATE(offload::Pipeline::serial, offload::Pipeline::handover, offload::Pipeline::nbuffer);
  Setup plain;
  plain.pipeline = pipeline;
  const std::int64_t operations = run_step(plain).submitted;
  REQUIRE(operations > 50);
  std::int64_t failed = 0;
  for (std::uint64_t seed = 0; seed < kSeedCount; ++seed) {
    Setup setup = plain;
    setup.method = seed % 5 == 0 ? offload::Method::host : offload::Method::csd;
    setup.wire = seed % 3 == 0 ? offload::Wire::native : offload::Wire::fp32;
    setup.prefetch = seed % 7 != 0;
    if (seed % 3 == 1) setup.density = 0.05;
    if (seed % 13 == 0) setup.rule = optimizer::RuleKind::sgd;
    if (setup.method == offload::Method::host && seed % 2 == 0) {
      setup.gradient_tier = offload::GradientTier::memory;
    }
    setup.buffers = 1 + static_cast<std::int32_t>(seed % 4);
    setup.devices = 1 + static_cast<std::int32_t>(seed / 4 % 3);
    setup.accelerators = static_cast<std::int32_t>(seed / 3 % 4);
    setup.moves = seed % 4 == 3;
    setup.commit_every = 1 + static_cast<std::int32_t>(seed / 8 % 3);
    setup.state_cache_bytes = static_cast<std::int64_t>(seed / 6 % 4) * 80'000;
    if (seed / 2 % 3 == 0) {
      setup.parameters = offload::ParameterTier::storage;
      setup.parameter_buffer_bytes = std::array{0L, 4L, 5L, 6L, 10L}[seed / 12 % 5] * kPageBytes;
    }
    setup.disturbance.seed = seed;
    setup.disturbance.delay_max_ns = seed % 11 == 0 ? 0 : 200'000;
    if (seed % 2 == 1) {
      setup.disturbance.failing_operation =
          static_cast<std::int64_t>(seed * 2654435761u % static_cast<std::uint64_t>(operations));
    }
    if (seed / 5 % 2 == 1) {
      setup.state_format.kind =
          seed / 10 % 3 == 0 ? StateFormatKind::exact : StateFormatKind::compact;
      setup.state_format.remainder_bits = seed / 10 % 3 == 1 ? 8 : 16;
    }
    const Outcome outcome = run_step(setup);
    failed += outcome.ok ? 0 : 1;
    if (setup.disturbance.failing_operation < 0) REQUIRE(outcome.ok);
  }
  CHECK(failed > static_cast<std::int64_t>(
                     kSeedCount * 4 /
                     10));  // the failing operation may lie behind the last one of a short step
}

TEST_CASE("10,000 seeded schedules of each pipeline, updated ahead of planted decisions") {
  const auto pipeline =
      GENERATE(offload::Pipeline::serial, offload::Pipeline::handover, offload::Pipeline::nbuffer);
  Setup plain;
  plain.pipeline = pipeline;
  plain.is_planted = true;
  const std::int64_t operations = run_step(plain).submitted;
  std::int64_t failed = 0, ahead = 0, refuted = 0;
  for (std::uint64_t seed = 0; seed < kSeedCount; ++seed) {
    std::mt19937_64 random(seed);
    constexpr std::array kDecisions = {Decision::expected, Decision::clipped, Decision::skipped,
                                       Decision::replaced};
    for (Decision& decision : plain.decisions) decision = kDecisions[random() % kDecisions.size()];
    const Setup setup = random_setup(plain, seed, operations, random);
    CAPTURE(seed);
    const Outcome outcome = run_step(setup);
    failed += outcome.ok ? 0 : 1;
    ahead += outcome.ahead_count;
    refuted += outcome.refuted_count;
    if (setup.disturbance.failing_operation < 0) REQUIRE(outcome.ok);
  }
  CHECK(failed > static_cast<std::int64_t>(kSeedCount * 4 / 10));
  CHECK(ahead > static_cast<std::int64_t>(kSeedCount));
  CHECK(refuted > static_cast<std::int64_t>(kSeedCount / 2));
}

TEST_CASE("10,000 seeded schedules of each pipeline, each subgroup clipped by its own norm") {
  const auto pipeline =
      GENERATE(offload::Pipeline::serial, offload::Pipeline::handover, offload::Pipeline::nbuffer);
  Setup plain;
  plain.pipeline = pipeline;
  plain.is_local = true;
  const std::int64_t operations = run_step(plain).submitted;
  std::int64_t failed = 0, ahead = 0;
  for (std::uint64_t seed = 0; seed < kSeedCount; ++seed) {
    std::mt19937_64 random(seed);
    const Setup setup = random_setup(plain, seed, operations, random);
    CAPTURE(seed);
    const Outcome outcome = run_step(setup);
    failed += outcome.ok ? 0 : 1;
    ahead += outcome.ahead_count;
    REQUIRE(outcome.refuted_count == 0);
    if (setup.disturbance.failing_operation < 0) REQUIRE(outcome.ok);
  }
  CHECK(failed > static_cast<std::int64_t>(kSeedCount * 4 / 10));
  CHECK(ahead > static_cast<std::int64_t>(kSeedCount));
}

TEST_CASE("clipped by subgroup, what lies above the first layer is updated before backward ends") {
  Setup setup;
  setup.is_local = true;
  setup.pipeline =
      GENERATE(offload::Pipeline::serial, offload::Pipeline::handover, offload::Pipeline::nbuffer);
  setup.method = GENERATE(offload::Method::host, offload::Method::csd);
  setup.density = GENERATE(1.0, 0.05);
  setup.commit_every = GENERATE(1, 3);
  setup.devices = 1;
  setup.backward_ns = 4'000'000;
  const Outcome outcome = run_step(setup);
  REQUIRE(outcome.ok);
  // The first layer has the first subgroup and a part of the second; each step is alike.
  const std::vector<bool> all(kSteps, true), none(kSteps, false);
  CHECK(outcome.updated_first ==
        IdVector<SubgroupId, std::vector<bool>>{none, none, all, all, all});
  CHECK(outcome.ahead_count == 3 * kSteps);
}

TEST_CASE("compact state crosses a drive's link in 4.08 bytes a parameter, or 6.08 with the copy") {
  Setup setup;
  setup.pipeline =
      GENERATE(offload::Pipeline::serial, offload::Pipeline::handover, offload::Pipeline::nbuffer);
  setup.commit_every = GENERATE(1, 3);
  setup.state_format.kind = StateFormatKind::compact;
  setup.subgroup_elements = 3008;
  // 14,164 parameters in 4 subgroups of 47 groups and one of 34, the last of which is not full.
  constexpr std::int64_t kCopy = 2 * 14'164;
  constexpr std::int64_t kRest = 2 * 14'164 + (4 * 47 + 34) * (65 + 68);
  CHECK(static_cast<double>(kRest) / 14'164 == Approx(4.08).margin(0.01));
  const std::int64_t commits = kSteps / setup.commit_every;

  setup.method = offload::Method::host;
  Outcome outcome = run_step(setup);
  REQUIRE(outcome.ok);
  CHECK(outcome.read_bytes == kSteps * kRest);
  CHECK(outcome.written_bytes == kSteps * kRest + commits * kCopy);

  setup.method = GENERATE(offload::Method::csd, offload::Method::host);
  if (setup.method == offload::Method::host) {
    setup.parameters = offload::ParameterTier::storage;
  }
  outcome = run_step(setup);
  REQUIRE(outcome.ok);
  CHECK(outcome.read_bytes == kSteps * (kRest + kCopy));
  CHECK(outcome.written_bytes == kSteps * (kRest + kCopy));
}

TEST_CASE("state that moves crosses the host link to a CSD that updates it, once") {
  const auto pipeline =
      GENERATE(offload::Pipeline::serial, offload::Pipeline::handover, offload::Pipeline::nbuffer);
  const auto method = GENERATE(offload::Method::host, offload::Method::csd);
  Setup setup;
  setup.pipeline = pipeline;
  setup.method = method;
  setup.moves = true;
  const Outcome outcome = run_step(setup);
  REQUIRE(outcome.ok);
  REQUIRE(outcome.moved_elements > 0);
  // With method=host the update reads it from there as it would from here.
  const std::int64_t wanted = method == offload::Method::csd ? 12 * outcome.moved_elements : 0;
  CHECK(outcome.read_elsewhere_bytes == wanted);
  CHECK(outcome.brought_bytes == wanted);
}

TEST_CASE("a state goes through a hundred random changes of the knobs, step by step") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    std::mt19937_64 random(seed);
    const auto one_of = [&](auto... values) {
      const std::array all{values...};
      return all[random() % all.size()];
    };
    Setup setup;
    setup.devices = 3;
    setup.state_format.kind =
        one_of(StateFormatKind::fp32, StateFormatKind::exact, StateFormatKind::compact);
    const state::Geometry geometry = geometry_of(setup);
    state::Layout layout(geometry,
                         state::make_device_map(geometry.subgroup_count(), rising_shares(3)));
    for (int change = 0; change < 100; ++change) {
      setup.method = one_of(offload::Method::host, offload::Method::csd);
      setup.pipeline = one_of(offload::Pipeline::serial, offload::Pipeline::handover,
                              offload::Pipeline::nbuffer);
      setup.wire = one_of(offload::Wire::fp32, offload::Wire::native);
      setup.density = one_of(1.0, 1.0, 0.05);
      setup.prefetch = one_of(true, false);
      setup.commit_every = one_of(1, 1, 2, 3);
      setup.state_cache_bytes = one_of(0, 40'000, 150'000, 1'000'000);
      setup.buffers = one_of(1, 2, 5);
      setup.parameters = one_of(offload::ParameterTier::memory, offload::ParameterTier::storage);
      setup.gradient_tier =
          setup.method == offload::Method::host
              ? one_of(offload::GradientTier::storage, offload::GradientTier::memory)
              : offload::GradientTier::storage;
      setup.disturbance = {.seed = random(), .delay_max_ns = 200'000};
      using Shares = std::vector<double>;
      const Shares shares = one_of(Shares{1, 0, 0}, Shares{0, 1, 2}, Shares{1, 1, 1});
      REQUIRE(
          run_steps(setup, layout, state::make_device_map(geometry.subgroup_count(), shares)).ok);
    }
  }
}

TEST_CASE("the same seed gives the same simulated step") {
  Setup setup;
  setup.disturbance = {.seed = 42, .delay_max_ns = 100'000};
  CHECK(run_step(setup).end_ns == run_step(setup).end_ns);
}
