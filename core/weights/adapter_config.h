#pragma once
// adapter_config.json, in which PEFT keeps what adapters are of: their rank, alpha, the linear
// layers that have one, and the base (docs/lora.md).
//
// Thread contract: free functions.

#include <string>
#include <vector>

#include "core/model/lora.h"

namespace sluice::weights {

inline constexpr const char* kAdapterConfigFile = "adapter_config.json";
inline constexpr const char* kAdapterStem = "adapter_model";  // of the file with the tensors

// The text of a shape that has adapters. `base` is the folder of the model that they are of.
std::string adapter_config_text(const model::ModelShape& shape, const std::string& base);

struct AdapterConfig {
  model::LoraChoice choice;
  std::string base;
  // A sentence for each field that asks for what training does not do, though the adapter is the
  // same: dropout.
  std::vector<std::string> notes;
};

// That of a folder. Errors: ErrorCode::not_found; config and unsupported for what would be another
// arithmetic than core/model/lora.h's, or of which nothing is known, by the field's name.
Result<AdapterConfig> load_adapter_config(const std::string& folder, model::Family family);

}  // namespace sluice::weights
