#pragma once
// The machine as the platform describes it: the host, the links that devices share, each device
// with its drive and its engine, and how busy each is in a step. In a live run a share of the
// subgroups is moved by dragging one device onto another.
//
// Thread contract: the frame thread.

#include <functional>

#include "gui/views/run_pieces.h"
#include "gui/views/setting_choice.h"
#include "gui/views/view.h"
#include "profiler/analyze/link_use.h"

namespace sluice::gui {

class DevicesView : public View {
 public:
  DevicesView(const RunPieces& pieces, SettingChoice& choice);
  const char* help() const override;
  void draw_content() override;

 private:
  // A number for each device, in the order of the record; empty: the run does not say.
  struct Shares {
    std::vector<std::int64_t> in_force;  // subgroups
    std::vector<std::int64_t> chosen;
  };
  Shares shares_of() const;
  void draw_host() const;
  void draw_computing() const;
  void draw_ranks() const;
  void draw_accelerators() const;
  void draw_links(const std::function<bool(const analyze::LinkLoad&)>& belongs) const;
  void draw_tools(const Shares& shares);
  void draw_device(const Shares& shares, std::size_t index, double steps_ns, double step_count,
                   bool is_slowest);
  void drag_share(const Shares& shares, std::size_t index);

  const RunPieces& pieces_;
  SettingChoice& choice_;

  int amount_ = 0;  // subgroups that a drag moves; 0: a tenth of a share, once shares are known
};

}  // namespace sluice::gui
