#include "core/weights/tensor_match.h"

#include <map>

#include "base/nearest.h"
#include "core/weights/tensor_names.h"

namespace sluice::weights {
namespace {

constexpr std::size_t kNamedMax = 5;

using Found = std::map<std::string, TensorPlace>;  // by the layout's names

// "a, b and 3 more".
std::string listed(const std::vector<std::string>& names) {
  const std::size_t named = std::min(names.size(), kNamedMax);
  const std::vector<std::string> first(names.begin(),
                                       names.begin() + static_cast<std::ptrdiff_t>(named));
  std::string text = fmt::format("{}", fmt::join(first, ", "));
  if (names.size() > named) text += fmt::format(" and {} more", names.size() - named);
  return text;
}

Result<Found> find_all(std::span<const SafetensorsFile> files, model::Family family) {
  Found found;
  for (const SafetensorsFile& file : files) {
    for (const StoredTensor& tensor : file.tensors()) {
      const std::string name = name_in_layout(family, tensor.name);
      if (is_buffer(family, name)) continue;
      const auto [at, is_new] = found.emplace(name, TensorPlace{&file, &tensor});
      if (is_new) continue;
      return make_error(ErrorCode::config,
                        "{}: tensor {} is the model's {}, and so is {} of {}; keep one of them",
                        file.path(), tensor.name, name, at->second.tensor->name,
                        at->second.file->path());
    }
  }
  return found;
}

// Missing and left-over names, each with the nearest of the other kind.
Status check_names(const Found& found, const model::ModelShape& shape,
                   const model::FlatLayout& layout, const std::string& folder) {
  std::vector<std::string> missing;
  Found rest = found;
  for (const model::TensorInfo& info : layout.tensors) {
    if (rest.erase(info.name) == 0) missing.push_back(name_in_files(shape.family, info.name));
  }
  if (missing.empty() && rest.empty()) return ok_status();
  std::vector<std::string> surplus;
  for (const auto& [name, place] : rest) surplus.push_back(place.tensor->name);
  const std::string hint = missing.empty() ? "" : did_you_mean(missing.front(), surplus);
  std::string text;
  if (!missing.empty()) text = fmt::format("{} missing{}", listed(missing), hint);
  if (!surplus.empty()) {
    text +=
        fmt::format("{}{} of no tensor of the model", text.empty() ? "" : "; ", listed(surplus));
  }
  return make_error(ErrorCode::config,
                    "{}: the weights are not those of the model that {} tells of ({}, {} "
                    "tensors): {}",
                    folder, "config.json", shape.name, layout.tensors.size(), text);
}

Status check_tensor(const TensorPlace& place, const model::TensorInfo& info,
                    const std::string& folder) {
  if (place.tensor->shape != info.shape) {
    return make_error(ErrorCode::config,
                      "{}: tensor {} has the shape {}, and by {}/config.json it has {}",
                      place.file->path(), place.tensor->name, shape_text(place.tensor->shape),
                      folder, shape_text(info.shape));
  }
  const Result<ElementType> type = place.file->type_of(*place.tensor);
  return type.ok() ? ok_status() : Status(type.error());
}

}  // namespace

Result<TensorMatch> match_tensors(std::span<const SafetensorsFile> files,
                                  const model::ModelShape& shape, const model::FlatLayout& layout,
                                  const std::string& folder) {
  ASSIGN_OR_RETURN(Found found, find_all(files, shape.family));
  TensorMatch match;
  const bool is_tied = !shape.has_own_output_table();
  const auto copy = found.find(std::string(kOutputTable));
  if (is_tied && copy != found.end()) {
    match.tied_copy = copy->second;
    found.erase(copy);
  }
  RETURN_IF_ERROR(check_names(found, shape, layout, folder));
  for (const model::TensorInfo& info : layout.tensors) {
    const TensorPlace& place = found.at(info.name);
    RETURN_IF_ERROR(check_tensor(place, info, folder));
    match.places.push_back(place);
  }
  return match;
}

}  // namespace sluice::weights
