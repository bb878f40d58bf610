#include "core/train/shard_traffic.h"

#include <algorithm>

#include "core/offload/offload.h"
#include "core/offload/parameter_carrier.h"
#include "core/offload/step_gradients.h"
#include "core/optimizer/gradient_stats.h"
#include "core/train/shard_groups.h"

namespace sluice::train {
namespace {

using offload::Pass;
using optimizer::kNormBlockElements;
using shard::Stretch;

}  // namespace

ShardTraffic::ShardTraffic(const Parts& parts)
    : parts_(parts), is_here_(parts.layout.layers.size(), 0), shares_(parts.runtime) {
  if (parts.share.is_gathered()) {
    pages_ = std::make_unique<offload::ParameterPages>(parts.layout, parts.parameters);
  }
  for (std::size_t part = 0; part < parts.share.owners.size(); ++part) {
    shared_.emplace_back(parts.runtime).set();
  }
}

// Parameters that are there at the beginning of a forward are of the update before.
void ShardTraffic::begin_pass(Pass pass) {
  pass_ = pass;
  if (pass == Pass::backward) return;
  for (const LayerId layer : all_ids<LayerId>(parts_.layout.layer_count())) give_back(layer);
}

bool ShardTraffic::comes_ahead() const {
  return overlaps(pass_ == Pass::forward ? shard::Overlap::gather_forward
                                         : shard::Overlap::gather_backward);
}

TimeNs ShardTraffic::completed_ns() const {
  return std::max(completed_ns_, parts_.offload.parameters().completed_ns());
}

runtime::Task<Status> ShardTraffic::bring(LayerId layer) {
  Status current = co_await wait_for_owners(layer);
  CO_RETURN_IF_ERROR(current);
  char& is_here = is_here_[static_cast<std::size_t>(index_of(layer))];
  if (pages_ == nullptr || is_here != 0) co_return ok_status();
  is_here = 1;
  pages_->take(layer);
  const model::LayerRange& whole = parts_.layout.layer(layer);
  const model::LayerRange& part = parts_.share.parameters.layer(layer);
  Status gathered = co_await parts_.groups.gather(
      parts_.runtime, layer, parts_.part.subspan(part.first, part.count),
      parts_.parameters.subspan(whole.first, whole.count));
  co_return gathered;
}

bool ShardTraffic::stays(LayerId layer) const {
  const std::int32_t last = parts_.layout.layer_count() - 1;
  return pass_ == Pass::forward && (index_of(layer) == 0 || index_of(layer) == last);
}

void ShardTraffic::done(LayerId layer) {
  if (!stays(layer)) give_back(layer);
}

void ShardTraffic::give_back(LayerId layer) {
  char& is_here = is_here_[static_cast<std::size_t>(index_of(layer))];
  if (pages_ == nullptr || is_here == 0) return;
  is_here = 0;
  pages_->give_back(layer);
}

runtime::Task<Status> ShardTraffic::reduce(LayerId layer, std::span<float> whole) {
  offload::StepGradients& gradients = parts_.offload.gradients();
  const model::LayerRange& range = parts_.share.parameters.layer(layer);
  if (parts_.share.is_gathered()) {
    Status scattered =
        co_await parts_.groups.scatter(parts_.runtime, layer, whole, {range.before, range.count});
    CO_RETURN_IF_ERROR(scattered);
  }
  const std::span<float> part = shard::elements_of(whole, {range.before, range.count});
  if (!part.empty() && parts_.groups.has_replicas()) {
    Status reduced = co_await parts_.groups.reduce(parts_.runtime, layer, part);
    CO_RETURN_IF_ERROR(reduced);
  }
  Status summed = co_await sum_squares(layer, part);
  CO_RETURN_IF_ERROR(summed);
  if (parts_.share.is_gathered()) {
    const std::int64_t block_count = optimizer::norm_block_count(range.layer_elements());
    Status gathered = co_await parts_.groups.gather_sums(
        parts_.runtime, layer,
        {gradients.block_sums(layer).into, static_cast<std::size_t>(block_count)},
        {divide_up(range.before, kNormBlockElements), optimizer::norm_block_count(range.count)});
    CO_RETURN_IF_ERROR(gathered);
  }
  gradients.note_block_sums(layer);
  co_return ok_status();
}

// Parts begin with a block, unless they are empty.
runtime::Operation ShardTraffic::sum_squares(LayerId layer, std::span<float> part) {
  const std::int64_t before = parts_.share.parameters.layer(layer).before;
  offload::StepGradients& gradients = parts_.offload.gradients();
  double* const sums = gradients.block_sums(layer).into + divide_up(before, kNormBlockElements);
  return gradients.check(layer, std::ssize(part), [part, sums] {
    double* into = sums;
    const auto* bytes = reinterpret_cast<const std::byte*>(part.data());
    for (std::int64_t first = 0; first < std::ssize(part); first += kNormBlockElements) {
      const std::int64_t count = std::min(kNormBlockElements, std::ssize(part) - first);
      *into++ = optimizer::gradient_stats(bytes + first * 4, optimizer::GradientKind::fp32, count)
                    .sum_of_squares;
    }
    return ok_status();
  });
}

void ShardTraffic::share_updated() {
  if (shared_.size() == 1) return;
  for (runtime::Event& event : shared_) event.reset();
  shares_.spawn(share_all());
}

runtime::Task<Status> ShardTraffic::share_all() {
  for (std::int32_t part = 0; part < std::ssize(shared_); ++part) {
    const auto at = static_cast<std::size_t>(part);
    if (part == parts_.share.share.state_part) {
      Status updated = co_await parts_.offload.parameters().updated();
      CO_RETURN_IF_ERROR(updated);
    }
    const Stretch& stretch = parts_.share.owners[at];
    Status shared = co_await parts_.groups.share(parts_.runtime, part,
                                                 parts_.part.subspan(stretch.first, stretch.count));
    CO_RETURN_IF_ERROR(shared);
    shared_[at].set();
  }
  completed_ns_ = parts_.runtime.now_ns();
  co_return ok_status();
}

// One owner's own update is what it waits for itself.
runtime::Task<Status> ShardTraffic::wait_for_owners(LayerId layer) {
  if (shared_.size() == 1) {
    Status updated = co_await parts_.offload.parameters().bring(layer);
    co_return updated;
  }
  const model::LayerRange& range = parts_.share.parameters.layer(layer);
  for (std::size_t part = 0; part < shared_.size(); ++part) {
    const Stretch& stretch = parts_.share.owners[part];
    const bool has_some =
        stretch.first < range.first + range.count && range.first < stretch.first + stretch.count;
    if (!has_some) continue;
    Status shared =
        co_await shared_[part].wait(offload::waiting_for("its parameters from their owner", layer));
    CO_RETURN_IF_ERROR(shared);
  }
  co_return ok_status();
}

runtime::Task<Status> ShardTraffic::settle() {
  Status settled = co_await shares_.join();
  co_return settled;
}

}  // namespace sluice::train
