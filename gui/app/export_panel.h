#pragma once
// Exporting the open run (gui/data/export_run.h): which part of it, and what became of it.
//
// Thread contract: the frame thread.

#include <string>
#include <vector>

#include "gui/app/export_choices.h"
#include "gui/data/background.h"
#include "gui/data/export_run.h"

namespace sluice::gui {

class ExportPanel {
 public:
  // `program`: the command `sluice`; empty: find_sluice().
  explicit ExportPanel(std::string program) : program_(std::move(program)) {}

  // Asks which of the choices it shall be, the first unless another is clicked.
  void ask(const ExportSource& source, ExportForm form, std::vector<ExportChoice> choices);
  void begin(const ExportSource& source, ExportForm form, const ExportSteps& steps = {});
  // One at a time: another would be given the name that the one under way is about to take.
  bool is_working() const { return exported_.is_working(); }
  // From ask() or begin() on until somebody closes it.
  void draw();
  // Closes what it says of an export that has ended; false: there is none.
  bool dismiss();

 private:
  void draw_question();
  void draw_outcome(const Exported* exported);

  std::string program_;
  Background<Exported> exported_;
  bool is_open_ = false;
  // The question that is asked; no choices: none is.
  ExportSource source_;
  ExportForm form_ = ExportForm::trace;
  std::vector<ExportChoice> choices_;
  std::size_t chosen_ = 0;
};

}  // namespace sluice::gui
