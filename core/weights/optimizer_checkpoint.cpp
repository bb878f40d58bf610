#include "core/weights/optimizer_checkpoint.h"

#include <charconv>
#include <cmath>
#include <map>

#include "base/check.h"
#include "base/nearest.h"
#include "core/weights/checkpoint_index.h"
#include "core/weights/json_text.h"
#include "core/weights/optimizer_names.h"
#include "core/weights/tensor_names.h"

namespace sluice::weights {
namespace {

constexpr std::int64_t kStepMax = std::int64_t{1} << 53;  // what a double counts exactly

Result<std::string> text_of(const SafetensorsFile& file, const char* key) {
  const auto found = file.metadata().find(key);
  if (found != file.metadata().end()) return found->second;
  std::vector<std::string> keys;
  for (const auto& [name, value] : file.metadata()) keys.push_back(name);
  return make_error(ErrorCode::config,
                    "{}: __metadata__ has no '{}'{}; an optimizer's file has {} = {}, {} and {}",
                    file.path(), key, did_you_mean(key, keys), kFormatKey, kOptimizerFormat,
                    kOptimizerKey, kStepKey);
}

Result<std::int64_t> step_of(const SafetensorsFile& file) {
  ASSIGN_OR_RETURN(const std::string text, text_of(file, kStepKey));
  std::int64_t step = -1;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), step);
  if (parsed.ec == std::errc() && parsed.ptr == text.data() + text.size() && step >= 0 &&
      step <= kStepMax) {
    return step;
  }
  return make_error(ErrorCode::config,
                    "{}: __metadata__ has step = '{}', and it is the number of updates that were "
                    "made, from 0 to 2^53",
                    file.path(), shortened(text));
}

Status check_format(const SafetensorsFile& file, const std::string& optimizer) {
  ASSIGN_OR_RETURN(const std::string format, text_of(file, kFormatKey));
  if (format != kOptimizerFormat) {
    return make_error(ErrorCode::config, "{}: __metadata__ has format = '{}', and not '{}'",
                      file.path(), shortened(format), kOptimizerFormat);
  }
  ASSIGN_OR_RETURN(const std::string found, text_of(file, kOptimizerKey));
  if (found == optimizer) return ok_status();
  return make_error(ErrorCode::config,
                    "{}: is the state of {}, and this run's optimizer is {}; set optimizer={}, or "
                    "leave optimizer_state out",
                    file.path(), shortened(found), optimizer, shortened(found));
}

Status check_tensor(const TensorPlace& place, const model::TensorInfo& info) {
  const StoredTensor& tensor = *place.tensor;
  if (tensor.shape != info.shape) {
    return make_error(ErrorCode::config, "{}: tensor {} has the shape {}, and its parameter has {}",
                      place.file->path(), tensor.name, shape_text(tensor.shape),
                      shape_text(info.shape));
  }
  if (tensor.dtype == dtype_name(ElementType::fp32)) return ok_status();
  return make_error(ErrorCode::config,
                    "{}: tensor {} has the dtype {}, and an optimizer's arrays have F32; save it "
                    "as torch.float32",
                    place.file->path(), tensor.name, tensor.dtype);
}

}  // namespace

Result<OptimizerCheckpoint> OptimizerCheckpoint::open(const std::string& folder,
                                                      const Wanted& wanted) {
  ASSIGN_OR_RETURN(std::vector<SafetensorsFile> files, open_tensors(folder, kOptimizerStem));
  if (files.empty()) {
    return make_error(ErrorCode::not_found,
                      "{}: has no {}, nor {}; `sluice weights export STATE -o FOLDER --optimizer` "
                      "writes one, and docs/weights.md has the lines that make one of torch's",
                      folder, whole_file(kOptimizerStem), index_file(kOptimizerStem));
  }
  OptimizerCheckpoint checkpoint(folder, wanted.shape.flat_layout(), std::move(files));
  RETURN_IF_ERROR(checkpoint.read_metadata(wanted.optimizer));
  RETURN_IF_ERROR(checkpoint.match(wanted));
  return checkpoint;
}

Status OptimizerCheckpoint::read_metadata(const std::string& optimizer) {
  optimizer_ = optimizer;
  for (const SafetensorsFile& file : files_) {
    RETURN_IF_ERROR(check_format(file, optimizer));
    ASSIGN_OR_RETURN(const std::int64_t step, step_of(file));
    if (&file == &files_.front()) step_ = step;
    if (step == step_) continue;
    return make_error(ErrorCode::config, "{}: is of step {}, and {} of step {}; take all of one",
                      file.path(), step, files_.front().path(), step_);
  }
  return ok_status();
}

Status OptimizerCheckpoint::match(const Wanted& wanted) {
  PlacesByName found;
  for (const SafetensorsFile& file : files_) {
    for (const StoredTensor& tensor : file.tensors()) {
      if (found.emplace(tensor.name, TensorPlace{&file, &tensor}).second) continue;
      return make_error(ErrorCode::config, "{}: tensor {} is in another file as well; keep one",
                        file.path(), shortened(tensor.name));
    }
  }
  const auto name = [&wanted](const char* array, const model::TensorInfo& info) {
    return moment_name(array, trained_name_in_files(wanted.shape, info.name));
  };
  std::vector<std::string> names;
  for (const char* const array : wanted.arrays) {
    for (const model::TensorInfo& info : layout_.tensors) names.push_back(name(array, info));
  }
  const std::string difference = name_difference(found, names);
  if (!difference.empty()) {
    return make_error(ErrorCode::config,
                      "{}: the tensors are not those of {} for the model ({}, {} tensors): {}",
                      folder_, optimizer_, wanted.shape.name, layout_.tensors.size(), difference);
  }
  for (const char* const array : wanted.arrays) {
    Array matched{std::string_view(array).ends_with("_sq"), {}};
    for (const model::TensorInfo& info : layout_.tensors) {
      matched.places.push_back(found.at(name(array, info)));
      RETURN_IF_ERROR(check_tensor(matched.places.back(), info));
    }
    arrays_.push_back(std::move(matched));
  }
  return ok_status();
}

Status OptimizerCheckpoint::fill(std::size_t array, std::int64_t first,
                                 std::span<float> out) const {
  CHECK_LT(array, arrays_.size());
  RETURN_IF_ERROR(read_elements(layout_, arrays_[array].places, first, out));
  return check_values(array, first, out);
}

// The root of a number below 0 would make every later weight a NaN.
Status OptimizerCheckpoint::check_values(std::size_t array, std::int64_t first,
                                         std::span<const float> values) const {
  const bool is_squares = arrays_[array].is_squares;
  std::size_t i = 0;
  while (i < values.size() && !std::isnan(values[i]) && !(is_squares && values[i] < 0)) ++i;
  if (i == values.size()) return ok_status();
  const std::int64_t element = first + static_cast<std::int64_t>(i);
  std::size_t t = 0;
  while (layout_.tensors[t].first + layout_.tensors[t].count <= element) ++t;
  const TensorPlace& place = arrays_[array].places[t];
  return make_error(ErrorCode::config, "{}: tensor {} has {:g} in element {}, and takes {}",
                    place.file->path(), place.tensor->name, values[i],
                    element - layout_.tensors[t].first,
                    is_squares ? "numbers from 0 on: it is a sum of squares" : "numbers alone");
}

std::string OptimizerCheckpoint::description() const {
  return fmt::format("{} after {} update{}, {} tensors in {} file{}", optimizer_, step_,
                     step_ == 1 ? "" : "s", arrays_.size() * layout_.tensors.size(), files_.size(),
                     files_.size() == 1 ? "" : "s");
}

}  // namespace sluice::weights
