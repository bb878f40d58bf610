#include "core/weights/adapter_checkpoint.h"

#include "core/weights/adapter_config.h"
#include "core/weights/checkpoint_index.h"
#include "core/weights/json_text.h"
#include "core/weights/tensor_names.h"

namespace sluice::weights {
namespace {

Status check_config(const AdapterConfig& config, const std::string& folder,
                    const model::ModelShape& shape) {
  ASSIGN_OR_RETURN(const model::ModelShape of_folder, model::with_adapters(shape, config.choice));
  const model::Lora &found = of_folder.lora, &wanted = shape.lora;
  if (found.rank == wanted.rank && found.alpha == wanted.alpha && found.modules == wanted.modules)
    return ok_status();
  return make_error(ErrorCode::config,
                    "{}/{}: is of adapters with lora_rank={}, lora_alpha={} and lora_targets={}, "
                    "and this run's are not: set these three so, or leave lora_adapter out",
                    folder, kAdapterConfigFile, found.rank, found.alpha, config.choice.targets);
}

}  // namespace

Result<AdapterCheckpoint> AdapterCheckpoint::open(const std::string& folder,
                                                  const model::ModelShape& shape) {
  ASSIGN_OR_RETURN(AdapterConfig config, load_adapter_config(folder, shape.family));
  RETURN_IF_ERROR(check_config(config, folder, shape));
  ASSIGN_OR_RETURN(std::vector<SafetensorsFile> files, open_tensors(folder, kAdapterStem));
  if (files.empty()) {
    return make_error(ErrorCode::not_found, "{}: has no {}", folder, whole_file(kAdapterStem));
  }
  AdapterCheckpoint checkpoint(folder, shape.flat_layout(), std::move(files));
  checkpoint.notes_ = std::move(config.notes);
  RETURN_IF_ERROR(checkpoint.match(shape));
  return checkpoint;
}

Status AdapterCheckpoint::match(const model::ModelShape& shape) {
  PlacesByName found;
  for (const SafetensorsFile& file : files_) {
    for (const StoredTensor& tensor : file.tensors())
      found.emplace(tensor.name, TensorPlace{&file, &tensor});
  }
  std::vector<std::string> names;
  for (const model::TensorInfo& info : layout_.tensors)
    names.push_back(trained_name_in_files(shape, info.name));
  const std::string difference = name_difference(found, names);
  if (!difference.empty()) {
    return make_error(ErrorCode::config,
                      "{}: the tensors are not those of the adapters that {} tells of: {}", folder_,
                      kAdapterConfigFile, difference);
  }
  for (std::size_t t = 0; t < names.size(); ++t) {
    const TensorPlace& place = found.at(names[t]);
    if (place.tensor->shape != layout_.tensors[t].shape) {
      return make_error(ErrorCode::config, "{}: tensor {} has the shape {}, and takes {}",
                        place.file->path(), place.tensor->name, shape_text(place.tensor->shape),
                        shape_text(layout_.tensors[t].shape));
    }
    RETURN_IF_ERROR(place.file->type_of(*place.tensor));
    places_.push_back(place);
  }
  return ok_status();
}

Status AdapterCheckpoint::fill(std::int64_t first, std::span<float> out) const {
  return read_elements(layout_, places_, first, out);
}

std::string AdapterCheckpoint::description() const {
  return fmt::format("{} tensors of {}", places_.size(), places_.front().tensor->dtype);
}

}  // namespace sluice::weights
