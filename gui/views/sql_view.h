#pragma once
// A read-only console over the run database.
//
// Thread contract: the frame thread.

#include "gui/views/run_pieces.h"
#include "gui/views/sql_request.h"
#include "gui/views/view.h"

namespace sluice::gui {

class SqlView : public View {
 public:
  SqlView(const RunPieces& pieces, SqlRequest& request);
  const char* help() const override;
  void draw_content() override;

 private:
  void draw_tables();

  const RunPieces& pieces_;
  SqlRequest& request_;
  std::string question_ =
      "SELECT track.name, count(*) AS spans, sum(bytes) AS bytes\n"
      "FROM span JOIN track ON track.id = span.track_id\nGROUP BY track.id ORDER BY bytes DESC";
};

}  // namespace sluice::gui
