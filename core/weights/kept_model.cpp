#include "core/weights/kept_model.h"

#include <array>
#include <filesystem>

#include "core/weights/adapter_config.h"
#include "core/weights/checkpoint_index.h"
#include "core/weights/model_folder.h"
#include "storage/io/file.h"

namespace sluice::weights {
namespace {

namespace fs = std::filesystem;

constexpr std::array kCarried = {"generation_config.json",
                                 "tokenizer.json",
                                 "tokenizer_config.json",
                                 "special_tokens_map.json",
                                 "added_tokens.json",
                                 "vocab.json",
                                 "merges.txt",
                                 "tokenizer.model",
                                 "chat_template.jinja",
                                 "chat_template.json"};

// From a state's folder up to the run's: OUTPUT/snapshots/step-5, OUTPUT/rank-3/state.
constexpr int kLevelsAbove = 3;

fs::path file_in(const std::string& output) {
  return fs::path(output) / "kept_model" / "model.toml";
}

Status copy_into(const std::string& path, const fs::path& folder) {
  std::error_code error;
  if (fs::copy_file(path, folder / fs::path(path).filename(), error)) return ok_status();
  return make_error(ErrorCode::io, "{}: cannot be copied into {}: {}", path, folder.string(),
                    error.message());
}

Status write_new(const std::string& path, const std::string& text) {
  ASSIGN_OR_RETURN(const io::File file, io::File::open(path, {.access = io::FileAccess::create_new,
                                                              .caching = io::Caching::buffered}));
  RETURN_IF_ERROR(file.write_exactly(0, std::as_bytes(std::span(text))));
  return file.sync_data();
}

}  // namespace

std::vector<std::string> carried_files(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  for (const char* name : kCarried) {
    const fs::path path = fs::path(folder) / name;
    if (fs::is_regular_file(path, error)) paths.push_back(path.string());
  }
  return paths;
}

Status keep_model(const std::string& output, const std::string& model_path,
                  const model::ModelShape& shape) {
  const fs::path file = file_in(output);
  const fs::path folder = file.parent_path();
  const std::optional<std::string> source = hugging_face_folder(model_path);
  std::error_code error;
  if (source && fs::equivalent(*source, folder, error)) return ok_status();
  fs::create_directories(folder, error);
  fs::remove(file, error);
  fs::remove(folder / kConfigFile, error);
  fs::remove(folder / kAdapterConfigFile, error);
  for (const std::string& path : carried_files(folder.string())) fs::remove(path, error);
  RETURN_IF_ERROR(write_new(file.string(), model::model_file_text(model::file_values(shape))));
  if (shape.has_adapters()) {
    const std::string base = fs::absolute(source.value_or(model_path)).lexically_normal().string();
    RETURN_IF_ERROR(
        write_new((folder / kAdapterConfigFile).string(), adapter_config_text(shape, base)));
  }
  if (!source) return ok_status();
  RETURN_IF_ERROR(copy_into(*source + "/" + kConfigFile, folder));
  for (const std::string& path : carried_files(*source)) RETURN_IF_ERROR(copy_into(path, folder));
  return ok_status();
}

std::optional<std::string> kept_model_file(const std::string& output) {
  std::error_code error;
  if (!fs::is_regular_file(file_in(output), error)) return std::nullopt;
  return file_in(output).string();
}

std::optional<std::string> kept_model_above(const std::string& folder) {
  fs::path at = fs::absolute(folder).lexically_normal();
  for (int level = 0; level <= kLevelsAbove; ++level) {
    if (std::optional<std::string> file = kept_model_file(at.string())) return file;
    at = at.parent_path();
  }
  return std::nullopt;
}

}  // namespace sluice::weights
