#pragma once
// The facts of the chosen span: its figures, its rank, its causes and its effects.
//
// Thread contract: the frame thread.

#include "gui/views/foreground.h"
#include "gui/views/run_pieces.h"
#include "gui/views/span_details.h"
#include "gui/views/sql_request.h"
#include "gui/views/timeline_state.h"
#include "gui/views/view.h"

namespace sluice::gui {

class DetailsView : public View {
 public:
  DetailsView(const RunPieces& pieces, TimelineState& timeline, SqlRequest& sql,
              Foreground& foreground);
  const char* help() const override;
  void draw_content() override;

 private:
  void draw_buttons(const SpanDetails& details);
  void draw_durations(const ChosenSpan& chosen);
  void draw_links(const char* title, const char* none, const std::vector<DetailLink>& links);

  const RunPieces& pieces_;
  TimelineState& timeline_;
  SqlRequest& sql_;
  Foreground& foreground_;
};

}  // namespace sluice::gui
