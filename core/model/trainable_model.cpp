#include "core/model/trainable_model.h"

#include <algorithm>

namespace sluice::model {

std::int64_t TokenBatch::counted_targets() const {
  return std::ssize(targets) - std::ranges::count(targets, kIgnoredTarget);
}

double TokenBatch::loss_divisor() const {
  const double asked = divisor > 0 ? divisor : static_cast<double>(counted_targets());
  return std::max(asked, 1.0);  // of no target at all, loss and gradient are 0
}

Result<double> evaluate(TrainableModel& model, const TokenBatch& batch) {
  constexpr int kMicroStep = 0;
  RETURN_IF_ERROR(model.set_batch(kMicroStep, batch, BatchUse::validation));
  for (std::int32_t layer = 0; layer < model.layout().layer_count(); ++layer) {
    RETURN_IF_ERROR(model.forward(LayerId{layer}, kMicroStep));
  }
  return model.loss(kMicroStep);
}

}  // namespace sluice::model
