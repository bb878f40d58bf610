#pragma once
// BERT with its head for masked tokens in libtorch: its row (core/model/architectures/bert.cpp)
// with `masked_head` as functions of tensors. All tokens are of segment 0.
//
// Thread contract: as TorchArchitecture.

#include "core/model/torch/torch_architecture.h"

namespace sluice::model {

extern const TorchArchitecture kTorchBert;

}  // namespace sluice::model
