#pragma once
// A read-only console over the run database.
//
// Thread contract: the frame thread.

#include <memory>
#include <optional>

#include "gui/views/foreground.h"
#include "gui/views/run_pieces.h"
#include "gui/views/sql_request.h"
#include "gui/views/timeline_state.h"
#include "gui/views/view.h"

namespace sluice::gui {

struct SqlAnswer;

class SqlView : public View {
 public:
  SqlView(const RunPieces& pieces, TimelineState& timeline, SqlRequest& request,
          Foreground& foreground);
  const char* help() const override;
  void draw_content() override;

 private:
  void draw_tables();
  void draw_track_button(const std::shared_ptr<const SqlAnswer>& answer);
  void draw_rows(const SqlAnswer& answer);
  void draw_span_link(int row, const std::string& text, std::optional<std::int64_t> span_id);

  const RunPieces& pieces_;
  TimelineState& timeline_;
  SqlRequest& request_;
  Foreground& foreground_;
  std::string question_ =
      "SELECT track.name, count(*) AS spans, sum(bytes) AS bytes\n"
      "FROM span JOIN track ON track.id = span.track_id\nGROUP BY track.id ORDER BY bytes DESC";
};

}  // namespace sluice::gui
