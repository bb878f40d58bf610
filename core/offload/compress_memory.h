#pragma once
// Host memory of compression: what was kept of every layer, and, with error feedback, the residual
// of every parameter. A step that is skipped puts what it kept back into the residual, so all of it
// stays until the step's end.
//
// Thread contract: one operation at a time, as layers are compressed one after the other.

#include <cstddef>
#include <span>
#include <vector>

#include "core/compress/top_k.h"
#include "core/offload/gradient_format.h"

namespace sluice::offload {

class CompressMemory {
 public:
  // `kept`: kept_bytes() of the caller's, which outlive this.
  CompressMemory(const OffloadOptions& options, const GradientFormat& format,
                 const state::Geometry& geometry, std::span<std::byte> kept);
  static std::int64_t kept_bytes(const GradientFormat& format);
  static std::int64_t residual_bytes(const OffloadOptions& options,
                                     const state::Geometry& geometry);
  // All but the residual.
  static std::int64_t work_bytes(const OffloadOptions& options, const GradientFormat& format);

  // Keeps the largest of a segment; `gradient` is its first element, of `kind`. With feedback they
  // are the largest of gradient x scale + residual.
  void select(const GradientSegment& segment, std::int64_t flat_first, const std::byte* gradient,
              optimizer::GradientKind kind, float scale);
  // The elements that select() kept go back into the residual.
  void put_back(const GradientSegment& segment, std::int64_t flat_first);
  compress::KeptElements kept(std::int64_t first, std::int64_t count) const;
  // Where whoever selects elsewhere puts them.
  compress::KeptRoom kept_room(std::int64_t first, std::int64_t count);
  std::span<float> residual() { return residual_; }
  // Hands the residual over, to survive a change of knobs.
  std::vector<float> take_residual() { return std::move(residual_); }
  void set_residual(std::vector<float> residual) { residual_ = std::move(residual); }

 private:
  const float* widened(const std::byte* gradient, optimizer::GradientKind kind, std::int64_t count);

  std::vector<float> residual_;            // of all parameters, or empty
  std::vector<float> widened_;             // a segment's gradient as fp32
  std::span<std::uint32_t> kept_indices_;  // elements of their subgroup
  std::span<float> kept_values_;
  compress::TopKSelector selector_;
};

}  // namespace sluice::offload
