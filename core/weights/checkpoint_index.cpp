#include "core/weights/checkpoint_index.h"

#include <filesystem>
#include <map>
#include <set>

#include "base/nearest.h"
#include "core/weights/json_text.h"

namespace sluice::weights {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

using FileOfTensor = std::map<std::string, std::string>;

bool is_file_of_folder(const std::string& name) {
  return name.ends_with(".safetensors") && name.find('/') == std::string::npos &&
         name.find('\\') == std::string::npos && !name.starts_with('.');
}

// Weights that lie there in a form that is not read: to begin from a seed instead would be no
// answer to whoever brings them.
Status check_no_other_weights(const std::string& folder) {
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    const std::string kind = at->path().extension().string();
    const bool is_safe = kind == ".safetensors" || name.ends_with(".safetensors.index.json");
    if (!is_safe && kind != ".bin" && kind != ".gguf" && kind != ".pth" && kind != ".pt" &&
        kind != ".h5" && kind != ".msgpack") {
      continue;
    }
    return make_error(ErrorCode::unsupported,
                      "{}/{}: weights are read from {} or the files of {}; load the model with "
                      "AutoModelForCausalLM.from_pretrained and save_pretrained it",
                      folder, name, kWeightsFile, kIndexFile);
  }
  return ok_status();
}

Result<FileOfTensor> read_index(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, read_text(path, kHeaderMaxBytes, "index"));
  ASSIGN_OR_RETURN(const json index, parse_json(text, {path}));
  const auto map = index.find("weight_map");
  if (map == index.end() || !map->is_object() || map->empty()) {
    return make_error(ErrorCode::corrupt, "{}: has no weight_map, or nothing in it", path);
  }
  FileOfTensor files;
  for (const auto& [tensor, value] : map->items()) {
    const std::string file = value.is_string() ? value.get<std::string>() : value.dump();
    if (!is_file_of_folder(file)) {
      return make_error(ErrorCode::corrupt,
                        "{}: weight_map says of {} that it lies in '{}', and its files are "
                        "NAME.safetensors in the folder of the index",
                        path, shortened(tensor), shortened(file));
    }
    files[tensor] = file;
  }
  return files;
}

Status check_as_indexed(const SafetensorsFile& file, const std::string& name,
                        const FileOfTensor& files, const std::string& index) {
  std::set<std::string> is_there;
  for (const StoredTensor& tensor : file.tensors()) {
    is_there.insert(tensor.name);
    const auto said = files.find(tensor.name);
    if (said == files.end()) {
      return make_error(ErrorCode::corrupt, "{}: has tensor {}, which {} does not list",
                        file.path(), shortened(tensor.name), index);
    }
    if (said->second == name) continue;
    return make_error(ErrorCode::corrupt, "{}: has tensor {}, of which {} says that it lies in {}",
                      file.path(), shortened(tensor.name), index, said->second);
  }
  const std::vector<std::string> names(is_there.begin(), is_there.end());
  for (const auto& [tensor, said] : files) {
    if (said != name || is_there.contains(tensor)) continue;
    return make_error(ErrorCode::corrupt, "{}: has no tensor {}, which {} says lies there{}",
                      file.path(), shortened(tensor), index, did_you_mean(tensor, names));
  }
  return ok_status();
}

Result<std::vector<SafetensorsFile>> open_pieces(const std::string& folder,
                                                 const std::string& index_name) {
  const std::string index = folder + "/" + index_name;
  ASSIGN_OR_RETURN(const FileOfTensor files, read_index(index));
  std::set<std::string> names;
  for (const auto& [tensor, file] : files) names.insert(file);
  std::vector<SafetensorsFile> pieces;
  for (const std::string& name : names) {
    Result<SafetensorsFile> piece = SafetensorsFile::open(folder + "/" + name);
    if (!piece.ok() && piece.error().code() == ErrorCode::not_found) {
      return piece.error().with_context(index + " names a file that is missing");
    }
    if (!piece.ok()) return std::move(piece).error();
    pieces.push_back(*std::move(piece));
  }
  std::size_t at = 0;
  for (const std::string& name : names) {
    RETURN_IF_ERROR(check_as_indexed(pieces[at++], name, files, index));
  }
  return pieces;
}

bool is_there(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error);
}

}  // namespace

std::string whole_file(const std::string& stem) { return stem + ".safetensors"; }
std::string index_file(const std::string& stem) { return stem + ".safetensors.index.json"; }

Result<std::vector<SafetensorsFile>> open_tensors(const std::string& folder,
                                                  const std::string& stem) {
  const std::string whole_name = whole_file(stem);
  const bool has_whole = is_there(folder + "/" + whole_name);
  const bool has_index = is_there(folder + "/" + index_file(stem));
  if (has_whole && has_index) {
    return make_error(ErrorCode::config,
                      "{}: has {} and {}; which of them is the one to read? Move the other away",
                      folder, whole_name, index_file(stem));
  }
  if (has_index) return open_pieces(folder, index_file(stem));
  std::vector<SafetensorsFile> files;
  if (!has_whole) return files;
  ASSIGN_OR_RETURN(SafetensorsFile whole, SafetensorsFile::open(folder + "/" + whole_name));
  files.push_back(std::move(whole));
  return files;
}

Result<std::vector<SafetensorsFile>> open_weights(const std::string& folder) {
  ASSIGN_OR_RETURN(std::vector<SafetensorsFile> files, open_tensors(folder, kWeightsStem));
  if (files.empty()) RETURN_IF_ERROR(check_no_other_weights(folder));
  return files;
}

}  // namespace sluice::weights
