#include "core/model/widened_pieces.h"

#include <algorithm>

namespace sluice::model {
namespace {

// Eight tensors in fp32, which widened_attention_bytes names.
constexpr std::int64_t kWidenedValueBytes = 8 * 4;

std::int64_t window_bytes(WindowShape window, std::int64_t hidden) {
  return window.sequence * hidden * kWidenedValueBytes;
}

}  // namespace

std::int64_t widened_windows(WindowShape window, std::int64_t hidden) {
  return std::clamp<std::int64_t>(kWidenedBytes / window_bytes(window, hidden), 1, window.batch);
}

std::int64_t widened_attention_bytes(WindowShape window, std::int64_t hidden) {
  return widened_windows(window, hidden) * window_bytes(window, hidden);
}

}  // namespace sluice::model
