#pragma once
// Llama and its kin (Mistral, Qwen2, Qwen3, SmolLM) in libtorch: their row
// (core/model/architectures/llama.cpp) as functions of tensors.
//
// Thread contract: as TorchArchitecture.

#include "core/model/torch/torch_architecture.h"

namespace sluice::model {

extern const TorchArchitecture kTorchLlama;

}  // namespace sluice::model
