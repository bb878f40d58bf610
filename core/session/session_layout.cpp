#include "core/session/session_layout.h"

#include <algorithm>
#include <set>

namespace sluice::session {
namespace {

// Beyond it sizes in bytes do not fit in 64 bits with all that is kept for an element.
constexpr std::int64_t kMostElements = std::int64_t{1} << 50;

Status check(const Tensor& tensor) {
  std::int64_t left = kMostElements;
  for (const std::int64_t size : tensor.shape) {
    if (size < 1 || size > left) {
      return make_error(ErrorCode::config,
                        "tensor {}: a shape has sizes of at least 1, and at most 2^50 elements",
                        tensor.name);
    }
    left /= size;
  }
  return ok_status();
}

}  // namespace

std::int64_t element_count(const Tensor& tensor) {
  std::int64_t count = 1;
  for (const std::int64_t size : tensor.shape) count *= size;
  return count;
}

Result<model::FlatLayout> layout_of(std::span<const Tensor> tensors) {
  if (tensors.empty()) return make_error(ErrorCode::config, "a session needs at least one tensor");
  model::FlatLayout layout;
  std::set<std::string> names;
  for (const Tensor& tensor : tensors) {
    RETURN_IF_ERROR(check(tensor));
    if (tensor.name.empty() || !names.insert(tensor.name).second) {
      return make_error(ErrorCode::config, "tensor \"{}\": each needs a name of its own",
                        tensor.name);
    }
    const std::int64_t count = element_count(tensor);
    const std::int64_t first = layout.parameter_count;
    const std::int64_t padded = round_up(count, kPageElements);
    if (padded > kMostElements - first) {
      return make_error(ErrorCode::config, "tensor {}: at most 2^50 elements in all", tensor.name);
    }
    const LayerId layer{layout.layer_count()};
    layout.tensors.push_back({tensor.name, tensor.shape, first, count, layer});
    layout.layers.push_back({.name = tensor.name, .first = first, .count = padded});
    layout.parameter_count += padded;
  }
  return layout;
}

offload::FillInitial fill_of(const Session::Request& request, const model::FlatLayout& layout) {
  return [initial = request.initial, tensors = layout.tensors](std::int64_t first,
                                                               std::span<float> out) {
    std::ranges::fill(out, 0.0F);
    const std::int64_t end = first + std::ssize(out);
    for (std::size_t t = 0; t < tensors.size() && initial; ++t) {
      const std::int64_t low = std::max(first, tensors[t].first);
      const std::int64_t high = std::min(end, tensors[t].first + tensors[t].count);
      if (low >= high) continue;
      initial(
          t, low - tensors[t].first,
          out.subspan(static_cast<std::size_t>(low - first), static_cast<std::size_t>(high - low)));
    }
  };
}

}  // namespace sluice::session
