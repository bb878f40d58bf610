#pragma once
// Brings the layers' parameters to where they are computed with. With parameter_tier=memory
// they are there as soon as they are up. With parameter_tier=storage they come from the drives, as
// far ahead as the window has room, in the order in which a pass needs them; in forward each is
// read once the last update of it is written.
//
// An embedding whose table is whole stays from its forward to its backward, since the head may use
// it. Forward
// leaves the window as full as it was: what backward needs first is still there, and is not read
// again. Every piece is checked as it comes against what was written.
//
// Thread contract: the schedule's thread.

#include <deque>

#include "core/offload/buffer_pool.h"
#include "core/offload/parameter_arrival.h"
#include "core/offload/parameter_pages.h"
#include "core/offload/parameter_source.h"
#include "core/offload/parameter_store.h"
#include "core/offload/update_sites.h"
#include "core/runtime/operation.h"

namespace sluice::offload {

class HostKernels;

class ParameterCarrier final : public ParameterSource {
 public:
  // No subgroup of the state has any of a base.
  enum class Weights : std::uint8_t { trained, base };
  struct Parts {  // all outlive the carrier
    runtime::Runtime& runtime;
    const model::FlatLayout& layout;
    const OffloadOptions& options;
    const state::DeviceMap& device_map;
    const HostKernels& kernels;
    const Drives& drives;
    BufferPool& bounces;
    ParameterStore& store;
    ParameterArrival& arrival;
    ParameterSpan parameters;  // empty: no payload
    Weights weights = Weights::trained;
  };
  explicit ParameterCarrier(const Parts& parts);

  void begin_pass(Pass pass) override { begin(pass, 0); }
  // A forward of the layers from this one on.
  void begin_forward_at(LayerId first) { begin(Pass::forward, index_of(first)); }
  runtime::Task<Status> bring(LayerId layer) override;
  void done(LayerId layer) override;
  runtime::Task<Status> finish_pass() override;
  bool comes_ahead() const override { return true; }
  TimeNs completed_ns() const override { return parts_.arrival.completed_ns(); }

  // Until all that the last update has changed are up.
  runtime::Event::Awaiter updated() {
    return parts_.arrival.wait(LayerId{parts_.layout.layer_count() - 1});
  }
  // In memory at most so far, beside the embedding: whole pages.
  std::int64_t resident_peak_bytes() const { return resident_peak_bytes_; }

 private:
  enum class Whereabouts : std::uint8_t { away, coming, here };
  struct Layer {
    Layer(runtime::Runtime& runtime, std::int64_t bytes) : size_bytes(bytes), there(runtime) {}
    std::int64_t size_bytes;  // of its pages
    Whereabouts whereabouts = Whereabouts::away;
    bool is_used = false;  // this pass needs it no more
    std::int64_t pieces_left = 0;
    runtime::Event there;
  };

  Layer& at(LayerId layer) { return layers_[static_cast<std::size_t>(index_of(layer))]; }
  bool stays(LayerId layer) const { return parts_.layout.stays(layer); }
  void begin(Pass pass, std::int32_t first);
  runtime::Task<Status> fetch_all();
  runtime::Task<Status> fetch(LayerId layer);
  bool make_room(LayerId layer);
  void start(LayerId layer);
  void end_reading(LayerId layer);
  void drop(LayerId layer);
  void change_resident(LayerId layer, std::int64_t change_bytes);
  runtime::Task<Status> read(LayerId layer, const ParameterStore::Piece& piece);
  runtime::Operation transfer(LayerId layer, const ParameterStore::Piece& piece,
                              std::span<std::byte> bounce) const;
  runtime::Operation taking(LayerId layer, const ParameterStore::Piece& piece,
                            std::span<std::byte> bounce);
  Status take(LayerId layer, const ParameterStore::Piece& piece,
              std::span<const std::byte> bounce) const;
  // In the record.
  SubgroupId named(SubgroupId subgroup) const {
    return parts_.weights == Weights::trained ? subgroup : kNoSubgroup;
  }
  DeviceId device_of(SubgroupId subgroup) const {
    return parts_.device_map[static_cast<std::size_t>(index_of(subgroup))];
  }

  Parts parts_;
  std::int64_t buffer_bytes_;
  ParameterPages pages_;
  std::deque<Layer> layers_;
  std::deque<runtime::Pool> readers_;  // by device: pieces that are read or checked at once
  Pass pass_ = Pass::forward;
  std::int32_t first_ = 0;  // of its layers
  bool is_over_ = true;     // the pass: nothing more is fetched
  std::int64_t resident_bytes_ = 0;
  std::int64_t resident_peak_bytes_ = 0;
  runtime::Event room_;
  runtime::TaskGroup fetching_;
  runtime::TaskGroup reading_;
};

}  // namespace sluice::offload
