#pragma once
// Where the names of marks on an axis go, so that none covers another: each in one of a few rows,
// and where marks are too close for their names, one label with their number ("3 changes").
//
// Thread contract: free functions; `width_of` is the caller's.

#include <functional>
#include <span>
#include <string>
#include <vector>

namespace sluice::gui {

struct PlacedMark {
  float x = 0;
  std::string text;
};

struct MarkLabel {
  std::size_t first = 0;  // of the marks that it names
  std::size_t count = 1;
  float begin = 0;
  float width = 0;
  std::size_t row = 0;
  std::string text;
};

struct MarkSpace {
  float left = 0;
  float right = 0;
  float gap = 8;  // between labels
  std::size_t row_max = 1;
};

// `marks` by x. All of them are named, so long as the space holds one number.
std::vector<MarkLabel> place_mark_labels(std::span<const PlacedMark> marks, const MarkSpace& space,
                                         const std::function<float(const std::string&)>& width_of);

}  // namespace sluice::gui
