#pragma once
// What must hold of every schedule of the offload, watched operation by operation: no extent is
// read or written while another operation writes it, no more subgroups are in flight than there
// are buffers, each step reads what the last applied one wrote, a commit finds all of it on the
// drives, and no layer is computed with other parameters than those of the last applied step.

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <vector>

#include "base/id_vector.h"
#include "core/model/flat_layout.h"
#include "core/offload/offload_options.h"
#include "core/runtime/operation.h"
#include "storage/state/state_layout.h"

namespace sluice {

using stages::Stage;

constexpr int kSteps = 3;

// replaced: as expected, of other gradients than had come first.
enum class Decision : std::uint8_t { expected, clipped, skipped, replaced };

// How the steps are decided, and which are by now. Where nothing is planted all are as expected.
struct Course {
  std::array<Decision, kSteps> decisions{};
  std::array<bool, kSteps> is_halted{};
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
  // From the halt on none begins before the decision.
  bool may_update(std::int64_t step) const {
    const auto at = static_cast<std::size_t>(step);
    return is_decided[at] || !is_halted[at];
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
    bool has_copy;                // and the first variable of all
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
    if (is_written(label)) check_slot(label);
    const bool is_last = label.step == kSteps - 1;
    if (label.stage == Stage::commit && !is_last) {
      REQUIRE((label.step + 1) % limits_.commit_every == 0);
    }
    if (label.stage == Stage::commit) check_all_written(label.step);
    if (label.stage == Stage::update) {
      REQUIRE(limits_.course.may_update(label.step));
      kernels_[label.subgroup] = {label.step, limits_.course.stands(label.step)};
      if (limits_.has_copy && limits_.share_one_set) enter_with_copy(label);
    }
  }

  void on_finish(const runtime::OperationState& state) override {
    const runtime::OperationLabel& label = state.operation.label;
    if (label.place_bytes >= 0) end_transfer(label);
    if (is_part_of_update(label)) {
      auto& subgroups = updating_[updater_of(label)];
      if (--subgroups[label.subgroup] == 0) subgroups.erase(label.subgroup);
    }
    if (is_written(label)) {
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
    stages::DriveFile file;
    DeviceId device;
    std::int64_t first;
    std::int64_t end;
    bool writes;
  };
  DeviceId updater_of(const runtime::OperationLabel& label) const {
    return limits_.device_map[static_cast<std::size_t>(index_of(label.subgroup))];
  }
  // To the drive: a copy in memory is copied for that before, under the same stage.
  static bool is_written(const runtime::OperationLabel& label) {
    return label.stage == Stage::state_write && label.place_bytes >= 0;
  }
  // What stays in memory is written from arrays of its own, perhaps only before a commit.
  bool is_part_of_update(const runtime::OperationLabel& label) const {
    const Stage stage = label.stage;
    if (stage == Stage::state_write && (!is_written(label) || stays(label))) return false;
    return stage == Stage::state_read || stage == Stage::move_state ||
           stage == Stage::gradient_read || stage == Stage::update || stage == Stage::state_write ||
           stage == Stage::parameter_write;
  }
  std::int64_t variable_of(const runtime::OperationLabel& label) const {
    const state::Geometry& geometry = limits_.geometry;
    const std::int64_t in_slot = label.place_bytes % geometry.slot_bytes();
    std::int32_t variable = geometry.variable_count - 1;
    while (geometry.bytes_before(variable) > in_slot) --variable;
    return variable;
  }
  bool is_kept(const runtime::OperationLabel& label) const {
    return limits_.kept.contains(label.subgroup);
  }
  bool is_copy(const runtime::OperationLabel& label) const {
    return limits_.has_copy && variable_of(label) == 0;
  }
  bool stays(const runtime::OperationLabel& label) const {
    return is_copy(label) || is_kept(label);
  }
  bool commits(std::int32_t step) const {
    return (step + 1) % limits_.commit_every == 0 || step == kSteps - 1;
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
    REQUIRE((commits(label.step) || !stays(label)));
  }
  // A step reads what the last one that was applied has written, all of it.
  void check_version(const runtime::OperationLabel& label) {
    const std::int64_t wanted = limits_.course.applied_before(label.step);
    if (wanted < 0) return;
    REQUIRE_FALSE((stays(label) && limits_.course.is_plain()));
    const Version& version = versions_[{label.device, label.place_bytes}];
    REQUIRE(version.subgroup == label.subgroup);
    REQUIRE(version.variable == variable_of(label));
    REQUIRE(version.content.is_of(wanted));
  }
  // A subgroup's data is in a variable's buffer from its read to the end of its write.
  void enter_buffer(const runtime::OperationLabel& label) {
    if (stays(label)) return;  // in arrays of its own
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
  // In a step that commits the copy is in the first variable's buffer from the update to the end of
  // its write.
  void enter_with_copy(const runtime::OperationLabel& label) {
    if (limits_.course.of(label.step) == Decision::skipped) return;
    if ((label.step + 1) % limits_.commit_every != 0) return;  // stays in its place
    SubgroupId& occupant = occupant_.try_emplace({label.device, 0}, kNoSubgroup).first->second;
    REQUIRE((occupant == kNoSubgroup || occupant == label.subgroup));
    occupant = label.subgroup;
  }
  static Range range_of(const runtime::OperationLabel& label) {
    return {*stages::stage_info(label.stage).file, label.device, label.place_bytes,
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

// A subgroup is updated once a step, when backward of all its layers has ended and its whole
// gradient is down.
class GradientWatch final : public runtime::OperationSink {
 public:
  GradientWatch(const model::FlatLayout& layout, const state::Geometry& geometry)
      : updated_ns(geometry.subgroup_count()),
        layout_(layout),
        geometry_(geometry),
        last_update_(geometry.subgroup_count(), -1),
        under_way_(geometry.subgroup_count(), 0) {
    backward_from_.fill(layout.layer_count());
  }

  void on_submit(const runtime::OperationState& state) override {
    const runtime::OperationLabel& label = state.operation.label;
    if (label.stage == Stage::update) {
      REQUIRE(last_update_[label.subgroup] == label.step - 1);
      REQUIRE(under_way_[label.subgroup] == 0);
      REQUIRE(backward_from_[label.step] <= lowest_layer(label.subgroup));
      last_update_[label.subgroup] = label.step;
    }
    if (!is_down(label)) return;
    REQUIRE(last_update_[label.subgroup] < state.step);
    under_way_[label.subgroup] += 1;
  }
  void on_finish(const runtime::OperationState& state) override {
    const runtime::OperationLabel& label = state.operation.label;
    if (is_down(label)) under_way_[label.subgroup] -= 1;
    if (label.stage == Stage::update) updated_ns[label.subgroup].push_back(state.end_ns);
    if (label.stage != Stage::backward || !state.status.ok()) return;
    backward_from_[state.step] = index_of(label.layer);
    if (index_of(label.layer) == 0) backward_ns.push_back(state.end_ns);
  }

  IdVector<SubgroupId, std::vector<TimeNs>> updated_ns;  // when each step's update ended
  std::vector<TimeNs> backward_ns;                       // and its backward

 private:
  static bool is_down(const runtime::OperationLabel& label) {
    return label.subgroup != kNoSubgroup &&
           (label.stage == Stage::gradient_down || label.stage == Stage::stage_gradient ||
            label.stage == Stage::compress);
  }
  std::int32_t lowest_layer(SubgroupId subgroup) const {
    std::int32_t layer = layout_.layer_count() - 1;
    while (layout_.layer(LayerId{layer}).first > geometry_.first_element(subgroup)) --layer;
    return layer;
  }

  const model::FlatLayout& layout_;
  state::Geometry geometry_;
  std::array<std::int32_t, kSteps> backward_from_{};  // the lowest layer that has ended
  IdVector<SubgroupId, std::int32_t> last_update_;    // its step
  IdVector<SubgroupId, std::int32_t> under_way_;      // of its gradient
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
        is_wide_(options.wire == offload::Wire::fp32 && options.has_16bit_copy()),
        element_bytes_(options.state_format.is_split() ? 2 : 4),
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
      const bool is_whole =
          progress.loads_to_take == 0 && progress.load_bytes % (count * element_bytes_) == 0;
      if (is_whole) progress.copy = old;
      return;
    }
    const bool is_wide = is_wide_ && !streams_;
    if (is_wide && progress.chunks_in != progress.chunks_up) return;
    const std::int64_t step_bytes = count * (is_wide ? 4 : 2);
    if (progress.up_bytes % step_bytes == 0)
      progress.copy = progress.is_loaded ? old : progress.kernel;
  }

  const model::FlatLayout& layout_;
  state::Geometry geometry_;
  offload::Method method_;
  bool is_wide_;                // parameters come up as the master weights
  std::int64_t element_bytes_;  // of the state's array that parameters are made of
  bool streams_;
  bool has_accelerators_;
  const Course& course_;
  std::map<LayerId, Reads> reads_;
  std::vector<Progress> subgroups_;
  std::map<LayerId, Arrival> arrivals_;
};

}  // namespace sluice
