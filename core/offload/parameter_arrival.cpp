#include "core/offload/parameter_arrival.h"

#include <algorithm>

namespace sluice::offload {

ParameterArrival::ParameterArrival(runtime::Runtime& runtime, const model::FlatLayout& layout,
                                   const state::Geometry& geometry)
    : runtime_(runtime),
      next_(layout.layers.size()),
      has_arrived_(geometry.subgroup_count(), 1),
      arrived_below_(geometry.subgroup_count()) {
  for (const model::LayerRange& layer : layout.layers) {
    const std::int64_t last_element = std::max<std::int64_t>(layer.first + layer.count, 1) - 1;
    last_subgroup_.push_back(static_cast<std::int32_t>(last_element / geometry.subgroup_elements));
    is_up_.emplace_back(runtime).set();
  }
}

void ParameterArrival::expect_all() {
  CHECK(is_complete());
  for (runtime::Event& event : is_up_) event.reset();
  std::ranges::fill(has_arrived_, 0);
  next_ = 0;
  arrived_below_ = 0;
}

void ParameterArrival::arrived(SubgroupId subgroup) {
  char& has_arrived = has_arrived_[subgroup];
  CHECK_EQ(has_arrived, 0);
  has_arrived = 1;
  const std::int32_t count = has_arrived_.count();
  while (arrived_below_ < count && has_arrived_[SubgroupId{arrived_below_}] != 0) {
    arrived_below_ += 1;
  }
  while (next_ < last_subgroup_.size() && last_subgroup_[next_] < arrived_below_) {
    is_up_[next_].set();
    next_ += 1;
  }
  if (is_complete()) completed_ns_ = runtime_.now_ns();
}

runtime::Event::Awaiter ParameterArrival::wait(LayerId layer) {
  runtime::Waiting waiting;
  waiting.what = "the parameters of its subgroups";
  waiting.layer = layer;
  return is_up_[static_cast<std::size_t>(index_of(layer))].wait(waiting);
}

}  // namespace sluice::offload
