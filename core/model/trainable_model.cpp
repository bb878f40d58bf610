#include "core/model/trainable_model.h"

namespace sluice::model {

Result<double> evaluate(TrainableModel& model, const TokenBatch& batch) {
  constexpr int kMicroStep = 0;
  RETURN_IF_ERROR(model.set_batch(kMicroStep, batch, BatchUse::validation));
  for (std::int32_t layer = 0; layer < model.layout().layer_count(); ++layer) {
    RETURN_IF_ERROR(model.forward(LayerId{layer}, kMicroStep));
  }
  return model.loss(kMicroStep);
}

}  // namespace sluice::model
