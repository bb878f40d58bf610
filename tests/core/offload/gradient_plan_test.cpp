// Every gradient is written once, on page boundaries, whatever the layers and subgroups are.

#include "core/offload/gradient_plan.h"

#include <catch2/catch.hpp>
#include <random>

using namespace sluice;
using namespace sluice::offload;

namespace {

model::FlatLayout layout_of(const std::vector<std::int64_t>& layer_counts) {
  model::FlatLayout layout;
  for (const std::int64_t count : layer_counts) {
    layout.layers.push_back({"layer", layout.parameter_count, count});
    layout.parameter_count += count;
  }
  return layout;
}

// Carries the plan out on numbers: element i of the flat gradients has value i. Returns what the
// drives would hold, by subgroup, -1 where nothing was written.
std::vector<std::vector<std::int64_t>> carry_out(const GradientPlan& plan,
                                                 const model::FlatLayout& layout,
                                                 const state::Geometry& geometry,
                                                 std::int64_t page_elements) {
  std::vector<std::vector<std::int64_t>> drives;
  for (std::int32_t s = 0; s < geometry.subgroup_count(); ++s) {
    drives.emplace_back(static_cast<std::size_t>(geometry.element_count(SubgroupId{s})), -1);
  }
  std::vector<std::int64_t> carry;
  for (std::size_t l = layout.layers.size(); l-- > 0;) {
    const std::int64_t first = layout.layers[l].first;
    for (const GradientChunk& chunk : plan.layers[LayerId{static_cast<std::int32_t>(l)}].chunks) {
      auto& drive = drives[static_cast<std::size_t>(index_of(chunk.subgroup))];
      REQUIRE(chunk.first % page_elements == 0);
      REQUIRE(chunk.count <= plan.bounce_elements);
      const bool ends_subgroup = chunk.first + chunk.count == std::ssize(drive);
      REQUIRE((ends_subgroup || chunk.count % page_elements == 0));
      const std::int64_t carried = chunk.count - chunk.layer_count;
      REQUIRE(carried <= std::ssize(carry));
      for (std::int64_t i = 0; i < chunk.count; ++i) {
        std::int64_t& element = drive[static_cast<std::size_t>(chunk.first + i)];
        REQUIRE(element == -1);  // never twice
        element = i < chunk.layer_count ? first + chunk.layer_offset + i
                                        : carry[static_cast<std::size_t>(i - chunk.layer_count)];
      }
    }
    const LayerGradientPlan& layer = plan.layers[LayerId{static_cast<std::int32_t>(l)}];
    if (layer.carry_count > 0) {
      std::vector<std::int64_t> next;
      for (std::int64_t i = 0; i < layer.carry_count; ++i) next.push_back(first + i);
      for (std::int64_t i = 0; i < layer.carry_kept_count; ++i) {
        next.push_back(carry[static_cast<std::size_t>(i)]);
      }
      REQUIRE(std::ssize(next) < page_elements);
      carry = std::move(next);
    }
  }
  return drives;
}

void check_all(const std::vector<std::int64_t>& layers, std::int64_t subgroup_elements,
               int element_bytes, std::int64_t bounce_pages) {
  const model::FlatLayout layout = layout_of(layers);
  state::Geometry geometry;
  geometry.parameter_count = layout.parameter_count;
  geometry.subgroup_elements = subgroup_elements;
  const GradientPlan plan =
      make_gradient_plan(layout, geometry, element_bytes, bounce_pages * kPageBytes);
  const auto drives = carry_out(plan, layout, geometry, kPageBytes / element_bytes);
  std::int64_t expected = 0;
  for (const auto& drive : drives) {
    for (const std::int64_t element : drive) REQUIRE(element == expected++);
  }
  REQUIRE(expected == layout.parameter_count);
}

}  // namespace

TEST_CASE("one layer, one subgroup") { check_all({5000}, 5000, 4, 2); }

TEST_CASE("layers shorter than a page, and subgroups shorter than a page") {
  check_all({3, 1, 7, 2, 5000, 1, 1, 1}, 100'000, 4, 4);
  check_all({3, 1, 7, 2, 500, 1, 1, 1}, 10, 4, 4);
  check_all({1, 1, 1}, 1, 2, 1);
}

TEST_CASE("layer and subgroup borders that fall on page borders") {
  check_all({1024, 2048, 1024}, 1024, 4, 1);
  check_all({1024, 2048, 1024}, 2048, 4, 8);
}

TEST_CASE("2,000 random layouts") {
  std::mt19937_64 random(7);
  const auto upto = [&](std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(1, most)(random);
  };
  for (int i = 0; i < 2000; ++i) {
    std::vector<std::int64_t> layers;
    for (std::int64_t l = upto(8); l > 0; --l) layers.push_back(upto(upto(2) == 1 ? 30 : 6000));
    check_all(layers, upto(upto(2) == 1 ? 50 : 9000), upto(2) == 1 ? 2 : 4, upto(5));
  }
}
