#pragma once
// The box in which a run is opened: a list of runs, and a path that somebody types.
//
// Thread contract: the frame thread. The disk is looked at by another.

#include <string>
#include <vector>

#include "gui/data/background.h"
#include "gui/data/known_runs.h"
#include "gui/data/run_list.h"

namespace sluice::gui {

class OpenBox {
 public:
  // `recent`: databases opened before; it lives longer.
  explicit OpenBox(const std::vector<std::string>& recent) : recent_(&recent) {}

  void open() { is_opening_ = true; }
  // The path to be opened; empty: none in this frame.
  std::string draw();

 private:
  void begin();
  void draw_path(bool& opens);
  void draw_completions();
  std::string draw_runs();
  void look_at_typed_path();

  const std::vector<std::string>* recent_;
  bool is_opening_ = false;
  std::string path_;
  Background<std::vector<RunSummary>> runs_;
  Background<TypedPath> look_;
  double looked_at_ = -1e9;
};

}  // namespace sluice::gui
