#pragma once
// Two runs side by side, or two stretches of this one: what takes longer, by how much, and whether
// that is more than noise.
//
// Thread contract: the frame thread.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "gui/data/background.h"
#include "gui/data/side_by_side.h"
#include "gui/views/run_pieces.h"
#include "gui/views/timeline_state.h"
#include "gui/views/view.h"

namespace sluice::gui {

class CompareView : public View {
 public:
  // `recent`: run databases opened before; `wake`: draw again, from any thread. All live longer.
  CompareView(const RunPieces& pieces, const TimelineState& timeline,
              const std::vector<std::string>& recent, const std::function<void()>& wake);
  const char* help() const override;
  void draw_content() override;

 private:
  void forget_other_run();
  void turn_to_stretches();
  void draw_choice();
  void compare_with(const std::string& database);
  void draw_runs() const;
  void draw_stretches();

  const RunPieces& pieces_;
  const TimelineState& timeline_;
  const std::vector<std::string>& recent_;
  const std::function<void()>& wake_;

  const RunFeed* shown_of_ = nullptr;
  bool shows_stretches_ = false;
  std::optional<TimeRange> seen_pinned_;
  std::string typed_path_;
  Background<RunPair> runs_;
  Background<StretchPair> stretches_;
  Stretch asked_a_;
  Stretch asked_b_;
};

}  // namespace sluice::gui
