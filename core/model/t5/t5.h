#pragma once
// T5 in libtorch: its row (core/model/architectures/t5.cpp) as functions of tensors.
//
// Thread contract: as TorchArchitecture.

#include "core/model/torch/torch_architecture.h"

namespace sluice::model {

extern const TorchArchitecture kTorchT5;

}  // namespace sluice::model
