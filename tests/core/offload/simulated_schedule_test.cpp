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
// ahead of it and is refuted is nowhere to be seen.

#include <array>
#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <set>

#include "core/offload/assembly.h"
#include "core/runtime/clocks.h"
#include "core/train/layer_traffic.h"
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

constexpr int kSteps = 3;

enum class Decision : std::uint8_t { expected, clipped, skipped };

// How the steps are decided, and which are by now. Where nothing is planted all are as expected.
struct Course {
  std::array<Decision, kSteps> decisions{};
  std::array<bool, kSteps> is_decided{};

  bool is_plain() const {
    return std::ranges::all_of(decisions, [](Decision d) { return d == Decision::expected; });
  }
  Decision of(std::int64_t step) const { return decisions[static_cast<std::size_t>(step)]; }
  // The last step before this one that was applied; -1: none.
  std::int64_t applied_before(std::int64_t step) const {
    while (--step >= 0 && of(step) == Decision::skipped) continue;
    return step;
  }
  // Whether an update that begins now is what the step's decision asks for.
  bool stands(std::int64_t step) const {
    return is_decided[static_cast<std::size_t>(step)] || of(step) == Decision::expected;
  }
};

// Which step's update made some values, and whether by its decision.
struct Content {
  std::int64_t step = -1;
  bool stands = true;
  bool is_of(std::int64_t wanted) const { return step == wanted && stands; }
};

// Watches every operation of a step.
class Checker final : public runtime::OperationSink {
 public:
  // At most N subgroups of a device are under way, in as many buffer sets, or, where they
  // share one set, with one subgroup's data in each variable's buffer.
  struct Limits {
    std::int32_t subgroups;
    bool share_one_set;
    state::Geometry geometry;
    state::DeviceMap device_map;  // which device updates what
    std::int32_t commit_every;
    const state::Layout& layout;  // what is committed
    std::set<SubgroupId> kept;    // whose state stays in memory
    const Course& course;
  };
  explicit Checker(const Limits& limits) : limits_(limits) {}

  void on_submit(const runtime::OperationState& state) override {
    const runtime::OperationLabel& label = state.operation.label;
    submitted += 1;
    if (label.place_bytes >= 0) begin_transfer(label);
    if (is_part_of_update(label)) {
      auto& subgroups = updating_[updater_of(label)];
      subgroups[label.subgroup] += 1;
      REQUIRE(std::ssize(subgroups) <= limits_.subgroups);
    }
    if (limits_.share_one_set && label.place_bytes >= 0) enter_buffer(label);
    if (label.stage == Stage::state_read) check_version(label);
    if (label.stage == Stage::state_write) check_slot(label);
    const bool is_last = label.step == kSteps - 1;
    if (label.stage == Stage::commit && !is_last) {
      REQUIRE((label.step + 1) % limits_.commit_every == 0);
    }
    if (label.stage == Stage::commit) check_all_written(label.step);
    if (label.stage == Stage::update) {
      kernels_[label.subgroup] = {label.step, limits_.course.stands(label.step)};
    }
  }

  void on_finish(const runtime::OperationState& state) override {
    const runtime::OperationLabel& label = state.operation.label;
    if (label.place_bytes >= 0) end_transfer(label);
    if (is_part_of_update(label)) {
      auto& subgroups = updating_[updater_of(label)];
      if (--subgroups[label.subgroup] == 0) subgroups.erase(label.subgroup);
    }
    if (label.stage == Stage::state_write) {
      occupant_[{updater_of(label), variable_of(label)}] = kNoSubgroup;
      Version& version = versions_[{label.device, label.place_bytes}];
      version = {};
      if (state.status.ok()) {
        version = {label.subgroup, variable_of(label), kernels_[label.subgroup]};
        written_bytes += label.size_bytes;
      }
    }
    if (label.stage == Stage::state_read) read_bytes += label.size_bytes;
    if (label.stage == Stage::commit && state.status.ok()) committed += 1;
    if (label.stage == Stage::move_state) {
      (label.place_bytes >= 0 ? read_elsewhere_bytes : brought_bytes) += label.size_bytes;
    }
  }

  std::int64_t submitted = 0;
  int committed = 0;
  std::int64_t read_elsewhere_bytes = 0;  // of state, from drives of other devices
  std::int64_t brought_bytes = 0;         // and into the memory of those that update it
  std::int64_t read_bytes = 0;            // of state, from the drive of the device that updates it
  std::int64_t written_bytes = 0;

 private:
  struct Range {
    runtime::DriveFile file;
    DeviceId device;
    std::int64_t first;
    std::int64_t end;
    bool writes;
  };
  DeviceId updater_of(const runtime::OperationLabel& label) const {
    return limits_.device_map[static_cast<std::size_t>(index_of(label.subgroup))];
  }
  // What stays in memory is written from arrays of its own, perhaps only before a commit.
  bool is_part_of_update(const runtime::OperationLabel& label) const {
    const Stage stage = label.stage;
    if (stage == Stage::state_write && is_kept(label)) return false;
    return stage == Stage::state_read || stage == Stage::move_state ||
           stage == Stage::gradient_read || stage == Stage::update || stage == Stage::state_write ||
           stage == Stage::parameter_write;
  }
  std::int64_t variable_of(const runtime::OperationLabel& label) const {
    return label.place_bytes / limits_.geometry.variable_bytes() % limits_.geometry.variable_count;
  }
  bool is_kept(const runtime::OperationLabel& label) const {
    return limits_.kept.contains(label.subgroup);
  }
  // What a commit names is on the drives: every version that was made last.
  void check_all_written(std::int64_t step) {
    const std::int64_t last = limits_.course.applied_before(step + 1);
    if (last < 0) return;
    std::set<std::pair<SubgroupId, std::int64_t>> written;
    for (const auto& [place, version] : versions_) {
      if (version.content.is_of(last)) written.insert({version.subgroup, version.variable});
    }
    REQUIRE(std::ssize(written) ==
            limits_.geometry.subgroup_count() * limits_.geometry.variable_count);
  }
  // A step does not write before what was to be committed is, and never where it lies.
  void check_slot(const runtime::OperationLabel& label) {
    REQUIRE(committed >= label.step / limits_.commit_every);
    const state::SlotId kept = limits_.layout.current(label.subgroup);
    const state::SlotId written{
        label.device, static_cast<std::int32_t>(label.place_bytes / limits_.geometry.slot_bytes())};
    REQUIRE_FALSE(written == kept);
    const bool commits = (label.step + 1) % limits_.commit_every == 0 || label.step == kSteps - 1;
    REQUIRE((commits || !is_kept(label)));
  }
  // A step reads what the last one that was applied has written, all of it.
  void check_version(const runtime::OperationLabel& label) {
    const std::int64_t wanted = limits_.course.applied_before(label.step);
    if (wanted < 0) return;
    REQUIRE_FALSE((is_kept(label) && limits_.course.is_plain()));
    const Version& version = versions_[{label.device, label.place_bytes}];
    REQUIRE(version.subgroup == label.subgroup);
    REQUIRE(version.variable == variable_of(label));
    REQUIRE(version.content.is_of(wanted));
  }
  // A subgroup's data is in a variable's buffer from its read to the end of its write.
  void enter_buffer(const runtime::OperationLabel& label) {
    if (is_kept(label)) return;  // in arrays of its own
    const bool reads = label.stage == Stage::state_read || label.stage == Stage::move_state;
    if (!reads && label.stage != Stage::state_write) return;
    if (limits_.course.of(label.step) == Decision::skipped) return;  // given up on the way
    const auto [place, is_new] =
        occupant_.try_emplace({updater_of(label), variable_of(label)}, kNoSubgroup);
    SubgroupId& occupant = place->second;
    const bool is_next_chunk = label.stage == Stage::move_state && occupant == label.subgroup;
    if (reads && !is_next_chunk) {
      REQUIRE(occupant == kNoSubgroup);
      occupant = label.subgroup;
    }
    REQUIRE(occupant == label.subgroup);
  }
  static Range range_of(const runtime::OperationLabel& label) {
    return {*runtime::stage_info(label.stage).file, label.device, label.place_bytes,
            label.place_bytes + label.size_bytes + label.padding_bytes,
            label.stage == Stage::state_write || label.stage == Stage::gradient_down ||
                label.stage == Stage::parameter_write};
  }
  void begin_transfer(const runtime::OperationLabel& label) {
    const Range range = range_of(label);
    for (const Range& other : in_flight_) {
      const bool overlap = other.file == range.file && other.device == range.device &&
                           other.first < range.end && range.first < other.end;
      const bool conflict = overlap && (other.writes || range.writes);
      REQUIRE_FALSE(conflict);
    }
    in_flight_.push_back(range);
  }
  void end_transfer(const runtime::OperationLabel& label) {
    const Range range = range_of(label);
    const auto found = std::find_if(in_flight_.begin(), in_flight_.end(), [&](const Range& other) {
      return other.file == range.file && other.device == range.device &&
             other.first == range.first && other.writes == range.writes;
    });
    REQUIRE(found != in_flight_.end());
    in_flight_.erase(found);
  }

  struct Version {
    SubgroupId subgroup = kNoSubgroup;
    std::int64_t variable = -1;
    Content content;
  };

  Limits limits_;
  std::map<std::pair<DeviceId, std::int64_t>, SubgroupId> occupant_;
  std::map<std::pair<DeviceId, std::int64_t>, Version> versions_;  // by place
  std::map<SubgroupId, Content> kernels_;                          // the last one
  std::vector<Range> in_flight_;
  std::map<DeviceId, std::map<SubgroupId, int>> updating_;
};

// A layer is computed with the parameters of the step before, all of them in place, and where there
// are accelerators on all of these.
class ParameterWatch final : public runtime::OperationSink {
 public:
  ParameterWatch(const model::FlatLayout& layout, const state::Geometry& geometry,
                 const offload::OffloadOptions& options, bool has_accelerators,
                 const Course& course)
      : layout_(layout),
        geometry_(geometry),
        method_(options.method),
        wire_(options.wire),
        streams_(options.streams_parameters()),
        has_accelerators_(has_accelerators),
        course_(course) {
    subgroups_.resize(static_cast<std::size_t>(geometry.subgroup_count()));
  }

  void on_submit(const runtime::OperationState& state) override {
    const runtime::OperationLabel& label = state.operation.label;
    if (comes_in(label)) arrivals_[label.layer].under_way += 1;
    if (label.stage == Stage::update) {
      progress_of(label).kernel = {label.step, course_.stands(label.step)};
      progress_of(label).is_loaded = false;
    }
    if (label.stage == Stage::load_state) progress_of(label).is_loaded = true;
    if (changes_copy(label.stage)) progress_of(label).copy = {-2, false};
    if (label.stage == Stage::parameter_read) {
      reads_[label.layer].pieces_left += 1;
      REQUIRE(progress_of(label).copy.is_of(course_.applied_before(state.step)));
    }
    const bool computes = label.stage == Stage::forward || label.stage == Stage::backward;
    if (!computes && label.stage != Stage::layer_in) return;
    const model::LayerRange& layer = layout_.layer(label.layer);
    if (streams_) check_read(label.layer, state.step);
    if (computes && has_accelerators_) {
      const std::int64_t passes = 2 * state.step + (label.stage == Stage::forward ? 1 : 2);
      REQUIRE(arrivals_[label.layer].under_way == 0);
      REQUIRE(arrivals_[label.layer].size_bytes == passes * layer.count * 2);
    }
    for (std::int64_t s = layer.first / geometry_.subgroup_elements;
         s * geometry_.subgroup_elements < layer.first + layer.count; ++s) {
      const Content& copy = subgroups_[static_cast<std::size_t>(s)].copy;
      REQUIRE(copy.is_of(course_.applied_before(state.step)));
    }
  }
  void on_finish(const runtime::OperationState& state) override {
    const runtime::OperationLabel& label = state.operation.label;
    if (comes_in(label)) arrivals_[label.layer].under_way -= 1;
    if (label.stage == Stage::layer_in) arrivals_[label.layer].size_bytes += label.size_bytes;
    if (label.stage == Stage::parameter_read && state.status.ok()) {
      read_bytes += label.size_bytes;
      if (reads_[label.layer].step != state.step) reads_[label.layer].size_bytes = 0;
      reads_[label.layer].step = state.step;
      reads_[label.layer].size_bytes += label.size_bytes;
    }
    if (label.stage == Stage::parameter_check) reads_[label.layer].pieces_left -= 1;
    if (label.stage == Stage::parameter_write && state.status.ok())
      written_bytes += label.size_bytes;
    if (label.subgroup == kNoSubgroup) return;
    Progress& progress = progress_of(label);
    const bool goes_up =
        label.stage == Stage::parameters_up || label.stage == Stage::parameter_write;
    if (goes_up) progress.up_bytes += label.size_bytes;
    if (label.stage == Stage::parameters_up) progress.chunks_up += 1;
    if (label.stage == Stage::parameters_in) progress.chunks_in += 1;
    if (label.stage == Stage::load_state) {
      progress.load_bytes += label.size_bytes;
      progress.loads_to_take += label.place_bytes >= 0 ? 1 : -1;
    }
    if (changes_copy(label.stage)) note_whole(state, progress);
  }

  std::int64_t read_bytes = 0;  // of parameters, from drives
  std::int64_t written_bytes = 0;

 private:
  struct Arrival {
    int under_way = 0;
    std::int64_t size_bytes = 0;  // from host memory, to all accelerators together
  };
  static bool comes_in(const runtime::OperationLabel& label) {
    return label.stage == Stage::layer_in || label.stage == Stage::peer_in;
  }
  struct Reads {
    std::int64_t pieces_left = 0;
    std::int32_t step = -1;
    std::int64_t size_bytes = 0;  // in that step
  };
  // All of it, in this step: once, or once more for backward.
  void check_read(LayerId layer, std::int32_t step) {
    const Reads& reads = reads_[layer];
    const std::int64_t size_bytes = layout_.layer(layer).count * 2;
    REQUIRE(reads.pieces_left == 0);
    REQUIRE(reads.step == step);
    REQUIRE((reads.size_bytes == size_bytes || reads.size_bytes == 2 * size_bytes));
  }
  struct Progress {
    std::int64_t up_bytes = 0;
    std::int64_t load_bytes = 0;  // of master weights that are read back
    std::int64_t loads_to_take = 0;
    bool is_loaded = false;  // since its last update
    std::int64_t chunks_up = 0;
    std::int64_t chunks_in = 0;
    Content kernel;
    Content copy;  // of the 16-bit copy
  };
  Progress& progress_of(const runtime::OperationLabel& label) {
    return subgroups_[static_cast<std::size_t>(index_of(label.subgroup))];
  }
  bool changes_copy(Stage stage) const {
    if (streams_) return stage == Stage::parameter_write;
    if (stage == Stage::load_state) return true;
    if (method_ == offload::Method::host) return stage == Stage::update;
    return stage == Stage::parameters_up || stage == Stage::parameters_in;
  }
  // The last piece of a subgroup's copy is in place.
  void note_whole(const runtime::OperationState& state, Progress& progress) const {
    const runtime::OperationLabel& label = state.operation.label;
    const std::int64_t count = geometry_.element_count(label.subgroup);
    const Content old{course_.applied_before(state.step), true};
    if (label.stage == Stage::load_state) {
      const bool is_whole = progress.loads_to_take == 0 && progress.load_bytes % (count * 4) == 0;
      if (is_whole) progress.copy = old;
      return;
    }
    const bool is_wide = wire_ == offload::Wire::fp32 && !streams_;
    if (is_wide && progress.chunks_in != progress.chunks_up) return;
    const std::int64_t step_bytes = count * (is_wide ? 4 : 2);
    if (progress.up_bytes % step_bytes == 0)
      progress.copy = progress.is_loaded ? old : progress.kernel;
  }

  const model::FlatLayout& layout_;
  state::Geometry geometry_;
  offload::Method method_;
  offload::Wire wire_;
  bool streams_;
  bool has_accelerators_;
  const Course& course_;
  std::map<LayerId, Reads> reads_;
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
  std::int32_t commit_every = 1;
  std::int64_t state_cache_bytes = 0;
  bool is_planted = false;  // overlap=exact, with these decisions
  std::array<Decision, kSteps> decisions{};
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
  options.gradient_tier = setup.gradient_tier;
  options.density = setup.density;
  options.prefetch = setup.prefetch;
  options.buffers = setup.buffers;
  options.overlap = setup.is_planted ? offload::Overlap::exact : offload::Overlap::off;
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
  return {subgroups, shares_one_set, layout.geometry(), device_map, setup.commit_every, layout,
          kept,      course};
}

struct Outcome {
  bool ok = false;
  std::int64_t submitted = 0;
  TimeNs end_ns = 0;
  std::int64_t moved_elements = 0;  // of subgroups that another device updates from now on
  std::int64_t read_elsewhere_bytes = 0;
  std::int64_t brought_bytes = 0;
  std::int64_t ahead_count = 0;  // subgroups updated before the decision
  std::int64_t refuted_count = 0;
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
  return {small_layout().parameter_count, setup.subgroup_elements,
          optimizer::rule_info(setup.rule).state_count(), setup.devices};
}

// The state of a subgroup that stays in memory is read once and written with each commit; any other
// is read and written in each step.
void check_bytes(const Checker& checker, const Checker::Limits& limits, const Setup& setup) {
  const std::int64_t commits = (kSteps + setup.commit_every - 1) / setup.commit_every;
  std::int64_t read_elements = 0;
  std::int64_t written_elements = 0;
  for (const SubgroupId subgroup : all_ids<SubgroupId>(limits.geometry.subgroup_count())) {
    const std::int64_t count = limits.geometry.element_count(subgroup);
    const bool is_kept = limits.kept.contains(subgroup);
    read_elements += count * (is_kept ? 1 : kSteps);
    written_elements += count * (is_kept ? commits : kSteps);
  }
  const std::int64_t element_bytes = 4 * limits.geometry.variable_count;
  // With method=host state that moves is read like any other.
  REQUIRE(checker.read_bytes + checker.read_elsewhere_bytes == element_bytes * read_elements);
  REQUIRE(checker.written_bytes == element_bytes * written_elements);
}

runtime::Operation layer_operation(train::StepContext& context, Stage stage, LayerId layer) {
  runtime::Operation operation;
  operation.runtime = &context.runtime;
  operation.label.stage = stage;
  operation.label.layer = layer;
  operation.cost.engine = context.platform.compute_engine;
  operation.cost.engine_dur_ns = 40'000;
  return operation;
}

using Traffic = train::LayerTraffic;

runtime::Task<Status> forward_layers(train::StepContext& context, Traffic& traffic) {
  for (const LayerId layer : all_ids<LayerId>(context.layout.layer_count())) {
    Status there = co_await traffic.next_layer();
    CO_RETURN_IF_ERROR(there);
    Status computed = co_await layer_operation(context, Stage::forward, layer);
    CO_RETURN_IF_ERROR(computed);
  }
  co_return ok_status();
}

runtime::Task<Status> backward_layers(train::StepContext& context, Traffic& traffic) {
  for (std::int32_t index = context.layout.layer_count(); index-- > 0;) {
    const LayerId layer{index};
    Status there = co_await traffic.next_layer();
    CO_RETURN_IF_ERROR(there);
    Result<runtime::Pool::Lease> lease = co_await context.offload.acquire_layer_gradient(layer);
    CO_RETURN_IF_ERROR(lease);
    Status computed = co_await layer_operation(context, Stage::backward, layer);
    CO_RETURN_IF_ERROR(computed);
    traffic.send_gradient(layer, std::move(*lease));
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
  Status computed = co_await backward_layers(context, traffic);
  Status finished = co_await traffic.finish();
  co_return computed.ok() ? finished : computed;
}

runtime::Task<Status> forward_and_backward(train::StepContext& context) {
  Status forward = co_await forward_pass(context);
  CO_RETURN_IF_ERROR(forward);
  Status backward = co_await backward_pass(context);
  CO_RETURN_IF_ERROR(backward);
  Status sent = co_await context.offload.gradients_sent();
  co_return sent;
}

// As train::training_step goes, with a decision that no gradient is needed for.
runtime::Task<Status> take_planted_step(train::StepContext& context, const train::StepPlan& plan,
                                        Course& course) {
  const std::int64_t step = plan.position.step;
  const offload::StepDecision expected = train::expected_decision(plan, 1);
  context.offload.begin_step(static_cast<std::int32_t>(step), 1, expected.scalars);
  Status computed = co_await forward_and_backward(context);
  CO_RETURN_IF_ERROR(computed);
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

runtime::Task<Status> planted_step(train::StepContext& context, const train::StepPlan& plan,
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
  const std::vector<plan::LayerCost> costs(layout.layers.size(), {20'000, 40'000});
  train::StepContext context{runtime, platform, offload, nullptr, layout, costs, 64};

  std::vector<state::SlotId> before;
  for (std::int32_t s = 0; s < geometry.subgroup_count(); ++s) {
    before.push_back(state_layout.current(SubgroupId{s}));
  }
  train::StepPlan plan;
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
  result.read_elsewhere_bytes = checker.read_elsewhere_bytes;
  result.brought_bytes = checker.brought_bytes;
  return result;
}

Outcome run_step(const Setup& setup) {
  const state::Geometry geometry = geometry_of(setup);
  std::vector<double> shares = rising_shares(setup.devices);
  state::Layout state_layout(geometry, state::make_device_map(geometry.subgroup_count(), shares));
  if (setup.moves) std::ranges::reverse(shares);
  return run_steps(setup, state_layout, state::make_device_map(geometry.subgroup_count(), shares));
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
    const auto one_of = [&](auto... values) {
      const std::array all{values...};
      return all[random() % all.size()];
    };
    Setup setup = plain;
    for (Decision& decision : setup.decisions) {
      decision = one_of(Decision::expected, Decision::clipped, Decision::skipped);
    }
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
    setup.disturbance.seed = seed;
    setup.disturbance.delay_max_ns = seed % 11 == 0 ? 0 : 200'000;
    if (seed % 2 == 1) {
      setup.disturbance.failing_operation =
          static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(operations));
    }
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
