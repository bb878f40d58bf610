#include "core/weights/tensor_match.h"

#include <algorithm>
#include <functional>
#include <set>

#include "base/check.h"
#include "base/nearest.h"
#include "core/weights/tensor_names.h"

namespace sluice::weights {
namespace {

constexpr std::size_t kNamedMax = 5;

// "a, b and 3 more".
std::string listed(const std::vector<std::string>& names) {
  const std::size_t named = std::min(names.size(), kNamedMax);
  const std::vector<std::string> first(names.begin(),
                                       names.begin() + static_cast<std::ptrdiff_t>(named));
  std::string text = fmt::format("{}", fmt::join(first, ", "));
  if (names.size() > named) text += fmt::format(" and {} more", names.size() - named);
  return text;
}

Result<PlacesByName> find_all(std::span<const SafetensorsFile> files,
                              const model::ModelShape& shape) {
  PlacesByName found;
  for (const SafetensorsFile& file : files) {
    for (const StoredTensor& tensor : file.tensors()) {
      const std::string name = name_in_layout(shape.family, tensor.name);
      if (is_passed_over(shape, name)) continue;
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

// Names of a classifier's head that no file has, where it is new: all of the classifier, and of the
// pooler all or none. Pretraining has names of its own then, which are passed over.
std::set<std::string, std::less<>> new_head(const PlacesByName& found,
                                            const model::ModelShape& shape) {
  if (!shape.classifies()) return {};
  const auto lacks = [&found](const std::string& module) {
    return !found.contains(module + ".weight") && !found.contains(module + ".bias");
  };
  if (!lacks("classifier")) return {};
  std::set<std::string, std::less<>> names = {"classifier.weight", "classifier.bias"};
  if (lacks("pooler.dense")) names.insert({"pooler.dense.weight", "pooler.dense.bias"});
  return names;
}

Status check_names(const PlacesByName& found, const std::set<std::string, std::less<>>& left_out,
                   const model::ModelShape& shape, const model::FlatLayout& layout,
                   const std::string& folder) {
  PlacesByName in_files;  // both sides by their names in the files
  for (const auto& [name, place] : found) in_files[name_in_files(shape.family, name)] = place;
  std::vector<std::string> wanted;
  for (const model::TensorInfo& info : layout.tensors) {
    if (!left_out.contains(info.name)) wanted.push_back(name_in_files(shape.family, info.name));
  }
  const std::string difference = name_difference(in_files, wanted);
  if (difference.empty()) return ok_status();
  return make_error(ErrorCode::config,
                    "{}: the weights are not those of the model that {} tells of ({}, {} "
                    "tensors): {}",
                    folder, "config.json", shape.name, layout.tensors.size(), difference);
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

// Missing and left-over names, with the nearest of the other kind.
std::string name_difference(const PlacesByName& found, std::span<const std::string> wanted) {
  std::vector<std::string> missing;
  PlacesByName rest = found;
  for (const std::string& name : wanted) {
    if (rest.erase(name) == 0) missing.push_back(name);
  }
  std::vector<std::string> surplus;
  for (const auto& [name, place] : rest) surplus.push_back(place.tensor->name);
  std::string text;
  if (!missing.empty()) {
    text = fmt::format("{} missing{}", listed(missing), did_you_mean(missing.front(), surplus));
  }
  if (!surplus.empty()) {
    text +=
        fmt::format("{}{} of no tensor of the model", text.empty() ? "" : "; ", listed(surplus));
  }
  return text;
}

Status read_elements(const model::FlatLayout& layout, std::span<const TensorPlace> places,
                     std::int64_t first, std::span<float> out) {
  const std::int64_t end = first + std::ssize(out);
  CHECK_GE(first, 0);
  CHECK_LE(end, layout.parameter_count);
  if (out.empty()) return ok_status();
  const auto behind = std::upper_bound(
      layout.tensors.begin(), layout.tensors.end(), first,
      [](std::int64_t element, const model::TensorInfo& info) { return element < info.first; });
  for (auto t = static_cast<std::size_t>(behind - layout.tensors.begin()) - 1;
       t < layout.tensors.size() && layout.tensors[t].first < end; ++t) {
    const model::TensorInfo& info = layout.tensors[t];
    const std::int64_t low = std::max(first, info.first);
    const std::int64_t high = std::min(end, info.first + info.count);
    const std::span<float> part =
        out.subspan(static_cast<std::size_t>(low - first), static_cast<std::size_t>(high - low));
    const TensorPlace& place = places[t];
    if (!place.is_there()) continue;
    RETURN_IF_ERROR(place.file->read(*place.tensor, low - info.first, part));
  }
  return ok_status();
}

Result<TensorMatch> match_tensors(std::span<const SafetensorsFile> files,
                                  const model::ModelShape& shape, const model::FlatLayout& layout,
                                  const std::string& folder) {
  ASSIGN_OR_RETURN(PlacesByName found, find_all(files, shape));
  TensorMatch match;
  const bool is_tied = !shape.has_own_output_table();
  const auto copy = found.find(std::string(output_table(shape.family)));
  if (is_tied && copy != found.end()) {
    match.tied_copy = copy->second;
    found.erase(copy);
  }
  const std::set<std::string, std::less<>> left_out = new_head(found, shape);
  RETURN_IF_ERROR(check_names(found, left_out, shape, layout, folder));
  for (const model::TensorInfo& info : layout.tensors) {
    if (left_out.contains(info.name)) {
      match.places.emplace_back();
      continue;
    }
    const TensorPlace& place = found.at(info.name);
    RETURN_IF_ERROR(check_tensor(place, info, folder));
    match.places.push_back(place);
  }
  return match;
}

}  // namespace sluice::weights
