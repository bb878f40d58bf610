#pragma once
// The activations that leave memory in a step, and their places on the drives: known before the run
// from the model's shape (core/model/kept_bytes.h).
//
// Thread contract: plain data; BlockPlaces belongs to one thread.

#include <cstdint>
#include <string>
#include <vector>

#include "base/id_vector.h"
#include "base/ids.h"
#include "base/parameter_span.h"
#include "core/model/activations.h"
#include "core/model/model_shape.h"

namespace sluice::activation {

struct ActivationPlan {
  // Bytes of the blocks of each layer, of one micro-batch; empty: nothing of the layer leaves.
  std::vector<std::vector<std::int64_t>> layer_blocks;
  // The bytes that each layer keeps of one micro-batch where it was computed, logits apart; empty:
  // not known.
  std::vector<std::int64_t> staying_bytes;
  int micro_step_count = 1;
  // The most bytes that have left a layer's forward and are still in memory, or are back before its
  // backward. The layer that is computed comes on top; one that is wider comes alone.
  std::int64_t buffer_bytes = 0;
  // Whether what a layer keeps of a micro-batch goes no further than host memory, by layer and
  // micro-batch; empty: nothing does.
  std::vector<bool> in_host;
  bool stays = false;  // the buffer that was asked for holds all of it, so nothing moves

  std::int64_t layer_bytes(LayerId layer) const;
  std::int64_t step_bytes() const;
  std::int64_t layer_staying_bytes(LayerId layer) const;
  bool is_in_host(LayerId layer, int micro_step) const;
  std::int64_t host_bytes() const;  // of a step, that go no further
  // Whether something is to leave, be it that there is room for all of it.
  bool offloads_anything() const;
};

// `buffer_bytes` of 0: twice the widest layer's. More than 0 is memory that the run has anyway: if
// all that is offloaded fits, it stays. What backward needs first goes no further than host
// memory, up to `host_bytes`.
ActivationPlan plan_activations(const model::ModelShape& shape, ParameterKind precision,
                                const model::LayerActivations& activations, std::int64_t batch,
                                std::int64_t sequence, int micro_step_count,
                                std::int64_t buffer_bytes, std::int64_t host_bytes);

// The activations kept of each layer, and their places: "0: nothing; 1 to 8: offload, 27.5 MB a
// micro-batch each; 9: keep, 2.1 MB a micro-batch".
std::string layers_text(const ActivationPlan& plan, const model::LayerActivations& activations);

// Each block of a step has a place of its own, a whole number of pages, on the drive that holds
// the fewest bytes so far.
class BlockPlaces {
 public:
  struct Place {
    DeviceId device = kNoDevice;
    std::int64_t offset_bytes = 0;
  };
  explicit BlockPlaces(std::int32_t drive_count) : used_bytes_(drive_count) {}

  Place next(std::int64_t size_bytes);
  void begin_step();
  std::int64_t used_bytes(DeviceId device) const { return used_bytes_[device]; }

 private:
  IdVector<DeviceId, std::int64_t> used_bytes_;
};

// The bytes that a step takes on each drive.
IdVector<DeviceId, std::int64_t> drive_bytes(const ActivationPlan& plan, std::int32_t drive_count);

}  // namespace sluice::activation
