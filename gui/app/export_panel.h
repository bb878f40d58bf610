#pragma once
// Exporting the open run (gui/data/export_run.h), and what became of it.
//
// Thread contract: the frame thread.

#include <string>

#include "gui/data/background.h"
#include "gui/data/export_run.h"

namespace sluice::gui {

class ExportPanel {
 public:
  // `program`: the command `sluice`; empty: find_sluice().
  explicit ExportPanel(std::string program) : program_(std::move(program)) {}

  void begin(const std::string& database, ExportForm form);
  // One at a time: another would be given the name that the one under way is about to take.
  bool is_working() const { return exported_.is_working(); }
  // From begin() on until somebody closes it.
  void draw();
  // Closes what it says of an export that has ended; false: there is none.
  bool dismiss();

 private:
  std::string program_;
  Background<Exported> exported_;
  bool is_open_ = false;
};

}  // namespace sluice::gui
