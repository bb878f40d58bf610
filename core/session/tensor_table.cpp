#include "core/session/tensor_table.h"

#include <algorithm>
#include <map>

#include "core/optimizer/gradient_stats.h"

namespace sluice::session {
namespace {

// Beyond it sizes in bytes do not fit in 64 bits with all that is kept for an element.
constexpr std::int64_t kMostElements = std::int64_t{1} << 50;
constexpr std::int64_t kPieceElements = 64 << 10;

Error refused(const Tensor& tensor, const std::string& why) {
  return make_error(ErrorCode::config, "tensor {}: {}", tensor.name, why);
}

Status check_shape(const Tensor& tensor) {
  std::int64_t left = kMostElements;
  for (const std::int64_t size : tensor.shape) {
    if (size < 1 || size > left) {
      return refused(tensor, "a shape has sizes of at least 1, and at most 2^50 elements");
    }
    left /= size;
  }
  return ok_status();
}

std::int64_t padded_count(const Tensor& tensor) {
  return round_up(element_count(tensor), kPageElements);
}

bool is_trained(const Tensor& tensor) { return !tensor.is_frozen && tensor.tied_to.empty(); }

// The elements of the largest group, in pages.
std::int64_t largest_group_elements(std::span<const Tensor> tensors) {
  std::map<std::size_t, std::int64_t> elements;
  for (const Tensor& tensor : tensors) {
    if (is_trained(tensor)) elements[tensor.group] += padded_count(tensor);
  }
  std::int64_t largest = kPageElements;
  for (const auto& [group, count] : elements) largest = std::max(largest, count);
  return largest;
}

}  // namespace

std::int64_t element_count(const Tensor& tensor) {
  std::int64_t count = 1;
  for (const std::int64_t size : tensor.shape) count *= size;
  return count;
}

Result<TensorTable> TensorTable::make(const Session::Request& request,
                                      std::int64_t subgroup_elements) {
  TensorTable table;
  table.initial_ = request.initial;
  table.initial_array_ = request.initial_array;
  table.subgroup_elements_ = subgroup_elements;
  RETURN_IF_ERROR(table.take(request));
  RETURN_IF_ERROR(table.tie(request.tensors));
  return table;
}

// All but ties, which may be to tensors that come later.
Status TensorTable::take(const Session::Request& request) {
  layout_.first_stays = false;
  const std::size_t group_count = std::max<std::size_t>(1, request.groups.size());
  std::map<std::string, std::size_t> names;
  for (const Tensor& tensor : request.tensors) {
    RETURN_IF_ERROR(check_shape(tensor));
    if (tensor.name.empty() || !names.emplace(tensor.name, names.size()).second) {
      return make_error(ErrorCode::config, "tensor \"{}\": each needs a name of its own",
                        tensor.name);
    }
    if (tensor.group >= group_count) {
      return refused(tensor, fmt::format("there is no group {}; the session has {}", tensor.group,
                                         group_count));
    }
    owner_of_.push_back(owner_of_.size());
  }
  layer_of_.assign(request.tensors.size(), kNoLayer);
  frozen_count_.assign(request.tensors.size(), 0);
  if (group_count > 1) {
    subgroup_elements_ = std::min(subgroup_elements_, largest_group_elements(request.tensors));
  }
  return lay_out(request);
}

// In the order of the tensors within each group.
Status TensorTable::lay_out(const Session::Request& request) {
  const std::size_t group_count = std::max<std::size_t>(1, request.groups.size());
  std::size_t last_group = 0;
  for (const Tensor& tensor : request.tensors) {
    if (is_trained(tensor)) last_group = std::max(last_group, tensor.group);
  }
  for (std::size_t group = 0; group < group_count; ++group) {
    const std::size_t layers_before = layout_.layers.size();
    for (std::size_t t = 0; t < request.tensors.size(); ++t) {
      const Tensor& tensor = request.tensors[t];
      if (tensor.group != group || !tensor.tied_to.empty()) continue;
      if (tensor.is_frozen) {
        frozen_count_[t] = element_count(tensor);
      } else {
        RETURN_IF_ERROR(add_layer(t, tensor));
      }
    }
    if (group_count == 1) break;
    group_sizes_.push_back(static_cast<std::int64_t>(layout_.layers.size() - layers_before));
    end_group(group >= last_group);
  }
  if (!layout_.layers.empty()) return ok_status();
  return make_error(ErrorCode::config, "a session needs at least one tensor that is trained");
}

Status TensorTable::add_layer(std::size_t tensor, const Tensor& info) {
  const std::int64_t first = layout_.parameter_count;
  const std::int64_t padded = padded_count(info);
  if (padded > kMostElements - first) return refused(info, "at most 2^50 elements in all");
  layer_of_[tensor] = LayerId{layout_.layer_count()};
  tensor_of_.push_back(tensor);
  layout_.tensors.push_back({info.name, info.shape, first, element_count(info), layer_of_[tensor]});
  layout_.layers.push_back({.name = info.name, .first = first, .count = padded});
  layout_.parameter_count += padded;
  return ok_status();
}

void TensorTable::end_group(bool is_last) {
  if (!is_last && !layout_.layers.empty()) {
    const std::int64_t end = round_up(layout_.parameter_count, subgroup_elements_);
    layout_.layers.back().count += end - layout_.parameter_count;
    layout_.parameter_count = end;
  }
  group_ends_.push_back(
      static_cast<std::int32_t>(divide_up(layout_.parameter_count, subgroup_elements_)));
}

Status TensorTable::tie(std::span<const Tensor> tensors) {
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    const Tensor& tied = tensors[t];
    if (tied.tied_to.empty()) continue;
    const auto owner = std::ranges::find(tensors, tied.tied_to, &Tensor::name);
    if (owner == tensors.end() || !owner->tied_to.empty()) {
      return refused(
          tied, fmt::format("tied to \"{}\", which is no tensor of its own here", tied.tied_to));
    }
    if (owner->shape != tied.shape) {
      return refused(tied, fmt::format("tied to {}, which has another shape", owner->name));
    }
    if (tied.is_frozen || tied.group != 0) {
      return refused(tied, fmt::format("tied to {}, which says its group, and whether it is frozen",
                                       owner->name));
    }
    owner_of_[t] = static_cast<std::size_t>(owner - tensors.begin());
    layer_of_[t] = layer_of_[owner_of_[t]];
  }
  return ok_status();
}

std::string TensorTable::groups_text() const {
  std::string text;
  for (const std::int64_t size : group_sizes_) {
    text += (text.empty() ? "" : " ") + std::to_string(size);
  }
  return text;
}

void TensorTable::fill_tensor(std::size_t tensor, std::size_t array, std::int64_t first,
                              std::span<float> out) const {
  if (array > 0) return initial_array_(tensor, array, first, out);
  initial_(tensor, first, out);
}

void TensorTable::fill(std::size_t array, std::int64_t first, std::span<float> out) const {
  std::ranges::fill(out, 0.0F);
  if (array == 0 ? !initial_ : !initial_array_) return;
  const std::int64_t end = first + std::ssize(out);
  for (std::size_t layer = 0; layer < tensor_of_.size(); ++layer) {
    const model::TensorInfo& info = layout_.tensors[layer];
    const std::int64_t low = std::max(first, info.first);
    const std::int64_t high = std::min(end, info.first + info.count);
    if (low >= high) continue;
    fill_tensor(
        tensor_of_[layer], array, low - info.first,
        out.subspan(static_cast<std::size_t>(low - first), static_cast<std::size_t>(high - low)));
  }
}

std::int64_t TensorTable::frozen_bytes(ParameterKind kind) const {
  std::int64_t count = 0;
  for (const std::int64_t of_tensor : frozen_count_) count += of_tensor;
  return count * bytes_of(kind);
}

ParameterSpan TensorTable::frozen_parameters(std::size_t tensor) const {
  const std::size_t owner = owner_of_[tensor];
  return {frozen_[owner].get(), frozen_count_[owner], frozen_kind_};
}

void TensorTable::fill_frozen(ParameterKind kind) {
  frozen_kind_ = kind;
  frozen_.resize(frozen_count_.size());
  std::vector<float> piece;
  for (std::size_t t = 0; t < frozen_.size(); ++t) {
    frozen_[t] =
        std::make_unique<std::byte[]>(static_cast<std::size_t>(frozen_count_[t] * bytes_of(kind)));
    for (std::int64_t first = 0; initial_ && first < frozen_count_[t]; first += kPieceElements) {
      piece.assign(static_cast<std::size_t>(std::min(kPieceElements, frozen_count_[t] - first)), 0);
      initial_(t, first, piece);
      optimizer::put_parameters(piece.data(),
                                frozen_parameters(t).subspan(first, std::ssize(piece)));
    }
  }
}

}  // namespace sluice::session
