#include "core/weights/model_folder.h"

#include <filesystem>

#include "core/weights/checkpoint_index.h"
#include "core/weights/hf_config.h"

namespace sluice::weights {
namespace {

namespace fs = std::filesystem;

std::string config_in(const std::string& folder) { return folder + "/" + kConfigFile; }

Result<HuggingFaceConfig> config_of_folder(const std::string& folder) {
  std::error_code error;
  if (!fs::exists(config_in(folder), error)) {
    return make_error(ErrorCode::not_found,
                      "{}: has no config.json; a model is a folder of Hugging Face's, or a model "
                      "file, of which sample_models/models/ holds examples",
                      folder);
  }
  return load_config(config_in(folder));
}

}  // namespace

std::optional<std::string> hugging_face_folder(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return path;
  const fs::path file(path);
  if (file.extension() != ".json") return std::nullopt;
  const std::string folder = file.parent_path().string();
  return folder.empty() ? "." : folder;
}

Result<model::ModelShape> load_shape(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) {
    ASSIGN_OR_RETURN(HuggingFaceConfig config, config_of_folder(path));
    return std::move(config.shape);
  }
  if (!hugging_face_folder(path)) return model::load_model_shape(path);
  ASSIGN_OR_RETURN(HuggingFaceConfig config, load_config(path));
  return std::move(config.shape);
}

Result<std::vector<std::string>> training_notes(const std::string& path) {
  const std::optional<std::string> folder = hugging_face_folder(path);
  if (!folder) return std::vector<std::string>();
  ASSIGN_OR_RETURN(HuggingFaceConfig config, config_of_folder(*folder));
  return std::move(config.notes);
}

}  // namespace sluice::weights
