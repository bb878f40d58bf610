#include "gui/app/opening_notice.h"

#include <fmt/format.h>

#include <algorithm>

#include "gui/app/notice.h"
#include "gui/widgets/figures.h"
#include "gui/widgets/look.h"
#include "gui/widgets/panel.h"

namespace sluice::gui {
namespace {

constexpr std::size_t kPathsShown = 4;  // more are counted

void draw_paths(const std::vector<std::string>& paths) {
  for (std::size_t p = 0; p < std::min(paths.size(), kPathsShown); ++p) draw_empty(paths[p]);
  if (paths.size() > kPathsShown)
    draw_empty(fmt::format("and {} more", paths.size() - kPathsShown));
}

OpeningChoice draw_progress(const Opening& opening) {
  draw_title("Opening", opening.is_far() ? "a run on a server, by ssh"
                                         : "all ranks of a run, by rank 0's clock");
  draw_paths(opening.paths());
  if (opening.is_far()) return ImGui::Button("Cancel") ? OpeningChoice::close : OpeningChoice::none;
  const double share = opening.share();
  draw_meter(share, look().colours.accent, {ImGui::GetContentRegionAvail().x - px(60), px(10)});
  ImGui::SameLine();
  draw_figure(percent_text(share));
  return ImGui::Button("Cancel") ? OpeningChoice::close : OpeningChoice::none;
}

}  // namespace

OpeningChoice draw_opening_notice(const Opening& opening, bool has_picture) {
  const std::shared_ptr<const Opened> opened = opening.result();
  Notice notice("Opening", has_picture ? Notice::Place::bar : Notice::Place::panel,
                opened == nullptr ? look().colours.line : look().colours.red);
  if (!notice.is_shown()) return OpeningChoice::none;
  if (opened == nullptr) return draw_progress(opening);
  notice.say(has_picture ? "The ranks could not be read again" : "This run cannot be shown",
             opened->problem);
  if (notice.button("Close")) return OpeningChoice::close;
  return notice.button("Open another\u2026") ? OpeningChoice::open_another : OpeningChoice::none;
}

}  // namespace sluice::gui
