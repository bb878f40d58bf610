#pragma once
// The optimizer state of a run, on devices: gradients go down layer by layer while backward goes
// on, each subgroup is read, updated and written in the order that `pipeline` says, parameters come
// back, and a commit makes the new version current.
//
// A step, in order (core/train/training_step.cpp):
//   begin_step(step, ...)   from here on state may be read ahead (prefetch)
//   parameters_up(layer)    before the layer's forward
//   send_gradient(layer)    once a layer, from the last to the first
//   gradients_sent()        all of them are on the drives; norm and overflow are known
//   update(decision)        every subgroup updated, parameters in place; or all skipped
//   commit(position)        when all is written
//
// Where `Parts::device_map` gives a subgroup to another device than its state lies on, its next
// update reads the state there and writes the next version here: it has moved with that commit, and
// nothing was transferred for it alone. With method=csd the other drive's bytes cross the host link
// for that once (move_state.cpp).
//
// With pipeline=nbuffer neither update() nor commit() waits: subgroups are updated and written
// while the next step's forward follows their parameters up, layer by layer; its backward runs
// beside the last writes. A subgroup's state is read for the next update as soon as it is written
// and a buffer is free; that update waits for the commit. settle() waits for all of it.
//
// Thread contract: the schedule's thread.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/csd/csd_device.h"
#include "core/model/flat_layout.h"
#include "core/model/trainable_model.h"
#include "core/offload/gradient_format.h"
#include "core/offload/gradient_plan.h"
#include "core/offload/offload_memory.h"
#include "core/offload/parameter_arrival.h"
#include "core/optimizer/gradient_stats.h"
#include "core/platform/platform.h"
#include "core/runtime/sync.h"
#include "storage/state/state_store.h"

namespace sluice::offload {

// What the update does with the gradients that have gone down.
struct StepDecision {
  bool apply = true;  // false: overflow, nothing is updated
  optimizer::UpdateScalars scalars;
};

// Where a run's devices are: drives for method=host, CSDs for method=csd.
struct Devices {
  std::vector<std::unique_ptr<csd::Drive>> drives;  // one a device
  std::vector<csd::CsdDevice*> csds;                // the same ones, or empty for method=host
  std::vector<io::File> gradient_files;             // scratch, one a device; empty: no payload
};

class Offload {
 public:
  struct Parts {
    runtime::Runtime* runtime = nullptr;
    const platform::Platform* platform = nullptr;
    const model::FlatLayout* layout = nullptr;
    OffloadMemory* memory = nullptr;
    Devices* devices = nullptr;
    state::Layout* state_layout = nullptr;
    state::StateStore* store = nullptr;  // null: no payload
    // Which device updates each subgroup and gets its next version; empty: the one it lies on.
    state::DeviceMap device_map = {};
    std::span<std::uint16_t> parameters;  // the 16-bit copy; empty: no payload
  };
  Offload(const OffloadOptions& options, const Parts& parts);
  ~Offload();

  // Before the first step: writes and commits a new state, or loads the 16-bit copy from one.
  using FillInitial = std::function<void(std::int64_t first, std::span<float> out)>;
  runtime::Task<Status> create_state(const FillInitial& fill,
                                     const state::TrainingPosition& position);
  runtime::Task<Status> load_parameters();

  // The loss scale is that of the gradients to come; the residual is kept without it.
  void begin_step(std::int32_t step, double loss_scale);
  // Waits until this layer and all below have the parameters of the last update.
  runtime::Event::Awaiter parameters_up(LayerId layer) { return arrival_.wait(layer); }
  const ParameterArrival& arrival() const { return arrival_; }
  // Waits for one of the two layer gradients to be free.
  runtime::Pool::Awaiter acquire_layer_gradient(LayerId layer);
  model::LayerGradient layer_gradient(const runtime::Pool::Lease& lease, LayerId layer);
  // Starts sending; the lease is given back as soon as the gradients have left it.
  void send_gradient(LayerId layer, runtime::Pool::Lease lease);
  runtime::Task<Status> gradients_sent();
  // Sum of squares over all layers in order, and whether all are finite. After gradients_sent().
  optimizer::GradientStats gradient_stats() const;
  // By what the gradients that have gone down are larger than those of the loss: the loss scale, or
  // 1 with error feedback, which takes it out.
  double gradient_scale() const { return options_.has_feedback() ? 1 : loss_scale_; }
  runtime::Task<Status> update(const StepDecision& decision);
  runtime::Task<Status> commit(const state::TrainingPosition& position);
  // What the last step has left to do is done, its commit too.
  runtime::Task<Status> settle();
  // After a failure: waits until nothing of the step is left, so that buffers and files may go.
  runtime::Task<Status> drain();

  const state::CommitRecord& record() const { return record_; }
  const OffloadOptions& options() const { return options_; }

 private:
  struct DeviceLine;  // what one device's subgroups wait for

  // gradient_send.cpp
  runtime::Task<Status> send_layer(LayerId layer, runtime::Pool::Lease lease);
  runtime::Task<Status> stage_layer(LayerId layer, runtime::Pool::Lease lease,
                                    runtime::TaskGroup& writes);
  runtime::Task<Status> write_chunk(const GradientChunk& chunk, runtime::Pool::Lease bounce);
  std::span<std::byte> gradient_store(const GradientChunk& chunk) const;
  runtime::Operation check_operation(LayerId layer, std::span<std::byte> gradient);
  runtime::Operation stage_operation(LayerId layer, const GradientChunk& chunk,
                                     std::span<std::byte> gradient, std::span<std::byte> bounce);
  runtime::Operation carry_operation(LayerId layer, std::span<std::byte> gradient);
  csd::DrivePlace gradient_place(SubgroupId subgroup) const;

  // gradient_compress.cpp
  runtime::Task<Status> compress_layer(LayerId layer, std::span<std::byte> gradient,
                                       runtime::TaskGroup& writes);
  runtime::Task<Status> send_sparse(SubgroupId subgroup, runtime::TaskGroup& writes);
  runtime::Task<Status> write_sparse(SubgroupId subgroup, runtime::Pool::Lease buffer);
  runtime::Task<Status> put_back();
  runtime::Operation compress_operation(LayerId layer, const GradientSegment& segment,
                                        std::span<std::byte> gradient);
  runtime::Operation encode_operation(SubgroupId subgroup, std::span<std::byte> bytes);

  // pipeline_*.cpp: all subgroups of a device, or of all devices
  struct StepUpdate;
  runtime::Task<Status> start_update(StepUpdate& update, bool reads_ahead);
  void start_pipeline(StepUpdate& update);
  runtime::Task<Status> finish_step(state::TrainingPosition position, StepUpdate& update);
  runtime::Task<Status> make_commit(const state::TrainingPosition& position);
  std::size_t round_count() const;  // most subgroups of a device
  runtime::Task<Status> update_in_step();
  runtime::Task<Status> update_round(std::size_t round);
  runtime::Task<Status> update_stripes(std::size_t round);
  using VariableLeases = std::array<runtime::Pool::Lease, optimizer::kMaxStateArrays>;
  runtime::Task<Status> update_by_handover();
  runtime::Task<Status> handover_subgroup(SubgroupId subgroup, runtime::TaskGroup& lazy);
  runtime::Task<Status> write_moments(SubgroupId subgroup, const BufferSet& set,
                                      VariableLeases variables);
  runtime::Task<Status> update_by_nbuffer(DeviceId device, StepUpdate& update);
  runtime::Task<Status> nbuffer_subgroup(SubgroupId subgroup, runtime::Pool& state_turn,
                                         runtime::Pool::Lease set_lease, StepUpdate& update);
  runtime::Task<Status> bring_parameters(SubgroupId subgroup, const BufferSet& set);

  // subgroup_update.cpp
  csd::Owner update_owner(runtime::Stage stage, SubgroupId subgroup) const {
    return {stage, subgroup, kNoLayer, update_step_};
  }
  // Of the version that a step updates: written by the one before it, committed or not yet.
  state::SlotId source_slot(SubgroupId subgroup, const StepUpdate& update) const;
  runtime::Operation state_read(SubgroupId subgroup, std::int32_t variable, const BufferSet& set,
                                const StepUpdate& update);
  runtime::Operation state_write(SubgroupId subgroup, std::int32_t variable, const BufferSet& set);
  runtime::Task<Status> read_all(SubgroupId subgroup, const BufferSet& set);
  runtime::Task<Status> update_one(SubgroupId subgroup, const BufferSet& set);
  runtime::Task<Status> read_state(SubgroupId subgroup, const BufferSet& set,
                                   const StepUpdate& update);
  runtime::Task<Status> read_gradient(SubgroupId subgroup, const BufferSet& set);
  runtime::Task<Status> write_state(SubgroupId subgroup, const BufferSet& set);
  runtime::Task<Status> send_parameters_up(SubgroupId subgroup, const BufferSet& set);
  runtime::Task<Status> send_parameter_chunk(SubgroupId subgroup, const BufferSet& set,
                                             std::int64_t first, std::int64_t count,
                                             runtime::TaskGroup& staged);
  runtime::Task<Status> narrow_parameters(SubgroupId subgroup, std::int64_t first,
                                          std::int64_t count, runtime::Pool::Lease lease);
  csd::UpdateCommand update_command(SubgroupId subgroup, const BufferSet& set) const;
  runtime::Operation update_operation(const csd::UpdateCommand& command,
                                      csd::UpdatedChecksums& updated, DeviceId device);
  runtime::Operation read_operation(DeviceId device, const csd::Owner& owner,
                                    const csd::Transfer& transfer);
  runtime::Operation write_operation(DeviceId device, const csd::Owner& owner,
                                     const csd::Transfer& transfer);
  csd::DrivePlace state_place(state::SlotId slot, std::int32_t variable,
                              std::int64_t element_count) const;

  // initial_state.cpp
  runtime::Task<Status> create_subgroup(SubgroupId subgroup, const FillInitial& fill);
  runtime::Task<Status> load_subgroup(SubgroupId subgroup);
  // move_state.cpp
  bool crosses_devices(SubgroupId subgroup) const;
  runtime::Task<Status> bring_state(SubgroupId subgroup, const BufferSet& set);
  runtime::Task<Status> bring_variable(SubgroupId subgroup, std::int32_t variable,
                                       const BufferSet& set);
  runtime::Task<Status> for_each_subgroup_of(DeviceId device, const FillInitial* fill);

  runtime::Operation host_kernel(const runtime::OperationLabel& label, std::int64_t elements);
  bool has_payload() const { return parts_.store != nullptr; }
  runtime::Runtime& runtime() const { return *parts_.runtime; }
  const state::Geometry& geometry() const { return parts_.state_layout->geometry(); }
  // That updates it. Where its state lies so far, the layout says.
  DeviceId device_of(SubgroupId subgroup) const {
    return parts_.device_map[static_cast<std::size_t>(index_of(subgroup))];
  }
  bool is_moving(SubgroupId subgroup) const {
    return parts_.state_layout->device(subgroup) != device_of(subgroup);
  }
  bool moves_any() const;

  OffloadOptions options_;
  Parts parts_;
  GradientFormat gradient_format_;
  GradientPlan gradient_plan_;                       // of dense ones
  std::vector<std::int64_t> gradient_offset_bytes_;  // by subgroup, in its device's scratch file
  std::vector<std::vector<csd::GradientChunkCheck>> gradient_checks_;  // by subgroup
  std::vector<optimizer::GradientStats> layer_stats_;
  state::CommitRecord record_;  // of the last commit, and of the next one while it is made
  std::vector<state::SlotId> next_slot_;
  std::vector<csd::UpdatedChecksums> next_checksums_;

  runtime::Pool layer_gradients_;
  runtime::Pool bounces_;
  runtime::Pool sparse_buffers_;
  runtime::Pool staging_turn_;  // layers are staged one after the other: they share the carry
  std::vector<std::unique_ptr<DeviceLine>> lines_;
  runtime::Event gradients_ready_;
  ParameterArrival arrival_;
  std::int32_t update_step_ = 0;  // whose update is under way, or was last
  StepDecision decision_;
  double loss_scale_ = 1;
  std::int32_t compressed_from_layer_ = 0;  // of this step: that layer and all above
  runtime::TaskGroup sends_;
  runtime::TaskGroup starts_;  // the update's start, once the step before is committed
  // A step's update. nbuffer begins the next one while this goes on, so that there are two.
  struct StepUpdate {
    explicit StepUpdate(runtime::Runtime& runtime)
        : committed(runtime), all_read(runtime), tasks(runtime) {
      all_read.set();
    }
    std::int32_t step = 0;
    runtime::Event committed;       // the step before is: its slots are free
    std::int32_t unread_count = 0;  // nbuffer: subgroups
    runtime::Event all_read;        // they are: the next step's reads are not in their way
    runtime::TaskGroup tasks;
  };
  StepUpdate& this_update() { return step_updates_[this_update_]; }
  StepUpdate& last_update() { return step_updates_[1 - this_update_]; }
  std::array<StepUpdate, 2> step_updates_;
  std::size_t this_update_ = 0;  // of the step under way
  runtime::TaskGroup tail_;      // nbuffer: what is left of the step's updates, and its commit
};

// Bytes of a device's scratch file for gradients.
std::int64_t gradient_file_bytes(const GradientFormat& format, const state::DeviceMap& device_map,
                                 DeviceId device, const OffloadOptions& options);

}  // namespace sluice::offload
