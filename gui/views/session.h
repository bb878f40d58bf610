#pragma once
// All that the window has of the open run. The shell owns it; each view gets the parts that it
// reads and the ones that it may change (gui/views/views.cpp).
//
// Thread contract: the frame thread.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gui/views/foreground.h"
#include "gui/views/run_control.h"
#include "gui/views/run_pieces.h"
#include "gui/views/sql_request.h"
#include "gui/views/timeline_state.h"

namespace sluice::gui {

class RunNotes;

struct Session {
  RunPieces pieces;                 // what was read of it
  TimelineState timeline{pieces};   // what somebody looks at
  RunControl control;               // what somebody changes
  SqlRequest sql;                   // what another view asks in SQL
  std::unique_ptr<RunNotes> notes;  // what somebody wrote down; null: no run is open
  std::string wanted_run;           // which run a view wants to be opened; empty: none
  Foreground foreground;            // which views come to the front

  std::vector<std::string> recent;     // databases opened before, the last one first
  std::function<void()> wake = [] {};  // draw again; from any thread

  Session();
  ~Session();
  Session(const Session&) = delete;  // its parts know one another
  Session& operator=(const Session&) = delete;

  void pick_up();
  // Nothing of the run before stays.
  void close();
};

}  // namespace sluice::gui
