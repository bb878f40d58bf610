#pragma once
// Dropout by counter: whether a value is dropped is a pure function of its window's key, the place
// in the model, and its index in the window. So a layer that is computed again drops the same
// values, nothing is kept for backward, and neither the number of micro-batches nor that of ranks
// nor a resume nor the device changes what is dropped. What stays is divided by the share that
// stays (Srivastava et al. 2014, as torch.nn.Dropout has it).
//
// Thread contract: the compute thread.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <utility>

#include "core/model/torch/attention.h"
#include "core/model/window_shape.h"

namespace sluice::model {

// A place where values are dropped.
struct DropPlace {
  double share = 0;            // that is dropped; 0: nothing is
  std::int64_t layer = 0;      // 0: the embedding
  std::uint32_t in_layer = 0;  // tells the places of a layer apart; below 256
};

// A run of values in each of `windows` windows, by their index there.
struct DropRange {
  std::int64_t first_window = 0;
  std::int64_t windows = 0;
  std::int64_t first = 0;
  std::int64_t count = 0;
};

class Dropout {
 public:
  Dropout() = default;  // drops nothing, as in validation
  // `keys`: int64, one a window, in [0, 2^32); lies where the layers compute.
  explicit Dropout(at::Tensor keys) : keys_(std::move(keys)) {}

  bool drops(const DropPlace& place) const { return keys_.defined() && place.share > 0; }
  // The rows of all windows (windows x sequence, width), with gradients where watched.
  at::Tensor of_rows(const at::Tensor& rows, const DropPlace& place) const;
  // Bools, (windows, count): true where a value stays.
  at::Tensor stays(const DropRange& range, const DropPlace& place) const;
  // The same by operations of libtorch, as on a device: for tests of it.
  at::Tensor stays_by_tensors(const DropRange& range, const DropPlace& place) const;
  const at::Tensor& keys() const { return keys_; }

 private:
  at::Tensor keys_;
};

// Attention as grouped_attention() without a mask and as many heads of keys as of queries, whose
// weights are dropped. In fp32, some heads of a window at a time: dropped_weights.h says
// how many. Keeps for backward what attention keeps.
at::Tensor dropped_attention(const at::Tensor& query, const at::Tensor& key,
                             const at::Tensor& value, WindowShape window, std::int64_t heads,
                             Sees sees, const at::Tensor& documents, const Dropout& dropout,
                             const DropPlace& place);

}  // namespace sluice::model
