#include "core/shard/share.h"

#include <algorithm>

#include "base/units.h"
#include "core/collective/shard.h"
#include "core/optimizer/gradient_stats.h"

namespace sluice::shard {

using collective::shard_of;
using model::FlatLayout;
using model::LayerRange;

FlatLayout parameter_part(const FlatLayout& model, std::int32_t part, std::int32_t parts) {
  FlatLayout layout;
  layout.first_stays = model.first_stays;
  for (const LayerRange& layer : model.layers) {
    const auto shard = shard_of(layer.count, parts, part, optimizer::kNormBlockElements);
    layout.layers.push_back({layer.name, layout.parameter_count, shard.count, shard.first,
                             layer.count - shard.first - shard.count});
    layout.parameter_count += shard.count;
  }
  return layout;
}

FlatLayout stretch_of(const FlatLayout& layout, const Stretch& stretch) {
  FlatLayout cut;
  cut.first_stays = layout.first_stays;
  for (const LayerRange& layer : layout.layers) {
    const std::int64_t end = stretch.first + stretch.count;
    const std::int64_t low = std::clamp(layer.first, stretch.first, end);
    const std::int64_t high = std::clamp(layer.first + layer.count, low, end);
    const std::int64_t skipped = std::min(low - layer.first, layer.count);
    const std::int64_t before = layer.before + std::max<std::int64_t>(0, skipped);
    cut.layers.push_back({layer.name, cut.parameter_count, high - low, before,
                          layer.layer_elements() - before - (high - low)});
    cut.parameter_count += high - low;
  }
  return cut;
}

std::vector<Stretch> owned_stretches(std::int64_t element_count, std::int64_t subgroup_elements,
                                     std::int32_t parts) {
  std::vector<Stretch> stretches;
  for (std::int32_t part = 0; part < parts; ++part) {
    const auto shard = shard_of(element_count, parts, part, subgroup_elements);
    stretches.push_back({shard.first, shard.count});
  }
  return stretches;
}

state::Share share_of(std::int32_t rank, const Triple& triple) {
  const std::int32_t parameters = triple.parameters.size();
  const std::int32_t state = triple.state.size();
  return {rank % parameters, parameters, rank % state / parameters, state / parameters};
}

Result<RankShare> plan_share(const FlatLayout& model, const Triple& triple, const Scope& mesh,
                             std::int32_t rank, std::int64_t subgroup_elements,
                             std::int64_t group_elements) {
  RETURN_IF_ERROR(check_triple(triple, mesh));
  RankShare plan;
  plan.triple = triple;
  plan.mesh = mesh;
  plan.rank = rank;
  plan.share = share_of(rank, triple);
  plan.parameters = parameter_part(model, plan.share.parameter_part, plan.share.parameter_parts);
  const auto count_of = [&](std::int32_t part) {
    return parameter_part(model, part, plan.share.parameter_parts).parameter_count;
  };
  const std::int64_t least = count_of(plan.share.parameter_parts - 1);
  if (divide_up(least, group_elements) < plan.share.state_parts) {
    return make_error(ErrorCode::config,
                      "shard_parameters={}, shard_state={}: {} parameters in blocks of {} are too "
                      "few for {} ranks to have a part of each; choose smaller scopes",
                      platform::scope_text(triple.parameters), platform::scope_text(triple.state),
                      model.parameter_count, optimizer::kNormBlockElements, triple.state.size());
  }
  // The same on all ranks.
  const std::int64_t even =
      round_up(divide_up(count_of(0), plan.share.state_parts), group_elements);
  plan.subgroup_elements = std::min(subgroup_elements, even);
  if (divide_up(least, plan.subgroup_elements) < plan.share.state_parts) {
    plan.subgroup_elements =
        std::max(group_elements, round_down(least / plan.share.state_parts, group_elements));
  }
  plan.owners = owned_stretches(plan.parameters.parameter_count, plan.subgroup_elements,
                                plan.share.state_parts);
  plan.state = stretch_of(plan.parameters, plan.owned());
  return plan;
}

Status fill_held(const FlatLayout& model, const FlatLayout& held, std::int64_t first,
                 std::span<float> out, const FillElements& of_model) {
  const std::int64_t end = first + std::ssize(out);
  for (std::size_t l = 0; l < held.layers.size(); ++l) {
    const LayerRange& layer = held.layers[l];
    const std::int64_t low = std::max(first, layer.first);
    const std::int64_t high = std::min(end, layer.first + layer.count);
    if (low >= high) continue;
    const std::int64_t first_of_model = model.layers[l].first + layer.before + (low - layer.first);
    RETURN_IF_ERROR(of_model(first_of_model, out.subspan(static_cast<std::size_t>(low - first),
                                                         static_cast<std::size_t>(high - low))));
  }
  return ok_status();
}

}  // namespace sluice::shard
