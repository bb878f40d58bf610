#include "gui/views/run_pieces.h"

namespace sluice::gui {

void RunPieces::pick_up() {
  if (feed == nullptr) return;
  run = feed->run();
  timeline = feed->timeline();
  minimap = feed->minimap();
  chosen = feed->chosen();
  rank = feed->rank();
  paths = feed->paths();
  verdict = feed->verdict();
  statistics = feed->statistics();
  range_statistics = feed->range_statistics();
  found = feed->found();
}

}  // namespace sluice::gui
