#include "core/offload/compress_memory.h"

#include "core/optimizer/gradient_stats.h"

namespace sluice::offload {
namespace {

constexpr std::int64_t kPairBytes = 8;  // an index and a value

bool must_widen(const OffloadOptions& options) {
  return options.selects_on_host() && options.gradient_kind != optimizer::GradientKind::fp32;
}

}  // namespace

std::int64_t CompressMemory::residual_bytes(const OffloadOptions& options,
                                            const state::Geometry& geometry) {
  return options.has_feedback() && options.selects_on_host() ? geometry.parameter_count * 4 : 0;
}

std::int64_t CompressMemory::work_bytes(const OffloadOptions& options,
                                        const GradientFormat& format) {
  if (!format.is_sparse()) return 0;
  const std::int64_t widened_bytes =
      must_widen(options) ? format.largest_segment_elements() * 4 : 0;
  const std::int64_t candidate_bytes =
      options.selects_on_host() ? 2 * format.largest_segment_kept() * kPairBytes : 0;
  return widened_bytes + candidate_bytes + kept_bytes(format);
}

std::int64_t CompressMemory::kept_bytes(const GradientFormat& format) {
  return format.kept_count() * kPairBytes;
}

CompressMemory::CompressMemory(const OffloadOptions& options, const GradientFormat& format,
                               const state::Geometry& geometry, std::span<std::byte> kept)
    : residual_(static_cast<std::size_t>(residual_bytes(options, geometry) / 4)),
      widened_(must_widen(options) ? static_cast<std::size_t>(format.largest_segment_elements())
                                   : 0),
      kept_indices_(reinterpret_cast<std::uint32_t*>(kept.data()),
                    static_cast<std::size_t>(format.kept_count())),
      kept_values_(reinterpret_cast<float*>(kept.data()) + kept_indices_.size(),
                   kept_indices_.size()),
      selector_({.kept_capacity = options.selects_on_host() ? format.largest_segment_kept() : 0,
                 .slice_count = 1}) {}

const float* CompressMemory::widened(const std::byte* gradient, optimizer::GradientKind kind,
                                     std::int64_t count) {
  if (kind == optimizer::GradientKind::fp32) return reinterpret_cast<const float*>(gradient);
  optimizer::widen(reinterpret_cast<const std::uint16_t*>(gradient),
                   kind == optimizer::GradientKind::bf16 ? Float16Kind::bf16 : Float16Kind::fp16,
                   widened_.data(), count);
  return widened_.data();
}

void CompressMemory::select(const GradientSegment& segment, std::int64_t flat_first,
                            const std::byte* gradient, optimizer::GradientKind kind, float scale) {
  const auto count = static_cast<std::size_t>(segment.count);
  const std::span<const float> values(widened(gradient, kind, segment.count), count);
  const compress::KeptRoom room = kept_room(segment.kept_first, segment.kept_count);
  if (residual_.empty()) {
    compress::top_k(values, segment.kept_count, 1, selector_, room);
  } else {
    const std::span<float> residual =
        std::span(residual_).subspan(static_cast<std::size_t>(flat_first), count);
    compress::top_k({.gradient = values, .scale = scale, .residual = residual}, segment.kept_count,
                    1, selector_, room);
  }
  for (std::int64_t i = 0; i < segment.kept_count; ++i) {
    room.indices[i] += static_cast<std::uint32_t>(segment.first);
  }
}

void CompressMemory::put_back(const GradientSegment& segment, std::int64_t flat_first) {
  const compress::KeptElements sent = kept(segment.kept_first, segment.kept_count);
  for (std::size_t i = 0; i < sent.indices.size(); ++i) {
    residual_[static_cast<std::size_t>(flat_first + sent.indices[i] - segment.first)] =
        sent.values[i];
  }
}

compress::KeptRoom CompressMemory::kept_room(std::int64_t first, std::int64_t count) {
  return {.indices = kept_indices_.data() + first,
          .values = kept_values_.data() + first,
          .capacity = count};
}

compress::KeptElements CompressMemory::kept(std::int64_t first, std::int64_t count) const {
  return {.indices = kept_indices_.subspan(static_cast<std::size_t>(first),
                                           static_cast<std::size_t>(count)),
          .values = kept_values_.subspan(static_cast<std::size_t>(first),
                                         static_cast<std::size_t>(count))};
}

}  // namespace sluice::offload
