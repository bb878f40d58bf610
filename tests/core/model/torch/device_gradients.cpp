#include "tests/core/model/torch/device_gradients.h"

#include <bit>
#include <catch2/catch.hpp>
#include <cmath>

#include "core/compress/top_k.h"
#include "core/model/gradient_device.h"
#include "core/optimizer/gradient_stats.h"

namespace sluice::model {
namespace {

using optimizer::GradientKind;

constexpr LayerId kLayer{1};
constexpr int kPlace = 1;  // where DeviceStep leaves its gradients
constexpr float kScale = 0.001F;

GradientKind kind_of(const ModelOptions& options) {
  if (options.micro_step_count > 1) return GradientKind::fp32;
  return optimizer::gradient_kind(options.compute);
}

std::vector<float> widened(const std::byte* gradient, const ModelOptions& options,
                           std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  if (kind_of(options) == GradientKind::fp32) {
    std::memcpy(values.data(), gradient, values.size() * 4);
  } else {
    optimizer::widen(reinterpret_cast<const std::uint16_t*>(gradient),
                     float16_kind(options.compute), values.data(), count);
  }
  return values;
}

// The layer in two segments, of which the second lies below the first.
DeviceSelection selection_of(const FlatLayout& layout, bool has_feedback) {
  const LayerRange& range = layout.layer(kLayer);
  const std::int64_t low = range.count / 3;
  const std::int64_t kept_low = low / 50 + 1;
  DeviceSelection selection;
  selection.has_feedback = has_feedback;
  selection.parts.resize(layout.layers.size());
  const std::int64_t block = std::min(range.count, optimizer::kNormBlockElements);
  selection.parts[1] = {{0, 1}, {1, block / 2 - 1}, {block / 2, block - block / 2}};
  selection.segments.resize(layout.layers.size());
  selection.segments[1] = {
      {range.first + low, low, range.count - low, kept_low, range.count / 9, 0},
      {range.first, 0, low, 0, kept_low, 1000}};
  return selection;
}

void require_done(const std::function<Status(WhenDone)>& start) {
  const Status ended = Started(start).wait();
  INFO((ended.ok() ? std::string() : ended.error().message()));
  REQUIRE(ended.ok());
}

void check_norm(GradientDevice& device, const DeviceSelection& selection, const std::byte* gradient,
                const ModelOptions& options, std::int64_t count) {
  const auto blocks = static_cast<std::size_t>(optimizer::norm_block_count(count));
  const std::span<const DevicePart> parts = selection.parts_of(kLayer);
  std::vector<double> sums(blocks + parts.size(), -1);
  require_done([&](WhenDone done) { return device.check(kLayer, kPlace, std::move(done)); });
  require_done([&](WhenDone done) {
    return device.sums_out({0, std::ssize(sums) * 8}, sums.data(), std::move(done));
  });
  optimizer::GradientStats total;
  for (const double sum : std::span(sums).first(blocks)) {
    total = optimizer::add_block(total, {sum, std::isfinite(sum)});
  }
  const optimizer::GradientStats wanted =
      optimizer::gradient_stats_reference(gradient, kind_of(options), count);
  CHECK(total.finite == wanted.finite);
  CHECK(std::bit_cast<std::uint64_t>(total.sum_of_squares) ==
        std::bit_cast<std::uint64_t>(wanted.sum_of_squares));
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const std::byte* const first =
        gradient + parts[p].layer_offset * optimizer::bytes_of(kind_of(options));
    const double of_part =
        optimizer::gradient_stats_reference(first, kind_of(options), parts[p].count).sum_of_squares;
    CHECK(std::bit_cast<std::uint64_t>(sums[blocks + p]) == std::bit_cast<std::uint64_t>(of_part));
  }
}

struct Kept {
  explicit Kept(std::int64_t count)
      : indices(static_cast<std::size_t>(count)), values(indices.size()) {}
  KeptPlace place() { return {indices.data(), values.data()}; }
  std::vector<std::uint32_t> indices;
  std::vector<float> values;
};

Kept kept_by(GradientDevice& device, const DeviceSelection& selection) {
  Kept kept(selection.kept_count(kLayer));
  for (int segment = 0; segment < std::ssize(selection.of(kLayer)); ++segment) {
    require_done([&](WhenDone done) {
      return device.select(kLayer, kPlace, segment, kScale, std::move(done));
    });
  }
  // In parts that end within a value.
  const std::int64_t size_bytes = kept_bytes(selection.kept_count(kLayer));
  const std::int64_t cut = size_bytes / 2 + 3;
  for (const BytePart part : {BytePart{0, cut}, BytePart{cut, size_bytes - cut}}) {
    require_done([&](WhenDone done) {
      return device.kept_out(kLayer, part, kept.place(), std::move(done));
    });
  }
  return kept;
}

// By the definitions; leaves in the residual what was not kept.
Kept expected(const DeviceSelection& selection, const std::vector<float>& gradient,
              std::span<float> residual) {
  Kept kept(selection.kept_count(kLayer));
  for (const DeviceSegment& segment : selection.of(kLayer)) {
    const auto count = static_cast<std::size_t>(segment.count);
    std::span<const float> values =
        std::span(gradient).subspan(static_cast<std::size_t>(segment.layer_offset), count);
    std::span<float> rest;
    if (selection.has_feedback) {
      rest = residual.subspan(static_cast<std::size_t>(segment.flat_first), count);
      compress::accumulate_residual_reference({values, kScale, rest});
      values = rest;
    }
    const std::span<std::uint32_t> indices =
        std::span(kept.indices)
            .subspan(static_cast<std::size_t>(segment.kept_first),
                     static_cast<std::size_t>(segment.kept_count));
    compress::top_k_reference(
        values, segment.kept_count,
        {indices.data(), kept.values.data() + segment.kept_first, segment.kept_count});
    if (selection.has_feedback) compress::clear_residual(indices, rest);
    for (std::uint32_t& index : indices) index += static_cast<std::uint32_t>(segment.first_index);
  }
  return kept;
}

std::vector<float> residual_on(GradientDevice& device, std::int64_t count) {
  std::vector<float> residual(static_cast<std::size_t>(count), -1);
  require_done([&](WhenDone done) {
    return device.residual_out({0, count * 4}, reinterpret_cast<std::byte*>(residual.data()),
                               std::move(done));
  });
  return residual;
}

bool have_same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * 4) == 0;
}

}  // namespace

void check_gradient_work(DeviceStep& step, const StepNumbers& numbers,
                         const ModelOptions& options) {
  const FlatLayout& layout = step.model().layout();
  const LayerRange& range = layout.layer(kLayer);
  const std::byte* const gradient =
      numbers.gradients.data() + range.first * optimizer::bytes_of(kind_of(options));
  const std::vector<float> values = widened(gradient, options, range.count);
  GradientDevice& device = step.device().gradients();
  std::vector<float> residual(static_cast<std::size_t>(layout.parameter_count));
  for (const bool has_feedback : {false, true}) {
    const DeviceSelection selection = selection_of(layout, has_feedback);
    REQUIRE(device.prepare(selection).ok());
    check_norm(device, selection, gradient, options, range.count);
    // With feedback the second time begins with what the first one left.
    for (int time = 0; time < 2; ++time) {
      const Kept wanted = expected(selection, values, residual);
      const Kept found = kept_by(device, selection);
      CHECK(found.indices == wanted.indices);
      CHECK(have_same_bits(found.values, wanted.values));
      if (!has_feedback) continue;
      CHECK(have_same_bits(residual_on(device, layout.parameter_count), residual));
    }
  }
}

}  // namespace sluice::model
