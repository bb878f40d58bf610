#pragma once
// The text that somebody looks for among the spans, and which of those found was shown last.
//
// Thread contract: the frame thread.

#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "base/units.h"

namespace sluice::gui {

struct FoundSpan;
struct RunPieces;

class SpanSearch {
 public:
  // `pieces` lives longer.
  explicit SpanSearch(const RunPieces& pieces) : pieces_(&pieces) {}

  const std::string& text() const { return text_; }  // empty: nothing
  void look_for(const std::string& text);

  // Which of the found spans was shown last; none: none yet.
  const std::optional<std::size_t>& found_index() const { return found_index_; }
  // The search went past the last one to the first, or past the first to the last.
  bool has_wrapped() const { return has_wrapped_; }
  // The next (1) or the previous (-1) found span; the first time the one nearest to `view_begin`.
  // Null: there is none; where the search still goes on, awaited() gives it when it ends.
  const FoundSpan* step(int direction, TimeNs view_begin);
  const FoundSpan* awaited(TimeNs view_begin);

  void focus() { wants_focus_ = true; }
  // The field of the search shall get the keyboard; true once.
  bool take_focus() { return std::exchange(wants_focus_, false); }

 private:
  bool has_findings() const;

  const RunPieces* pieces_;
  std::string text_;
  std::optional<std::size_t> found_index_;
  bool has_wrapped_ = false;
  int awaited_direction_ = 0;  // asked for before the search had ended
  bool wants_focus_ = false;
};

}  // namespace sluice::gui
