#pragma once
// BERT in libtorch: its row (core/model/architectures/bert.cpp) as functions of tensors, with its
// head for masked tokens (`masked_head`), where all tokens are of segment 0, and with the one that
// classifies (`classes`).
//
// Thread contract: as TorchArchitecture.

#include "core/model/torch/torch_architecture.h"

namespace sluice::model {

extern const TorchArchitecture kTorchBert;
extern const TorchArchitecture kTorchBertClassifier;

}  // namespace sluice::model
