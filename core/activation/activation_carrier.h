#pragma once
// Moves what layers keep for their backward to the drives and back, or from an accelerator to host
// memory and back where the plan says so, as the schedule of a step:
//
//   begin_step()
//   for each layer up, each micro-batch:
//     room(layer)             waits until enough of what left earlier layers is written
//     (forward computes it)
//     leave(layer, m)         writes it, beside the next forward
//   for each layer down, each micro-batch:
//     bring_back(layer, m)    it is there; what is needed next is on its way, as far as room goes
//     (backward uses it)
//     done(layer, m)
//   finish()                  nothing is under way; also after a failure
//
// A block that is still being written when backward comes near stays in memory: it is not read
// back, and a write that has not begun is not made. Every block is checked when it is back against
// what left.
//
// The runtime's sinks are told how long room() and bring_back() waited, and how many bytes of
// activations are alive where: of layers that nothing leaves as well.
//
// Thread contract: the schedule's thread.

#include <array>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "core/activation/activation_plan.h"
#include "core/csd/drive.h"
#include "core/model/compute_device.h"
#include "core/model/flat_layout.h"
#include "core/model/kept_blocks.h"
#include "core/platform/platform.h"
#include "core/runtime/sync.h"

namespace sluice::activation {

class ActivationCarrier {
 public:
  struct Parts {  // all outlive the carrier
    runtime::Runtime& runtime;
    const platform::Platform& platform;
    const IdVector<DeviceId, std::unique_ptr<csd::Drive>>& drives;
    const model::FlatLayout& layout;
    const ActivationPlan& plan;
    model::KeptBlocks* blocks = nullptr;  // null: no payload, and the plan's bytes
    // Where the model computes, if that is a device with memory of its own: its blocks cross to
    // host memory and back. What it has not ended after so long ends the run.
    model::ComputeDevice* device = nullptr;
    TimeNs device_patience_ns = 0;
  };
  explicit ActivationCarrier(const Parts& parts);

  void begin_step();
  runtime::Task<Status> room(LayerId layer);
  void leave(LayerId layer, int micro_step);
  runtime::Task<Status> bring_back(LayerId layer, int micro_step);
  void done(LayerId layer, int micro_step);
  runtime::Task<Status> finish();

  // Since the carrier was made. Kept is what one layer keeps of one micro-batch.
  struct Counts {
    std::int64_t written_bytes = 0;
    std::int64_t read_bytes = 0;
    std::int64_t host_bytes = 0;  // that went to host memory and no further
    std::int64_t forwarded = 0;   // kept that backward found in memory though they were leaving
    std::int64_t cancelled = 0;   // of these, those whose write had not begun and was not made
    std::int64_t resident_peak_bytes = 0;  // of what is offloaded, with the layer that is computed
    // How long forward or backward of each layer waited, by stages::ActivationWait.
    std::vector<std::array<TimeNs, stages::kActivationWaitCount>> layer_wait_ns;
    TimeNs wait_ns(stages::ActivationWait why) const;
  };
  const Counts& counts() const { return counts_; }

 private:
  struct Block {
    BlockPlaces::Place place = {};
    std::byte* data = nullptr;
    std::int64_t size_bytes = 0;
    std::uint64_t checksum = 0;
  };
  enum class Whereabouts : std::uint8_t { nowhere, leaving, away, coming, here };
  struct Kept {
    Kept(runtime::Runtime& runtime, LayerId of_layer, int of_micro_step)
        : layer(of_layer), micro_step(of_micro_step), there(runtime) {}
    LayerId layer;
    int micro_step;
    bool is_in_host = false;  // it goes no further than host memory
    Whereabouts whereabouts = Whereabouts::nowhere;
    bool is_being_written = false;
    bool is_wanted = false;  // by backward, while it is leaving
    bool is_used = false;    // backward is over, and the write is not
    std::int64_t size_bytes = 0;
    std::array<std::int64_t, stages::kActivationTierCount> held_bytes{};
    std::vector<Block> blocks;
    runtime::Event there;
  };

  Kept* find(LayerId layer, int micro_step);
  runtime::Event::Awaiter room_changes(LayerId layer);
  runtime::Task<Status> write(Kept& kept);
  runtime::Task<Status> write_blocks(Kept& kept);
  void note_size(Kept& kept);
  Status list(Kept& kept);
  runtime::Task<Status> cross(const Kept& kept, platform::Direction direction);
  void set_crossing_work(const Kept& kept, platform::Direction direction, model::BytePart part,
                         runtime::Operation& operation) const;
  runtime::Task<Status> move_blocks(const Kept& kept, platform::Direction direction);
  runtime::Task<Status> read(Kept& kept);
  runtime::Task<Status> read_blocks(Kept& kept);
  Status release(Kept& kept);
  void fetch_ahead();
  void fetch_next();
  void end_write(Kept& kept);
  void drop(Kept& kept);
  void change_resident(std::int64_t change_bytes);
  void hold(Kept& kept, stages::ActivationTier tier, std::int64_t size_bytes);
  void change_live(stages::ActivationTier tier, std::int64_t change_bytes);
  void note_wait(stages::ActivationWait why, LayerId layer, TimeNs from_ns);
  bool crosses() const { return !parts_.platform.accelerator_routes.empty(); }
  // Where forward computes.
  stages::ActivationTier here() const {
    return crosses() ? stages::ActivationTier::accelerator : stages::ActivationTier::host;
  }
  bool has_device() const { return parts_.device != nullptr; }
  static void take_blocks(Kept& kept, std::span<const model::KeptBlock> blocks);
  Status make_room(Kept& kept);
  Status check(Kept& kept);
  Status sum(Kept& kept);
  std::string text_of(const Kept& kept) const;
  runtime::Operation kernel(stages::Stage stage, const Kept& kept,
                            const runtime::InlineFunction& work);
  runtime::Operation transfer(platform::Direction direction, const Kept& kept,
                              const Block& block) const;

  Parts parts_;
  BlockPlaces places_;
  std::deque<Kept> kept_;         // in the order in which backward needs them
  std::vector<std::int32_t> at_;  // in kept_, by layer and micro-batch; -1: nothing of it leaves
  std::size_t next_ = 0;          // of kept_, that is neither back nor on its way
  bool goes_backward_ = false;
  std::int64_t resident_bytes_ = 0;
  std::int64_t computing_bytes_ = 0;  // of what backward uses now
  std::array<std::int64_t, stages::kActivationTierCount> live_bytes_{};
  runtime::Pool turns_;
  runtime::Event room_;
  runtime::TaskGroup leaving_;
  runtime::TaskGroup coming_;
  Counts counts_;
};

}  // namespace sluice::activation
