// The definition of error feedback, written to be read beside the formula in error_feedback.h.

#include <cmath>

#include "base/check.h"
#include "core/compress/error_feedback.h"
#include "core/optimizer/update_rule.h"

namespace sluice::compress {

void accumulate_residual_reference(const FeedbackInput& input) {
  CHECK_EQ(input.gradient.size(), input.residual.size());
  for (std::size_t i = 0; i < input.gradient.size(); ++i) {
    const float accumulated = std::fma(input.gradient[i], input.scale, input.residual[i]);
    input.residual[i] = optimizer::stored_float(accumulated);
  }
}

void clear_residual(std::span<const std::uint32_t> kept_indices, std::span<float> residual) {
  for (const std::uint32_t index : kept_indices) residual[index] = 0;
}

}  // namespace sluice::compress
