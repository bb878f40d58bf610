#pragma once
// A model by its path, whichever form it has: a model file (docs/model_format.md), a folder of
// Hugging Face's, or the config.json in one.
//
// Thread contract: free functions.

#include <optional>
#include <string>
#include <vector>

#include "core/model/model_shape.h"

namespace sluice::weights {

// The folder; none: the path is that of a model file, or of nothing.
std::optional<std::string> hugging_face_folder(const std::string& path);

Result<model::ModelShape> load_shape(const std::string& path);
// What its configuration asks for and training does not do (HuggingFaceConfig::notes).
Result<std::vector<std::string>> training_notes(const std::string& path);

}  // namespace sluice::weights
