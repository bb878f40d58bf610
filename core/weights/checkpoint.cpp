#include "core/weights/checkpoint.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "base/fnv.h"
#include "core/model/architecture.h"
#include "core/weights/checkpoint_index.h"
#include "core/weights/model_folder.h"
#include "core/weights/tensor_names.h"

namespace sluice::weights {
namespace {

// Two tensors are compared in pieces of so many elements each.
constexpr std::int64_t kComparedElements = 1 << 18;

// Elements of each end of a tensor, and of its middle, that a sample has.
constexpr std::int64_t kSampledElements = 256;

// The first element in which they differ; as many as there are: none.
Result<std::int64_t> first_difference_of(const TensorPlace& a, const TensorPlace& b) {
  const std::int64_t count = a.tensor->element_count();
  std::vector<float> of_a(static_cast<std::size_t>(std::min(count, kComparedElements)));
  std::vector<float> of_b(of_a.size());
  for (std::int64_t first = 0; first < count; first += kComparedElements) {
    const auto piece = static_cast<std::size_t>(std::min(kComparedElements, count - first));
    const std::span<float> in_a(of_a.data(), piece);
    const std::span<float> in_b(of_b.data(), piece);
    RETURN_IF_ERROR(a.file->read(*a.tensor, first, in_a));
    RETURN_IF_ERROR(b.file->read(*b.tensor, first, in_b));
    if (std::memcmp(in_a.data(), in_b.data(), piece * sizeof(float)) == 0) continue;
    std::size_t i = 0;
    while (std::memcmp(&in_a[i], &in_b[i], sizeof(float)) == 0) ++i;
    return first + static_cast<std::int64_t>(i);
  }
  return count;
}

}  // namespace

Result<std::optional<Checkpoint>> Checkpoint::open(const std::string& folder,
                                                   const model::ModelShape& shape) {
  ASSIGN_OR_RETURN(std::vector<SafetensorsFile> files, open_weights(folder));
  if (files.empty()) return std::nullopt;
  Checkpoint checkpoint(folder, shape.base_layout(), std::move(files));
  ASSIGN_OR_RETURN(checkpoint.match_,
                   match_tensors(checkpoint.files_, shape, checkpoint.layout_, folder));
  RETURN_IF_ERROR(checkpoint.check_tied(shape));
  return std::optional<Checkpoint>(std::move(checkpoint));
}

Result<std::optional<Checkpoint>> open_checkpoint(const std::string& path,
                                                  const model::ModelShape& shape) {
  const std::optional<std::string> folder = hugging_face_folder(path);
  if (!folder) return std::nullopt;
  return Checkpoint::open(*folder, shape);
}

Status Checkpoint::check_tied(const model::ModelShape& shape) const {
  const TensorPlace& copy = match_.tied_copy;
  if (copy.tensor == nullptr) return ok_status();
  const std::string_view table = token_table(shape.family);
  std::size_t t = 0;
  while (layout_.tensors[t].name != table) ++t;
  const TensorPlace& tokens = match_.places[t];
  std::string how;
  if (copy.tensor->shape != tokens.tensor->shape) {
    how = fmt::format("has the shape {} and not {}", shape_text(copy.tensor->shape),
                      shape_text(tokens.tensor->shape));
  } else {
    ASSIGN_OR_RETURN(const std::int64_t at, first_difference_of(copy, tokens));
    if (at == tokens.tensor->element_count()) return ok_status();
    how = fmt::format("differs in element {}", at);
  }
  const bool may_be_own =
      model::architecture_of(shape).output_table == model::OutputTable::own_unless_tied;
  return make_error(ErrorCode::config,
                    "{}: tensor {} {} from {}, and config.json ties the two (tie_word_embeddings): "
                    "{}take {} out of the file",
                    copy.file->path(), copy.tensor->name, how, tokens.tensor->name,
                    may_be_own ? "set it to false to train both, or " : "", copy.tensor->name);
}

Status Checkpoint::fill(std::int64_t first, std::span<float> out) const {
  return read_elements(layout_, match_.places, first, out);
}

std::vector<std::string> Checkpoint::new_tensors() const {
  std::vector<std::string> names;
  for (std::size_t t = 0; t < match_.places.size(); ++t) {
    if (!match_.places[t].is_there()) names.push_back(layout_.tensors[t].name);
  }
  return names;
}

// Other weights of the same model differ in each of their tensors, or in some.
Result<std::uint64_t> Checkpoint::sample() const {
  std::uint64_t hash = fingerprint();
  std::vector<float> values;
  for (std::size_t t = 0; t < layout_.tensors.size(); ++t) {
    if (!match_.places[t].is_there()) continue;
    const model::TensorInfo& info = layout_.tensors[t];
    const std::int64_t count = std::min(info.count, kSampledElements);
    values.resize(static_cast<std::size_t>(count));
    for (const std::int64_t at : {std::int64_t{0}, (info.count - count) / 2, info.count - count}) {
      RETURN_IF_ERROR(fill(info.first + at, values));
      const auto bytes = std::as_bytes(std::span(values));
      hash =
          fnv1a(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()), hash);
    }
  }
  return hash;
}

std::string Checkpoint::description() const {
  std::set<std::string> dtypes;
  for (const TensorPlace& place : match_.places) {
    if (place.is_there()) dtypes.insert(place.tensor->dtype);
  }
  const std::vector<std::string> added = new_tensors();
  return fmt::format("{} tensors of {} in {} file{}{}", match_.places.size() - added.size(),
                     fmt::join(dtypes, " and "), files_.size(), files_.size() == 1 ? "" : "s",
                     added.empty() ? "" : fmt::format(", and new {}", fmt::join(added, ", ")));
}

std::uint64_t Checkpoint::fingerprint() const {
  std::uint64_t hash = fnv1a(std::uint64_t{layout_.fingerprint()}, kFnvOffset);
  for (const TensorPlace& place : match_.places)
    hash = fnv1a(place.is_there() ? place.tensor->dtype : "new", hash);
  return hash;
}

}  // namespace sluice::weights
