#pragma once
// What plain models in fp32 share, whatever they compute: their parameters by name, each a leaf of
// one graph, and the gradients of these once it has gone backward.
//
// Thread contract: free functions.

#include <ATen/ATen.h>

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/model/flat_layout.h"

namespace sluice::model {

using PlainTensors = std::map<std::string, at::Tensor>;

// Over `values`, which lives longer.
inline PlainTensors plain_tensors(const FlatLayout& layout, std::vector<float>& values) {
  PlainTensors tensors;
  for (const TensorInfo& info : layout.tensors) {
    tensors[info.name] =
        at::from_blob(values.data() + info.first, info.shape, at::kFloat).set_requires_grad(true);
  }
  return tensors;
}

inline std::vector<float> flat_gradients(const FlatLayout& layout, const PlainTensors& tensors) {
  std::vector<float> flat;
  for (const TensorInfo& info : layout.tensors) {
    const at::Tensor gradient = tensors.at(info.name).grad().contiguous();
    const float* values = gradient.const_data_ptr<float>();
    flat.insert(flat.end(), values, values + info.count);
  }
  return flat;
}

// Over the targets that are not below zero.
inline at::Tensor loss_sum(const at::Tensor& logits, const at::Tensor& targets) {
  const at::Tensor picked =
      logits.log_softmax(-1).gather(1, targets.clamp_min(0).unsqueeze(1)).squeeze(1);
  return -(picked * (targets >= 0)).sum();
}

inline at::Tensor numbers_of(std::span<const std::int32_t> tokens) {
  return at::tensor(std::vector<std::int64_t>(tokens.begin(), tokens.end()));
}

}  // namespace sluice::model
