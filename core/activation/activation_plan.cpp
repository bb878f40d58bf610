#include "core/activation/activation_plan.h"

#include <algorithm>
#include <numeric>

#include "base/units.h"
#include "core/model/kept_bytes.h"
#include "core/model/layer_places.h"

namespace sluice::activation {

std::int64_t ActivationPlan::layer_bytes(LayerId layer) const {
  const auto& blocks = layer_blocks[static_cast<std::size_t>(index_of(layer))];
  return std::accumulate(blocks.begin(), blocks.end(), std::int64_t{0});
}

std::int64_t ActivationPlan::step_bytes() const {
  std::int64_t bytes = 0;
  for (const LayerId layer : all_ids<LayerId>(static_cast<std::int32_t>(layer_blocks.size())))
    bytes += micro_step_count * layer_bytes(layer);
  return bytes;
}

std::int64_t ActivationPlan::layer_staying_bytes(LayerId layer) const {
  const auto at = static_cast<std::size_t>(index_of(layer));
  return at < staying_bytes.size() ? staying_bytes[at] : 0;
}

bool ActivationPlan::is_in_host(LayerId layer, int micro_step) const {
  const auto at = static_cast<std::size_t>(index_of(layer) * micro_step_count + micro_step);
  return at < in_host.size() && in_host[at];
}

std::int64_t ActivationPlan::host_bytes() const {
  std::int64_t bytes = 0;
  for (const LayerId layer : all_ids<LayerId>(static_cast<std::int32_t>(layer_blocks.size()))) {
    for (int m = 0; m < micro_step_count; ++m) {
      if (is_in_host(layer, m)) bytes += layer_bytes(layer);
    }
  }
  return bytes;
}

bool ActivationPlan::offloads_anything() const {
  return std::ranges::any_of(layer_blocks, [](const auto& blocks) { return !blocks.empty(); });
}

namespace {

// As much as would leave of a layer that nothing leaves.
std::int64_t kept_in_place_bytes(const model::ModelShape& shape, LayerId layer, std::int64_t batch,
                                 std::int64_t sequence, model::Activations choice,
                                 ParameterKind precision) {
  if (model::is_offloaded(choice)) return 0;
  const auto blocks =
      model::kept_block_bytes(shape, layer, batch, sequence,
                              model::is_recomputed(choice) ? model::Activations::offload_inputs
                                                           : model::Activations::offload,
                              precision);
  return std::accumulate(blocks.begin(), blocks.end(), std::int64_t{0});
}

// In the order in which backward needs them, up to the first that does not fit.
void choose_in_host(ActivationPlan& plan, std::int64_t host_bytes) {
  const auto layer_count = static_cast<std::int32_t>(plan.layer_blocks.size());
  plan.in_host.assign(static_cast<std::size_t>(layer_count * plan.micro_step_count), false);
  for (std::int32_t l = layer_count; l-- > 0;) {
    const std::int64_t size_bytes = plan.layer_bytes(LayerId{l});
    for (int m = 0; size_bytes > 0 && m < plan.micro_step_count; ++m) {
      if (size_bytes > host_bytes) return;
      host_bytes -= size_bytes;
      plan.in_host[static_cast<std::size_t>(l * plan.micro_step_count + m)] = true;
    }
  }
}

}  // namespace

ActivationPlan plan_activations(const model::ModelShape& shape, ParameterKind precision,
                                const model::LayerActivations& activations, std::int64_t batch,
                                std::int64_t sequence, int micro_step_count,
                                std::int64_t buffer_bytes, std::int64_t host_bytes) {
  ActivationPlan plan;
  plan.micro_step_count = micro_step_count;
  plan.buffer_bytes = buffer_bytes;
  for (const LayerId layer : all_ids<LayerId>(layer_places(shape).count())) {
    plan.layer_blocks.push_back(
        model::kept_block_bytes(shape, layer, batch, sequence, activations.of(layer), precision));
    plan.staying_bytes.push_back(
        kept_in_place_bytes(shape, layer, batch, sequence, activations.of(layer), precision));
    if (buffer_bytes == 0) {
      plan.buffer_bytes = std::max(plan.buffer_bytes, 2 * plan.layer_bytes(layer));
    }
  }
  plan.stays = buffer_bytes > 0 && plan.step_bytes() <= buffer_bytes;
  if (!plan.stays) choose_in_host(plan, host_bytes);
  return plan;
}

std::string layers_text(const ActivationPlan& plan, const model::LayerActivations& activations) {
  const auto count = static_cast<std::int32_t>(plan.layer_blocks.size());
  const auto words_of = [&](std::int32_t layer) {
    const std::int64_t size_bytes =
        plan.layer_bytes(LayerId{layer}) + plan.layer_staying_bytes(LayerId{layer});
    if (size_bytes == 0) return std::string("nothing");
    const model::LayerActivations choice(activations.of(LayerId{layer}));
    return fmt::format("{}, {} a micro-batch", choice.text(), format_bytes(size_bytes));
  };
  std::string text;
  for (std::int32_t first = 0; first < count;) {
    const std::string words = words_of(first);
    std::int32_t end = first + 1;
    while (end < count && words_of(end) == words) end += 1;
    const std::string layers =
        end == first + 1 ? fmt::format("{}", first) : fmt::format("{} to {}", first, end - 1);
    text += fmt::format("{}{}: {}{}", text.empty() ? "" : "; ", layers, words,
                        end == first + 1 || words == "nothing" ? "" : " each");
    first = end;
  }
  return text;
}

BlockPlaces::Place BlockPlaces::next(std::int64_t size_bytes) {
  DeviceId emptiest{0};
  for (const DeviceId device : ids_of(used_bytes_)) {
    if (used_bytes_[device] < used_bytes_[emptiest]) emptiest = device;
  }
  const Place place{emptiest, used_bytes_[emptiest]};
  used_bytes_[emptiest] += round_up(size_bytes, kPageBytes);
  return place;
}

void BlockPlaces::begin_step() {
  for (const DeviceId device : ids_of(used_bytes_)) used_bytes_[device] = 0;
}

IdVector<DeviceId, std::int64_t> drive_bytes(const ActivationPlan& plan, std::int32_t drive_count) {
  BlockPlaces places(drive_count);
  for (std::size_t l = 0; !plan.stays && l < plan.layer_blocks.size(); ++l) {
    for (int m = 0; m < plan.micro_step_count; ++m) {
      if (plan.is_in_host(LayerId{static_cast<std::int32_t>(l)}, m)) continue;
      for (const std::int64_t size_bytes : plan.layer_blocks[l]) places.next(size_bytes);
    }
  }
  IdVector<DeviceId, std::int64_t> bytes;
  for (const DeviceId device : all_ids<DeviceId>(drive_count)) {
    bytes.push_back(places.used_bytes(device));
  }
  return bytes;
}

}  // namespace sluice::activation
