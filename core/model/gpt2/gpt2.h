#pragma once
// GPT-2 in libtorch: its row (core/model/architectures/gpt2.cpp) as functions of tensors.
//
// Thread contract: as TorchArchitecture.

#include "core/model/torch/torch_architecture.h"

namespace sluice::model {

extern const TorchArchitecture kTorchGpt2;

}  // namespace sluice::model
