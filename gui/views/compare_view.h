#pragma once
// Two runs side by side, or two stretches of this one: what takes longer, by how much, and whether
// that is more than noise.
//
// Thread contract: the frame thread.

#include <string>

#include "gui/data/background.h"
#include "gui/data/side_by_side.h"
#include "gui/views/view.h"

namespace sluice::gui {

class CompareView : public View {
 public:
  CompareView();
  const char* help() const override;
  void draw_content(Session& session) override;

 private:
  void forget_other_run(const Session& session);
  void draw_choice(Session& session);
  void compare_with(Session& session, const std::string& database);
  void draw_runs(const Session& session) const;
  void draw_stretches(Session& session);

  const RunFeed* shown_of_ = nullptr;
  bool shows_stretches_ = false;
  std::string typed_path_;
  Background<RunPair> runs_;
  Background<StretchPair> stretches_;
  Stretch asked_a_;
  Stretch asked_b_;
};

}  // namespace sluice::gui
