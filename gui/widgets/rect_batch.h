#pragma once
// Many filled rectangles at once: those that meet in one row and colour become one, and all go into
// the draw list with one reservation, which costs a third of ImGui's call for each.
//
// The picture is the same, to the pixel: an edge counts where it lies among the centres of pixels,
// as for whoever fills the rectangle. Where colours are transparent, two that overlap within a
// pixel are one.
//
// Thread contract: the frame thread, inside an ImGui window.

#include <imgui.h>

#include <vector>

namespace sluice::gui {

class RectBatch {
 public:
  explicit RectBatch(ImDrawList* list) : list_(list) {}
  ~RectBatch() { flush(); }
  RectBatch(const RectBatch&) = delete;
  RectBatch& operator=(const RectBatch&) = delete;

  // Those of a lane come from the left to the right; lanes are few, and do not overlap.
  void add(std::size_t lane, ImVec2 low, ImVec2 high, ImU32 colour);
  // Drawings from here on lie above all that was added.
  void flush();

 private:
  struct Rect {
    ImVec2 low;
    ImVec2 high;
    ImU32 colour = 0;
  };
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  ImDrawList* list_;
  std::vector<Rect> rects_;
  std::vector<std::size_t> last_;  // of each lane
};

}  // namespace sluice::gui
