#pragma once
// The parts around the views of the shell, each of which draws itself.
//
// Thread contract: the frame thread.

#include <string>

#include "gui/app/commands.h"
#include "gui/app/docks.h"
#include "gui/app/export_panel.h"
#include "gui/app/open_box.h"
#include "gui/app/problem_notice.h"
#include "gui/app/run_start.h"
#include "gui/app/settings.h"
#include "gui/app/spare_time.h"
#include "gui/app/start_page.h"
#include "gui/app/top_bar.h"

namespace sluice::gui {

struct ShellParts {
  ShellParts(const Settings& settings, const std::string& program)
      : start_page(settings, spare_time, program),
        new_run(spare_time),
        open_box(settings.recent),
        export_panel(program) {}

  SpareTime spare_time;  // goes last: others hand it work
  TopBar top_bar;
  Docks docks;
  StartPage start_page;
  RunStart new_run;
  ProblemNotice problem_notice;
  OpenBox open_box;
  ExportPanel export_panel;
  CommandPalette palette;
  bool shows_shortcuts = false;
};

}  // namespace sluice::gui
