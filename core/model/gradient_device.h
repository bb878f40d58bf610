#pragma once
// Gradient work where the gradients are (docs/accelerator.md): a device with memory of its own
// checks a layer's gradients and selects their largest elements, so that only what is sent crosses
// to the host. The bits are those of the host: sums over the fixed blocks of
// core/optimizer/gradient_stats.h, the order of core/compress/selection.h, the accumulation of
// core/compress/error_feedback.h.
//
// One layer after the other, from the last to the first, each once its backward has ended:
//   check, sums_out; then, if the gradients so far are finite and are selected from,
//   select for each segment of the layer, kept_out.
//
// Thread contract: as ComputeDevice, but for prepare(), which blocks: between steps, while nothing
// is under way.

#include <cstdint>
#include <span>
#include <vector>

#include "core/model/compute_device.h"

namespace sluice::model {

// Elements of a layer among which the largest are selected.
struct DeviceSegment {
  std::int64_t flat_first = 0;    // element of the model
  std::int64_t layer_offset = 0;  // element of the layer
  std::int64_t count = 0;
  std::int64_t kept_first = 0;  // element of what the layer keeps
  std::int64_t kept_count = 0;
  std::int64_t first_index = 0;  // added to the index of each element that is kept
};

// Elements of a layer, of one block of the norm, whose squares are summed apart as well.
struct DevicePart {
  std::int64_t layer_offset = 0;
  std::int64_t count = 0;
};

struct DeviceSelection {
  std::vector<std::vector<DeviceSegment>> segments;  // by layer; empty: every element is sent
  bool has_feedback = false;  // what is not sent is added to the next gradient, on the device
  std::vector<std::vector<DevicePart>> parts;  // by layer; empty: blocks alone are summed

  bool is_empty() const { return segments.empty(); }
  std::span<const DevicePart> parts_of(LayerId layer) const {
    if (parts.empty()) return {};
    return parts[static_cast<std::size_t>(index_of(layer))];
  }
  const std::vector<DeviceSegment>& of(LayerId layer) const {
    return segments[static_cast<std::size_t>(index_of(layer))];
  }
  std::int64_t kept_count(LayerId layer) const {
    std::int64_t count = 0;
    for (const DeviceSegment& segment : of(layer)) count += segment.kept_count;
    return count;
  }
};

// An index and a value of each element that is kept: two arrays, one behind the other.
constexpr std::int64_t kept_bytes(std::int64_t count) { return count * 8; }
struct KeptPlace {  // in host memory
  std::uint32_t* indices = nullptr;
  float* values = nullptr;
};

class GradientDevice {
 public:
  virtual ~GradientDevice() = default;

  // The elements that are summed and selected from now on. A residual that was there stays while
  // feedback goes on; a new one is zeros. Errors: ErrorCode::memory.
  virtual Status prepare(const DeviceSelection& selection) = 0;

  // Sums of squares of the layer's blocks, and behind them of its parts, in the device's memory.
  virtual Status check(LayerId layer, int gradient, WhenDone done) = 0;
  // A part of them: 8 bytes a sum.
  virtual Status sums_out(BytePart part, double* block_sums, WhenDone done) = 0;
  // `scale` makes gradients of different steps comparable; used with feedback alone.
  virtual Status select(LayerId layer, int gradient, int segment, float scale, WhenDone done) = 0;
  // A part of what the layer keeps: kept_bytes().
  virtual Status kept_out(LayerId layer, BytePart part, const KeptPlace& into, WhenDone done) = 0;
  // The step was skipped: what the layer had kept goes back into the residual.
  virtual Status put_back(LayerId layer, const KeptPlace& from, WhenDone done) = 0;
  // A part of the residual of the whole model.
  virtual Status residual_out(BytePart part, std::byte* residual, WhenDone done) = 0;
  virtual Status residual_in(BytePart part, const std::byte* residual, WhenDone done) = 0;
};

}  // namespace sluice::model
