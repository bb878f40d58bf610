// The sum of squares of a subgroup is that of its own elements, in the order that norm_plan.h
// defines, wherever its borders lie in the blocks of the norm.

#include "core/offload/norm_plan.h"

#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <random>

#include "core/offload/subgroup_clip.h"
#include "core/optimizer/loss_scale.h"

using namespace sluice;
using namespace sluice::offload;
using optimizer::GradientStats;
using optimizer::kNormBlockElements;

namespace {

model::FlatLayout layout_of_layers(const std::vector<std::int64_t>& layer_counts) {
  model::FlatLayout layout;
  for (const std::int64_t count : layer_counts) {
    layout.layers.push_back({"layer", layout.parameter_count, count});
    layout.parameter_count += count;
  }
  return layout;
}

// A run of at most a block: 16 interleaved sums, added pairwise.
double sum_of_run(const float* values, std::int64_t count) {
  std::array<double, 16> sums{};
  for (std::int64_t i = 0; i < count; ++i) {
    double& sum = sums[static_cast<std::size_t>(i % 16)];
    sum = std::fma(static_cast<double>(values[i]), static_cast<double>(values[i]), sum);
  }
  for (const std::size_t width : {8, 4, 2, 1}) {
    for (std::size_t k = 0; k < width; ++k) sums[k] += sums[k + width];
  }
  return sums[0];
}

// Elements [first, end) of the model, layer by layer, cut at the borders of the layers' blocks.
double plain_sum(const model::FlatLayout& layout, const std::vector<float>& gradient,
                 std::int64_t first, std::int64_t end) {
  double total = 0;
  for (const model::LayerRange& layer : layout.layers) {
    double segment = 0;
    const std::int64_t segment_end = std::min(end, layer.first + layer.count);
    for (std::int64_t at = std::max(first, layer.first); at < segment_end;) {
      const std::int64_t block = (at - layer.first) / kNormBlockElements;
      const std::int64_t next =
          std::min(segment_end, layer.first + (block + 1) * kNormBlockElements);
      segment += sum_of_run(gradient.data() + at, next - at);
      at = next;
    }
    total += segment;
  }
  return total;
}

std::vector<float> random_gradient(std::int64_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> gradient(static_cast<std::size_t>(count));
  for (float& value : gradient) value = normal(random);
  return gradient;
}

// The whole gradient, noted as backward gives it: from the last layer down.
void note_all(SubgroupClip& clip, const model::FlatLayout& layout,
              const std::vector<float>& gradient) {
  for (std::int32_t l = layout.layer_count(); l-- > 0;) {
    const model::LayerRange& layer = layout.layer(LayerId{l});
    const auto* bytes = reinterpret_cast<const std::byte*>(gradient.data() + layer.first);
    const GradientStats stats =
        clip.note_gradient(LayerId{l}, bytes, optimizer::GradientKind::fp32);
    const GradientStats whole =
        optimizer::gradient_stats(bytes, optimizer::GradientKind::fp32, layer.count);
    REQUIRE((stats.sum_of_squares == whole.sum_of_squares || std::isnan(whole.sum_of_squares)));
    REQUIRE(stats.finite == whole.finite);
  }
}

struct Case {
  model::FlatLayout layout;
  state::Geometry geometry;
};

Case random_case(std::mt19937_64& random) {
  constexpr std::int64_t kBlock = kNormBlockElements;
  const auto one_of = [&](std::initializer_list<std::int64_t> values) {
    return values.begin()[random() % values.size()];
  };
  std::vector<std::int64_t> layers;
  for (std::uint64_t i = 0; i < 1 + random() % 4; ++i) {
    layers.push_back(one_of({1, 100, kBlock - 1, kBlock, kBlock + 1, 3 * kBlock,
                             1 + static_cast<std::int64_t>(random() % (4 * kBlock))}));
  }
  Case made{layout_of_layers(layers), {}};
  made.geometry = {made.layout.parameter_count,
                   one_of({500, kBlock / 4, kBlock, kBlock + 7, 2 * kBlock, 5 * kBlock,
                           1 + static_cast<std::int64_t>(random() % (3 * kBlock))}),
                   3, 1};
  return made;
}

}  // namespace

TEST_CASE("a subgroup's norm is that of its elements, in the defined order, for 100 layouts") {
  std::mt19937_64 random(7);
  std::int64_t whole_blocks = 0, clipped = 0, unclipped = 0;
  for (int i = 0; i < 100; ++i) {
    CAPTURE(i);
    const Case made = random_case(random);
    const NormPlan plan(made.layout, made.geometry);
    SubgroupClip clip(plan, made.geometry);
    const ClipRule rule{.update = {},
                        .optimizer_step = 3,
                        .loss_scale = 2,
                        .remaining_loss_scale = 2,
                        .max_grad_norm = std::sqrt(made.layout.parameter_count) / 2};
    clip.begin(rule);
    const std::vector<float> gradient = random_gradient(made.layout.parameter_count, random());
    note_all(clip, made.layout, gradient);
    std::int32_t clipped_count = 0;
    for (const SubgroupId subgroup : all_ids<SubgroupId>(made.geometry.subgroup_count())) {
      const std::int64_t first = made.geometry.first_element(subgroup);
      const std::int64_t count = made.geometry.element_count(subgroup);
      const double norm = std::sqrt(plain_sum(made.layout, gradient, first, first + count)) / 2;
      const double limit =
          rule.max_grad_norm *
          std::sqrt(static_cast<double>(count) / static_cast<double>(made.layout.parameter_count));
      const double factor = std::min(1.0, limit / (norm + 1e-6));
      REQUIRE(clip.is_finite(subgroup));
      REQUIRE(clip.is_clipped(subgroup) == (factor < 1));
      REQUIRE(clip.scalars(subgroup) == optimizer::update_scalars(rule.update, 3, 0.5 * factor));
      clipped_count += factor < 1 ? 1 : 0;
    }
    REQUIRE(clip.clipped_count() == clipped_count);
    clipped += clipped_count;
    unclipped += made.geometry.subgroup_count() - clipped_count;
    for (const LayerId layer : all_ids<LayerId>(made.layout.layer_count())) {
      REQUIRE(plan.part_elements(layer) <= made.layout.layer(layer).count);
      whole_blocks += plan.parts(layer).empty() ? 1 : 0;
    }
  }
  CHECK(whole_blocks > 0);
  CHECK(clipped > 100);
  CHECK(unclipped > 100);
}

TEST_CASE("what all subgroups apply at their limits has the norm that all may have") {
  const Case made{layout_of_layers({40'000, 70'000, 3}), {110'003, 9'000, 3, 1}};
  const NormPlan plan(made.layout, made.geometry);
  SubgroupClip clip(plan, made.geometry);
  clip.begin({.update = optimizer::default_options(optimizer::RuleKind::sgd), .max_grad_norm = 2});
  const std::vector<float> gradient = random_gradient(made.layout.parameter_count, 3);
  note_all(clip, made.layout, gradient);
  double applied = 0;
  for (const SubgroupId subgroup : all_ids<SubgroupId>(made.geometry.subgroup_count())) {
    const std::int64_t first = made.geometry.first_element(subgroup);
    const double scale = std::get<optimizer::SgdScalars>(clip.scalars(subgroup)).grad_scale;
    applied +=
        scale * scale *
        plain_sum(made.layout, gradient, first, first + made.geometry.element_count(subgroup));
  }
  CHECK(clip.clipped_count() == made.geometry.subgroup_count());
  CHECK(std::sqrt(applied) == Approx(2).epsilon(1e-5));
}

TEST_CASE("without a limit nothing is clipped, whatever the norm") {
  const Case made{layout_of_layers({40'000}), {40'000, 9'000, 3, 1}};
  const NormPlan plan(made.layout, made.geometry);
  SubgroupClip clip(plan, made.geometry);
  const ClipRule rule{.update = {}, .max_grad_norm = 0};
  clip.begin(rule);
  note_all(clip, made.layout, random_gradient(40'000, 5));
  CHECK(clip.clipped_count() == 0);
  CHECK(clip.scalars(SubgroupId{2}) == optimizer::update_scalars(rule.update, 1, 1));
}

TEST_CASE("an element that is not finite is found with its layer and its subgroup, alone") {
  const Case made{layout_of_layers({40'000, 30'000}), {70'000, 9'000, 3, 1}};
  const NormPlan plan(made.layout, made.geometry);
  SubgroupClip clip(plan, made.geometry);
  const std::vector<float> gradient = random_gradient(made.layout.parameter_count, 5);
  for (std::int64_t at = 0; at < 70'000; at += 613) {
    std::vector<float> broken = gradient;
    broken[static_cast<std::size_t>(at)] = at % 2 == 0 ? INFINITY : NAN;
    clip.begin({.update = {}, .max_grad_norm = 1});
    note_all(clip, made.layout, broken);
    const auto place = clip.not_finite();
    REQUIRE(place);
    REQUIRE(index_of(place->layer) == (at < 40'000 ? 0 : 1));
    REQUIRE(index_of(place->subgroup) == at / 9'000);
    for (const SubgroupId subgroup : all_ids<SubgroupId>(made.geometry.subgroup_count())) {
      REQUIRE(clip.is_finite(subgroup) == (subgroup != place->subgroup));
    }
  }
  clip.begin({.update = {}, .max_grad_norm = 1});
  note_all(clip, made.layout, gradient);
  CHECK_FALSE(clip.not_finite());
}
