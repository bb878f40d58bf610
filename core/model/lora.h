#pragma once
// Low-rank adapters (LoRA, arXiv:2106.09685) beside linear layers: y = x W^T + b + (alpha / rank)
// (x A^T) B^T, of which A [rank, in] and B [out, rank] alone are trained (docs/lora.md).
//
// Thread contract: free functions.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/made_tensors.h"
#include "core/model/model_shape.h"

namespace sluice::model {

// A linear layer that may have an adapter: its matrix is NAME.weight.
struct LinearModule {
  std::string name;
  LayerId layer = kNoLayer;
  std::int64_t in = 0;
  std::int64_t out = 0;
  bool of_sources = false;  // its rows are the source's, in a layer whose own are targets
};

// All of a model's, in the layout's order: those of its blocks and its head. The embedding's tables
// and the output table are none.
std::vector<LinearModule> linear_modules(const ModelShape& shape);
// Those of them that have an adapter, and those of one layer.
std::vector<LinearModule> adapted_modules(const ModelShape& shape);
std::vector<LinearModule> adapted_modules(const ModelShape& shape, LayerId layer);

// "all-linear": each of them.
inline constexpr std::string_view kAllLinear = "all-linear";

struct LoraChoice {
  std::int64_t rank = 0;  // 0: no adapters
  double alpha = 0;
  // Ends of names with commas between, each of which begins behind a dot; in it a * stands for
  // anything. Empty: those that PEFT takes for the family (Architecture::lora_targets).
  std::string targets = {};
};

// The shape with these adapters and no others. Errors (ErrorCode::config): a target that no linear
// layer has, with the nearest name.
Result<ModelShape> with_adapters(ModelShape shape, const LoraChoice& choice);

// Whether the end of a name, from the name's beginning or from behind a dot, is `pattern`.
bool is_target(std::string_view pattern, std::string_view name);

FlatLayout adapter_layout(const ModelShape& shape);
// The lowest layer that is trained: the embedding, or the lowest one with an adapter. No gradient
// is needed below it.
LayerId first_trained_layer(const ModelShape& shape);

// The tensors that the adapters of a layer make in its forward, beside those of its kind: the kept
// ones are the rows between A and B.
std::vector<MadeTensor> adapter_made(const ModelShape& shape, LayerId layer);
// Values a token: what is kept of the adapters of a layer, at most, and what comes and goes with
// one.
struct AdapterWidths {
  std::int64_t kept = 0;
  std::int64_t passing = 0;
};
AdapterWidths adapter_widths(const ModelShape& shape);

}  // namespace sluice::model
