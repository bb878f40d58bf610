// 10,000 steps of each pipeline in simulated time, each with its own seed: operations delayed and
// completed out of order, and in half of them one that fails. What must hold in every one: no
// deadlock, no extent read or written while another operation writes it, no more subgroups in
// flight than there are buffers, no layer computed with before its parameters are up, and after a
// failure nothing is committed.

#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "core/csd/emulated_csd.h"
#include "core/runtime/clocks.h"
#include "core/train/training_step.h"
#include "tests/core/runtime/test_platform.h"

using namespace sluice;
using runtime::Stage;

namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint64_t kSeedCount = 2'000;  // each step takes ten times as long
#else
constexpr std::uint64_t kSeedCount = 10'000;
#endif

// Watches every operation of a step.
class Checker final : public runtime::OperationSink {
 public:
  // At most so many subgroups of a device are under way, in as many buffer sets, or, where they
  // share one set, with one subgroup's data in each variable's buffer.
  struct Limits {
    std::int32_t subgroups;
    bool share_one_set;
    state::Geometry geometry;
  };
  explicit Checker(const Limits& limits) : limits_(limits) {}

  void on_submit(const runtime::OperationState& state) override {
    const runtime::OperationLabel& label = state.operation.label;
    submitted += 1;
    if (label.place_bytes >= 0) begin_transfer(label);
    if (is_part_of_update(label.stage)) {
      auto& subgroups = updating_[label.device];
      subgroups[label.subgroup] += 1;
      REQUIRE(std::ssize(subgroups) <= limits_.subgroups);
    }
    if (limits_.share_one_set && label.place_bytes >= 0) enter_buffer(label);
  }

  void on_finish(const runtime::OperationState& state) override {
    const runtime::OperationLabel& label = state.operation.label;
    if (label.place_bytes >= 0) end_transfer(label);
    if (is_part_of_update(label.stage)) {
      auto& subgroups = updating_[label.device];
      if (--subgroups[label.subgroup] == 0) subgroups.erase(label.subgroup);
    }
    if (label.stage == Stage::state_write) {
      occupant_[{label.device, variable_of(label)}] = kNoSubgroup;
    }
    if (label.stage == Stage::commit && state.status.ok()) committed += 1;
  }

  std::int64_t submitted = 0;
  int committed = 0;

 private:
  struct Range {
    bool is_state;
    DeviceId device;
    std::int64_t first;
    std::int64_t end;
    bool writes;
  };
  static bool is_part_of_update(Stage stage) {
    return stage == Stage::state_read || stage == Stage::gradient_read || stage == Stage::update ||
           stage == Stage::state_write;
  }
  std::int64_t variable_of(const runtime::OperationLabel& label) const {
    return label.place_bytes / limits_.geometry.variable_bytes() % limits_.geometry.variable_count;
  }
  // A subgroup's data is in a variable's buffer from its read to the end of its write.
  void enter_buffer(const runtime::OperationLabel& label) {
    if (label.stage != Stage::state_read && label.stage != Stage::state_write) return;
    const auto [place, is_new] =
        occupant_.try_emplace({label.device, variable_of(label)}, kNoSubgroup);
    if (label.stage == Stage::state_read) {
      REQUIRE(place->second == kNoSubgroup);
      place->second = label.subgroup;
    }
    REQUIRE(place->second == label.subgroup);
  }
  static Range range_of(const runtime::OperationLabel& label) {
    return {label.stage == Stage::state_read || label.stage == Stage::state_write, label.device,
            label.place_bytes, label.place_bytes + label.size_bytes + label.padding_bytes,
            label.stage == Stage::state_write || label.stage == Stage::gradient_down};
  }
  void begin_transfer(const runtime::OperationLabel& label) {
    const Range range = range_of(label);
    for (const Range& other : in_flight_) {
      const bool overlap = other.is_state == range.is_state && other.device == range.device &&
                           other.first < range.end && range.first < other.end;
      const bool conflict = overlap && (other.writes || range.writes);
      REQUIRE_FALSE(conflict);
    }
    in_flight_.push_back(range);
  }
  void end_transfer(const runtime::OperationLabel& label) {
    const Range range = range_of(label);
    const auto found = std::find_if(in_flight_.begin(), in_flight_.end(), [&](const Range& other) {
      return other.is_state == range.is_state && other.device == range.device &&
             other.first == range.first && other.writes == range.writes;
    });
    REQUIRE(found != in_flight_.end());
    in_flight_.erase(found);
  }

  Limits limits_;
  std::map<std::pair<DeviceId, std::int64_t>, SubgroupId> occupant_;
  std::vector<Range> in_flight_;
  std::map<DeviceId, std::map<SubgroupId, int>> updating_;
};

// A layer is computed with the parameters of the step before, all of them in place, and where there
// are accelerators on all of these.
class ParameterWatch final : public runtime::OperationSink {
 public:
  ParameterWatch(const model::FlatLayout& layout, const state::Geometry& geometry,
                 offload::Method method, offload::Wire wire, bool has_accelerators)
      : layout_(layout),
        geometry_(geometry),
        method_(method),
        wire_(wire),
        has_accelerators_(has_accelerators) {
    subgroups_.resize(static_cast<std::size_t>(geometry.subgroup_count()));
  }

  void on_submit(const runtime::OperationState& state) override {
    const runtime::OperationLabel& label = state.operation.label;
    if (comes_in(label)) arrivals_[label.layer].under_way += 1;
    const bool computes = label.stage == Stage::forward || label.stage == Stage::backward;
    if (!computes && label.stage != Stage::layer_in) return;
    const model::LayerRange& layer = layout_.layer(label.layer);
    if (computes && has_accelerators_) {
      const std::int64_t passes = 2 * state.step + (label.stage == Stage::forward ? 1 : 2);
      REQUIRE(arrivals_[label.layer].under_way == 0);
      REQUIRE(arrivals_[label.layer].size_bytes == passes * layer.count * 2);
    }
    for (std::int64_t s = layer.first / geometry_.subgroup_elements;
         s * geometry_.subgroup_elements < layer.first + layer.count; ++s) {
      REQUIRE(steps_in_place(static_cast<std::size_t>(s)) == state.step);
    }
  }
  void on_finish(const runtime::OperationState& state) override {
    const runtime::OperationLabel& label = state.operation.label;
    if (comes_in(label)) arrivals_[label.layer].under_way -= 1;
    if (label.stage == Stage::layer_in) arrivals_[label.layer].size_bytes += label.size_bytes;
    if (label.subgroup == kNoSubgroup) return;
    Progress& progress = subgroups_[static_cast<std::size_t>(index_of(label.subgroup))];
    if (label.stage == Stage::update) progress.updates += 1;
    if (label.stage == Stage::parameters_up) progress.up_bytes += label.size_bytes;
    if (label.stage == Stage::parameters_up) progress.chunks_up += 1;
    if (label.stage == Stage::parameters_in) progress.chunks_in += 1;
  }

 private:
  struct Arrival {
    int under_way = 0;
    std::int64_t size_bytes = 0;  // from host memory, to all accelerators together
  };
  static bool comes_in(const runtime::OperationLabel& label) {
    return label.stage == Stage::layer_in || label.stage == Stage::peer_in;
  }
  struct Progress {
    std::int64_t updates = 0;
    std::int64_t up_bytes = 0;
    std::int64_t chunks_up = 0;
    std::int64_t chunks_in = 0;
  };
  // How many steps' parameters have come whole.
  std::int64_t steps_in_place(std::size_t s) const {
    const Progress& progress = subgroups_[s];
    if (method_ == offload::Method::host) return progress.updates;
    if (wire_ == offload::Wire::fp32 && progress.chunks_in != progress.chunks_up) return -1;
    const std::int64_t count = geometry_.element_count(SubgroupId{static_cast<std::int32_t>(s)});
    const std::int64_t step_bytes = count * (wire_ == offload::Wire::fp32 ? 4 : 2);
    return progress.up_bytes % step_bytes == 0 ? progress.up_bytes / step_bytes : -1;
  }

  const model::FlatLayout& layout_;
  state::Geometry geometry_;
  offload::Method method_;
  offload::Wire wire_;
  bool has_accelerators_;
  std::vector<Progress> subgroups_;
  std::map<LayerId, Arrival> arrivals_;
};

struct Setup {
  offload::Method method = offload::Method::csd;
  offload::Pipeline pipeline = offload::Pipeline::nbuffer;
  offload::Wire wire = offload::Wire::fp32;
  optimizer::RuleKind rule = optimizer::RuleKind::adamw;
  offload::GradientTier gradient_tier = offload::GradientTier::storage;
  double density = 1;
  bool prefetch = true;
  std::int32_t buffers = 2;
  std::int32_t devices = 2;
  std::int32_t accelerators = 0;
  std::int64_t subgroup_elements = 3000;
  runtime::Disturbance disturbance;
};

Checker::Limits limits_of(const Setup& setup, const state::Geometry& geometry) {
  switch (setup.pipeline) {
    case offload::Pipeline::serial:
      return {1, true, geometry};
    case offload::Pipeline::handover:
      return {2, true, geometry};
    case offload::Pipeline::nbuffer:
      break;
  }
  return {setup.buffers, false, geometry};
}

constexpr int kSteps = 3;

struct Outcome {
  bool ok = false;
  std::int64_t submitted = 0;
  TimeNs end_ns = 0;
};

// One step of a small model without payload.
Outcome run_step(const Setup& setup) {
  const platform::Platform platform = test_platform(setup.devices, setup.accelerators);
  model::FlatLayout layout;
  for (const std::int64_t count : {4000, 5000, 100, 5000, 64}) {
    layout.layers.push_back({"layer", layout.parameter_count, count});
    layout.parameter_count += count;
  }
  state::Geometry geometry{layout.parameter_count, setup.subgroup_elements,
                           optimizer::rule_info(setup.rule).state_count(), setup.devices};
  std::vector<double> shares;
  for (std::int32_t d = 0; d < setup.devices; ++d) shares.push_back(1 + d);
  state::Layout state_layout(geometry, state::make_device_map(geometry.subgroup_count(), shares));

  offload::OffloadOptions options;
  options.method = setup.method;
  options.pipeline = setup.pipeline;
  options.wire = setup.wire;
  options.gradient_tier = setup.gradient_tier;
  options.density = setup.density;
  options.prefetch = setup.prefetch;
  options.buffers = setup.buffers;
  options.bounce_bytes = 8192;
  options.bounce_count = 3;
  std::vector<csd::DeviceMemory> memories;
  for (std::int32_t d = 0; d < setup.devices; ++d) {
    memories.emplace_back("csd", 64 << 20, csd::Payload::none);
  }
  auto memory =
      offload::OffloadMemory::make(options, geometry, layout, memories, csd::Payload::none);
  REQUIRE(memory.ok());

  runtime::Runtime runtime(std::make_unique<runtime::SimulatedClock>(platform, setup.disturbance));
  Checker checker(limits_of(setup, geometry));
  runtime.add_sink(&checker);
  ParameterWatch watch(layout, geometry, setup.method, setup.wire, setup.accelerators > 0);
  runtime.add_sink(&watch);
  offload::Devices devices;
  for (std::int32_t d = 0; d < setup.devices; ++d) {
    auto device = std::make_unique<csd::EmulatedCsd>(runtime, platform,
                                                     platform.devices[static_cast<std::size_t>(d)],
                                                     DeviceId{d}, 1 << 20, csd::Payload::none);
    devices.csds.push_back(device.get());
    devices.drives.push_back(std::move(device));
  }
  offload::Offload::Parts parts;
  parts.runtime = &runtime;
  parts.platform = &platform;
  parts.layout = &layout;
  parts.memory = memory->get();
  parts.devices = &devices;
  parts.state_layout = &state_layout;
  offload::Offload offload(options, parts);
  train::StepContext context{runtime, platform, offload, nullptr, layout, {}, 1};
  context.layer_costs.assign(layout.layers.size(), {20'000, 40'000});

  std::vector<state::SlotId> before;
  for (std::int32_t s = 0; s < geometry.subgroup_count(); ++s) {
    before.push_back(state_layout.current(SubgroupId{s}));
  }
  train::StepPlan plan;
  plan.decide = [&](const train::GradientSummary&) {
    return offload::StepDecision{
        .apply = true,
        .scalars = optimizer::update_scalars(optimizer::default_options(setup.rule), 1, 1.0)};
  };
  plan.position_after = [](const train::GradientSummary&) { return state::TrainingPosition{}; };
  // Each begins while the one before is still being updated, where the pipeline allows it.
  train::StepOutcome outcome;
  Status status;
  for (int step = 0; step < kSteps && status.ok(); ++step) {
    plan.step = step;
    outcome = {};
    status = runtime.run(train::training_step(context, plan, outcome));
  }
  const Status settled = runtime.run(offload.settle());
  if (status.ok()) status = settled;
  REQUIRE((checker.committed == kSteps) == status.ok());
  // Copy-on-write: with every commit all of the subgroups have moved, or none.
  std::int32_t moved_count = 0;
  for (std::int32_t s = 0; s < geometry.subgroup_count(); ++s) {
    if (state_layout.current(SubgroupId{s}) != before[static_cast<std::size_t>(s)]) ++moved_count;
  }
  REQUIRE(moved_count == (checker.committed % 2 == 1 ? geometry.subgroup_count() : 0));
  return {status.ok(), checker.submitted, runtime.now_ns()};
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
    setup.disturbance.seed = seed;
    setup.disturbance.delay_max_ns = seed % 11 == 0 ? 0 : 200'000;
    if (seed % 2 == 1) {
      setup.disturbance.failing_operation =
          static_cast<std::int64_t>(seed * 2654435761u % static_cast<std::uint64_t>(operations));
    }
    const Outcome outcome = run_step(setup);
    failed += outcome.ok ? 0 : 1;
    if (setup.disturbance.failing_operation < 0) REQUIRE(outcome.ok);
  }
  CHECK(failed > static_cast<std::int64_t>(
                     kSeedCount * 4 /
                     10));  // the failing operation may lie behind the last one of a short step
}

TEST_CASE("the same seed gives the same simulated step") {
  Setup setup;
  setup.disturbance = {.seed = 42, .delay_max_ns = 100'000};
  CHECK(run_step(setup).end_ns == run_step(setup).end_ns);
}
