#pragma once
// The files of a checkpoint's folder that hold its weights: model.safetensors, or the pieces that
// model.safetensors.index.json names.
//
// Thread contract: free functions.

#include <string>
#include <vector>

#include "core/weights/safetensors.h"

namespace sluice::weights {

inline constexpr const char* kWeightsStem = "model";
inline constexpr const char* kWeightsFile = "model.safetensors";
inline constexpr const char* kIndexFile = "model.safetensors.index.json";
inline constexpr const char* kConfigFile = "config.json";

// All of them open; none: the folder has no weights. Refused: weights in another format, which
// nothing here reads; an index and a whole file beside each other; an index that names a file
// outside the folder, or one that is missing; a tensor in another file than the index says.
Result<std::vector<SafetensorsFile>> open_weights(const std::string& folder);

// The same of STEM.safetensors or the pieces of STEM.safetensors.index.json; none: there is
// neither.
std::string whole_file(const std::string& stem);
std::string index_file(const std::string& stem);
Result<std::vector<SafetensorsFile>> open_tensors(const std::string& folder,
                                                  const std::string& stem);

}  // namespace sluice::weights
