#pragma once
// The box in which somebody types the path of a run database.
//
// Thread contract: the frame thread. Whether the path leads to a file is looked at by another.

#include <string>

#include "gui/data/background.h"
#include "gui/data/known_runs.h"

namespace sluice::gui {

class OpenBox {
 public:
  void open() { is_opening_ = true; }
  // The path to be opened; empty: none in this frame.
  std::string draw();

 private:
  void look_at_typed_path();

  bool is_opening_ = false;
  std::string path_;
  Background<TypedPath> look_;
  double looked_at_ = -1e9;
};

}  // namespace sluice::gui
