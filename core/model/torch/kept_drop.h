#pragma once
// A place where values are dropped and its windows' keys, as an operation of autograd keeps them
// until its backward: neither is a layer's, so none of it leaves memory.
//
// Thread contract: as the operation.

#include <torch/csrc/autograd/custom_function.h>

#include <cstdint>

#include "core/model/torch/dropout.h"

namespace sluice::model {

struct KeptDrop {
  at::Tensor keys;  // not defined: nothing is dropped
  DropPlace place;

  void keep(torch::autograd::AutogradContext* context) const {
    auto& kept = context->saved_data;
    if (keys.defined()) kept["keys"] = keys;
    kept["share"] = place.share;
    kept["layer"] = place.layer;
    kept["in_layer"] = static_cast<std::int64_t>(place.in_layer);
  }
  static KeptDrop kept_in(torch::autograd::AutogradContext* context) {
    auto& kept = context->saved_data;
    const c10::IValue& keys = kept["keys"];
    return {keys.isTensor() ? keys.toTensor() : at::Tensor(),
            {kept["share"].toDouble(), kept["layer"].toInt(),
             static_cast<std::uint32_t>(kept["in_layer"].toInt())}};
  }
};

}  // namespace sluice::model
