#include "gui/views/span_search.h"

#include <algorithm>
#include <vector>

#include "gui/data/span_lookup.h"
#include "gui/views/run_pieces.h"

namespace sluice::gui {

void SpanSearch::look_for(const std::string& text) {
  text_ = text;
  found_index_.reset();
  has_wrapped_ = false;
  awaited_direction_ = 0;
  if (pieces_->feed != nullptr) pieces_->feed->search(text);
}

bool SpanSearch::has_findings() const {
  return pieces_->found != nullptr && pieces_->found->text == text_;
}

const FoundSpan* SpanSearch::awaited(TimeNs view_begin) {
  if (awaited_direction_ == 0 || !has_findings()) return nullptr;
  return step(std::exchange(awaited_direction_, 0), view_begin);
}

const FoundSpan* SpanSearch::step(int direction, TimeNs view_begin) {
  if (text_.empty()) return nullptr;
  if (!has_findings()) {
    awaited_direction_ = direction;
    return nullptr;
  }
  const std::vector<FoundSpan>& spans = pieces_->found->spans;
  if (spans.empty()) return nullptr;
  const auto count = static_cast<std::int64_t>(spans.size());
  std::int64_t next = 0;
  if (found_index_) {
    next = static_cast<std::int64_t>(*found_index_) + direction;
  } else {
    const auto here = std::ranges::lower_bound(spans, view_begin, {}, &FoundSpan::ts);
    next = (here - spans.begin()) - (direction < 0 ? 1 : 0);
  }
  has_wrapped_ = next < 0 || next >= count;
  found_index_ = static_cast<std::size_t>((next % count + count) % count);
  return &spans[*found_index_];
}

}  // namespace sluice::gui
