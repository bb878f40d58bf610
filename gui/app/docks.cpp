#include "gui/app/docks.h"

#include <fmt/format.h>
#include <imgui_internal.h>

#include <algorithm>
#include <cmath>

#include "base/words.h"
#include "gui/widgets/look.h"

namespace sluice::gui {
namespace {

constexpr const char* kDockHost = "##dock host";
// Below these a column or a row less stands side by side, so that each keeps room for its words.
constexpr float kThreeColumns = 1000;
constexpr float kTwoRows = 560;
constexpr float kViewWidth = 230;  // that a view's words need; a narrower pane scrolls
constexpr float kViewHeight = 160;
constexpr float kSideMax = 0.5F;  // of the room, whatever a view needs

bool has_centre(const ImGuiDockNode& node) {
  if (!node.IsSplitNode()) return node.IsCentralNode();
  return has_centre(*node.ChildNodes[0]) || has_centre(*node.ChildNodes[1]);
}

// ImGui takes all that a window loses from the timeline in its centre. Here the sides keep their
// share instead, and the room of their words, but never become larger.
void shrink_sides(ImGuiDockNode& node, ImVec2 size) {
  if (!node.IsSplitNode() || !has_centre(node)) return;
  const bool is_second = has_centre(*node.ChildNodes[0]);
  ImGuiDockNode& side = *node.ChildNodes[is_second ? 1 : 0];
  ImGuiDockNode& centre = *node.ChildNodes[is_second ? 0 : 1];
  const ImGuiAxis axis = node.SplitAxis;
  const float room = size[axis] - ImGui::GetStyle().DockingSeparatorSize;
  const float was = side.SizeRef[axis] + centre.SizeRef[axis];
  if (was <= 0) return;
  const float need = std::min(px(axis == ImGuiAxis_X ? kViewWidth : kViewHeight), room * kSideMax);
  const float kept = std::max(need, side.SizeRef[axis] / was * room);
  side.SizeRef[axis] = std::max(1.0F, std::floor(std::min(side.SizeRef[axis], kept)));
  centre.SizeRef[axis] = std::max(1.0F, room - side.SizeRef[axis]);
  size[axis] = centre.SizeRef[axis];
  shrink_sides(centre, size);
}

}  // namespace

void Docks::draw(const std::vector<std::unique_ptr<View>>& views, Foreground& foreground,
                 Settings& settings) {
  if (!has_read_shape_) shape_ = read_shape(settings.docks);
  has_read_shape_ = true;
  draw_space(views, foreground);
  if (!has_docked_new_views_) dock_new_views(views, foreground);
  has_docked_new_views_ = true;
  draw_views(views, foreground, settings);
  note_shape(views, settings);
}

Docks::Shape Docks::shape_of(ImVec2 size) {
  return {.is_narrow = size.x < px(kThreeColumns), .is_low = size.y < px(kTwoRows)};
}

std::optional<Docks::Shape> Docks::read_shape(const std::string& kept) {
  if (kept.empty()) return {};
  return Shape{.is_narrow = kept.find("narrow") != std::string::npos,
               .is_low = kept.find("low") != std::string::npos};
}

// Docks that nobody has changed may be others at the next start, in a window of another size.
void Docks::note_shape(const std::vector<std::unique_ptr<View>>& views, Settings& settings) {
  if (docking_frames_ > 0 || !shape_) return;
  if (places_.empty()) {
    for (const std::unique_ptr<View>& view : views) {
      const ImGuiWindow* window = ImGui::FindWindowByName(view->title());
      if (window != nullptr && window->DockId != 0) places_[view->title()] = window->DockId;
    }
  }
  if (!is_as_laid_out(views)) shape_.reset();
  const std::string kept = !shape_ ? ""
                                   : fmt::format("{} {}", shape_->is_narrow ? "narrow" : "wide",
                                                 shape_->is_low ? "low" : "high");
  settings.note_docks(kept);
}

void Docks::fit_sides(ImGuiID dock) {
  const ImVec2 size = ImGui::GetMainViewport()->WorkSize;
  ImGuiDockNode* node = ImGui::DockBuilderGetNode(dock);
  if (node == nullptr || (size.x == fitted_.x && size.y == fitted_.y)) return;
  fitted_ = size;
  shrink_sides(*node, size);
}

// Nobody has moved a view to another dock since.
bool Docks::is_as_laid_out(const std::vector<std::unique_ptr<View>>& views) const {
  return std::ranges::all_of(views, [this](const std::unique_ptr<View>& view) {
    const ImGuiWindow* window = ImGui::FindWindowByName(view->title());
    const auto placed = places_.find(view->title());
    return !view->is_open || window == nullptr || placed == places_.end() ||
           window->DockId == placed->second;
  });
}

// A window that becomes small or large gets the docks of its size, unless somebody has made others.
void Docks::draw_space(const std::vector<std::unique_ptr<View>>& views, Foreground& foreground) {
  const ImGuiID dock = ImGui::GetID(kDockHost);
  const ImGuiDockNode* node = ImGui::DockBuilderGetNode(dock);
  const bool is_new =
      node == nullptr || (node->IsLeafNode() && node->Windows.Size == 0 &&
                          ImGui::FindWindowSettingsByID(ImHashStr("Timeline")) == nullptr);
  const bool is_of_other_size = shape_ && docking_frames_ == 0 &&
                                *shape_ != shape_of(ImGui::GetMainViewport()->WorkSize) &&
                                is_as_laid_out(views);
  if (lays_out_ || is_new || is_of_other_size) {
    lay_out(dock, views, foreground);
    lays_out_ = false;
  }
  fit_sides(dock);
  ImGui::DockSpaceOverViewport(dock, ImGui::GetMainViewport(), ImGuiDockNodeFlags_None);
  node = ImGui::DockBuilderGetCentralNode(dock);
  if (node == nullptr || node->Windows.Size > 0) return;
  const char* words = "Closed. Menu View opens each view again; Default layout shows all of them.";
  const ImVec2 size = ImGui::CalcTextSize(words);
  if (size.x > node->Size.x) return;
  node->HostWindow->DrawList->AddText(node->Rect().GetCenter() - size / 2, look().colours.dim,
                                      words);
}

void Docks::place(const char* title, ImGuiID dock) {
  places_[title] = dock;
  ImGui::DockBuilderDockWindow(title, dock);
}

// The answer stands first, top left; the timeline is the largest; history and tables lie below it;
// the knobs are at the right, what is chosen beneath them. Where there is no room for a column or
// for panes below one another, they are tabs of their neighbours.
void Docks::lay_out(ImGuiID dock, const std::vector<std::unique_ptr<View>>& views,
                    Foreground& foreground) {
  ImGui::DockBuilderRemoveNode(dock);
  ImGui::DockBuilderAddNode(dock, static_cast<int>(ImGuiDockNodeFlags_DockSpace));
  ImGui::DockBuilderSetNodeSize(dock, ImGui::GetMainViewport()->WorkSize);
  ImGuiID rest = dock;
  // In a small window the sides keep what their texts need, also when it is made larger later on.
  const float width = ImGui::GetMainViewport()->WorkSize.x;
  const float height = ImGui::GetMainViewport()->WorkSize.y;
  const Shape shape = shape_of({width, height});
  shape_ = shape;
  places_.clear();
  const float right = shape.is_narrow ? 0 : std::clamp(px(320) / width, 0.2F, 0.4F);
  const float side = std::clamp(px(280) / (width * (1 - right)), 0.25F, 0.5F);
  const float down = height < px(800) ? 0.3F : 0.36F;
  // The host and a whole device below it.
  const float below = std::clamp(px(290) / (height * (1 - down)), 0.35F, 0.55F);
  // Side by side with the tables, which need room for their figures, or in one dock.
  const bool has_phases_apart = width * (1 - right) >= px(1300);
  const auto split = [](ImGuiID& from, ImGuiDir towards, float share) {
    return ImGui::DockBuilderSplitNode(from, towards, share, nullptr, &from);
  };
  ImGuiID knobs = shape.is_narrow ? 0 : split(rest, ImGuiDir_Right, right);
  ImGuiID details = shape.is_narrow || shape.is_low ? knobs : split(knobs, ImGuiDir_Down, 0.42F);
  ImGuiID bottom = shape.is_low ? 0 : split(rest, ImGuiDir_Down, down);
  ImGuiID left = split(rest, ImGuiDir_Left, side);
  const ImGuiID devices = shape.is_low ? left : split(left, ImGuiDir_Down, below);
  if (shape.is_narrow) {
    knobs = left;
    details = devices;
  }
  if (shape.is_low) bottom = rest;
  const bool has_steps_apart = !shape.is_narrow && !shape.is_low;
  const ImGuiID steps = has_steps_apart ? split(bottom, ImGuiDir_Left, 0.25F) : bottom;
  const ImGuiID phases =
      has_steps_apart && has_phases_apart ? split(bottom, ImGuiDir_Left, 0.36F) : steps;
  place("Overview", left);
  place("Devices", devices);
  place("Timeline", rest);
  place("Knobs", knobs);
  place("Details", details);
  place("Steps", steps);
  place(words::kPhases, phases);
  for (const char* name : {"Statistics", "Links", "Compare", words::kRuns, "SQL", words::kRunInfo})
    place(name, bottom);
  ImGui::DockBuilderFinish(dock);
  // In front of the tabs beside it; what was asked for before stays the last.
  std::vector<std::string> in_front = {"Steps", "Statistics"};
  if (shape.is_low) in_front.insert(in_front.end(), {"Timeline", "Knobs"});
  if (shape.is_narrow) in_front.emplace_back("Devices");
  in_front.emplace_back("Overview");
  // A closed view stays closed: a window that is made larger opens nothing.
  std::erase_if(in_front, [&](const std::string& name) {
    return std::ranges::none_of(views, [&](const std::unique_ptr<View>& view) {
      return view->is_open && name == view->title();
    });
  });
  foreground.bring_before_others(in_front);
  docking_frames_ = 3;
}

// A layout that an older Sluice kept knows nothing of views that came later: they would float above
// the others. They become tabs beside Statistics, which stays in front.
void Docks::dock_new_views(const std::vector<std::unique_ptr<View>>& views,
                           Foreground& foreground) {
  const ImGuiWindowSettings* host = ImGui::FindWindowSettingsByID(ImHashStr("Statistics"));
  if (host == nullptr || host->DockId == 0) return;
  const ImGuiID dock = host->DockId;
  bool has_new = false;
  for (const std::unique_ptr<View>& view : views) {
    if (ImGui::FindWindowSettingsByID(ImHashStr(view->title())) != nullptr) continue;
    ImGui::DockBuilderDockWindow(view->title(), dock);
    has_new = true;
  }
  if (!has_new) return;
  foreground.bring_before_others({"Statistics"});
  docking_frames_ = 3;
}

void Docks::draw_views(const std::vector<std::unique_ptr<View>>& views, Foreground& foreground,
                       Settings& settings) {
  std::string forward;
  if (docking_frames_ > 0) {
    docking_frames_ -= 1;
  } else {
    forward = foreground.take();
  }
  for (const std::unique_ptr<View>& view : views) {
    if (forward == view->title()) {
      view->is_open = true;
      ImGui::SetNextWindowFocus();
    }
    settings.note_view(view->title(), view->is_open);
    if (!view->is_open) continue;
    ImGui::SetNextWindowSize({px(720), px(420)}, ImGuiCond_FirstUseEver);
    // A view that appears stays behind the one that its dock had in front.
    ImGuiWindowFlags flags = ImGuiWindowFlags_NoFocusOnAppearing;
    const ImGuiWindow* window = ImGui::FindWindowByName(view->title());
    if (window != nullptr && window->Size.x < px(kViewWidth)) {
      flags |= ImGuiWindowFlags_HorizontalScrollbar;
      ImGui::SetNextWindowContentSize({px(kViewWidth), 0});
    }
    if (ImGui::Begin(view->title(), &view->is_open, flags)) view->draw_content();
    ImGui::End();
  }
}

}  // namespace sluice::gui
