#pragma once
// What a run keeps of its model in OUTPUT/kept_model, so that it goes on, and its weights can be
// exported, where the model's own files are gone: its shape, as a model file; and of a run that was
// begun from a folder of Hugging Face's the configuration and the files of the tokenizer; and of
// adapters their configuration, with the folder of their base.
//
// Thread contract: free functions; they block on the drives.

#include <optional>
#include <string>
#include <vector>

#include "core/model/model_shape.h"

namespace sluice::weights {

// Replaces these files. `model_path` is the run's setting.
Status keep_model(const std::string& output, const std::string& model_path,
                  const model::ModelShape& shape);

// The model file, if it is there.
std::optional<std::string> kept_model_file(const std::string& output);
// The same of the run that a folder is in: the folder itself, or one above it.
std::optional<std::string> kept_model_above(const std::string& folder);

// The files of a folder that are no weights and go with them: those of the tokenizer, and
// generation_config.json.
std::vector<std::string> carried_files(const std::string& folder);

}  // namespace sluice::weights
