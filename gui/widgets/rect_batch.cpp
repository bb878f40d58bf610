#include "gui/widgets/rect_batch.h"

#include <algorithm>
#include <cmath>

namespace sluice::gui {
namespace {

// ImGui's indices may have 16 bits: a reservation of more vertices would not fit.
constexpr std::size_t kRectsAReservation = 8192;

// The first pixel whose centre is not left of (above) an edge.
float pixel(float edge) { return std::ceil(edge - 0.5F); }

}  // namespace

void RectBatch::add(std::size_t lane, ImVec2 low, ImVec2 high, ImU32 colour) {
  if (lane >= last_.size()) last_.resize(lane + 1, kNone);
  if (last_[lane] != kNone) {
    Rect& before = rects_[last_[lane]];
    const bool is_one = before.colour == colour && pixel(low.x) <= pixel(before.high.x) &&
                        pixel(before.low.y) == pixel(low.y) &&
                        pixel(before.high.y) == pixel(high.y);
    if (is_one) {
      before.high.x = std::max(before.high.x, high.x);
      return;
    }
  }
  last_[lane] = rects_.size();
  rects_.push_back({low, high, colour});
}

void RectBatch::flush() {
  for (std::size_t begin = 0; begin < rects_.size(); begin += kRectsAReservation) {
    const std::size_t end = std::min(rects_.size(), begin + kRectsAReservation);
    const auto count = static_cast<int>(end - begin);
    list_->PrimReserve(6 * count, 4 * count);
    for (std::size_t i = begin; i < end; ++i)
      list_->PrimRect(rects_[i].low, rects_[i].high, rects_[i].colour);
  }
  rects_.clear();
  std::ranges::fill(last_, kNone);
}

}  // namespace sluice::gui
