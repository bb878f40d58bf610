#include "gui/widgets/knob_field.h"

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string_view>

#include "base/units.h"
#include "gui/widgets/figures.h"
#include "gui/widgets/look.h"
#include "gui/widgets/panel.h"
#include "gui/widgets/setting_text.h"
#include "gui/widgets/text_input.h"

namespace sluice::gui {
namespace {

constexpr double kLogarithmicFrom = 50;  // times the least value

bool is_logarithmic(const KnobField& field) {
  return *field.min > 0 && *field.max / *field.min >= kLogarithmicFrom;
}

double place_of(const KnobField& field, double value) {
  const double low = *field.min;
  const double high = *field.max;
  const double place = is_logarithmic(field)
                           ? std::log(std::max(value, low) / low) / std::log(high / low)
                           : (value - low) / (high - low);
  return std::clamp(place, 0.0, 1.0);
}

// "6250000KiB" is exact and unreadable.
std::string readable(const KnobField& field, const std::string& value) {
  constexpr std::size_t kReadable = 8;
  if (field.kind != KnobKind::bytes || value.size() <= kReadable) return value;
  const Result<std::int64_t> bytes = parse_bytes(value);
  return bytes.ok() ? bytes_text(static_cast<double>(*bytes)) : value;
}

void draw_head(const KnobField& field, const std::string& chosen_value) {
  const std::string in_force = readable(field, field.in_force);
  const std::string chosen = readable(field, chosen_value);
  const Colours& colours = look().colours;
  const float begin_x = ImGui::GetCursorPosX();
  const float room = ImGui::GetContentRegionAvail().x;
  ImGui::TextUnformatted(field.key.c_str());
  if (!field.tip.empty()) ImGui::SetItemTooltip("%s", field.tip.c_str());
  const bool is_pending = chosen_value != field.in_force;
  const std::string arrow = " \u2192 ";
  const FontScope font(look().mono, Look::kTextSize);
  const std::string unit = field.unit.empty() ? "" : " " + field.unit;
  const std::string all = is_pending ? in_force + arrow + chosen : in_force + unit;
  const float x = begin_x + room - ImGui::CalcTextSize(all.c_str()).x;
  ImGui::SameLine(std::max(x, begin_x + px(96)));
  draw_coloured(is_pending ? colours.dim : colours.text, is_pending ? in_force : all, false);
  if (!is_pending) return;
  ImGui::SameLine(0, 0);
  draw_coloured(colours.amber, arrow + chosen, false);
}

// The value of the run is filled; ImGui draws the grab, which is the chosen value, over it.
void draw_track(const KnobField& field, float grab_width) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::CalcItemWidth();
  const float height = ImGui::GetFrameHeight();
  const float y = at.y + height / 2;
  const auto value = static_cast<float>(place_of(field, parse_number(field.in_force).value_or(0)));
  const float begin = at.x + 2 + grab_width / 2;
  const float end = begin + (width - 4 - grab_width) * value;
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled({at.x, y - px(2)}, {at.x + width, y + px(2)}, look().colours.inset, px(2));
  list->AddRectFilled({at.x, y - px(2)}, {end, y + px(2)},
                      with_alpha(look().colours.accent, field.can_turn ? 1.0F : 0.5F), px(2));
  list->AddCircleFilled({end, y}, px(4), look().colours.accent);
}

bool draw_slider(const KnobField& field, std::string& chosen) {
  const bool is_pending = chosen != field.in_force;
  const bool is_whole = field.kind == KnobKind::integer;
  const float grab = px(12);
  const ImU32 colour = is_pending ? look().colours.amber : look().colours.accent;
  ImGui::SetNextItemWidth(-1);
  ImGui::PushStyleVar(ImGuiStyleVar_GrabMinSize, grab);
  ImGui::PushStyleVar(ImGuiStyleVar_GrabRounding, grab / 2);
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(ImGui::GetStyle().FramePadding.x, px(2)));
  for (const ImGuiCol back : {ImGuiCol_FrameBg, ImGuiCol_FrameBgHovered, ImGuiCol_FrameBgActive})
    ImGui::PushStyleColor(back, 0);
  ImGui::PushStyleColor(ImGuiCol_SliderGrab, colour);
  ImGui::PushStyleColor(ImGuiCol_SliderGrabActive, colour);
  draw_track(field, grab);
  const ImGuiSliderFlags flags =
      ImGuiSliderFlags_AlwaysClamp | (is_logarithmic(field) ? ImGuiSliderFlags_Logarithmic : 0);
  bool is_changed = false;
  const double now = parse_number(chosen).value_or(*field.min);
  if (is_whole) {
    auto value = static_cast<std::int64_t>(now);
    const auto low = static_cast<std::int64_t>(*field.min);
    const auto high = static_cast<std::int64_t>(*field.max);
    is_changed = ImGui::SliderScalar("##value", ImGuiDataType_S64, &value, &low, &high, "", flags);
    if (is_changed) chosen = std::to_string(value);
  } else {
    double value = now;
    const double low = *field.min;
    const double high = *field.max;
    is_changed =
        ImGui::SliderScalar("##value", ImGuiDataType_Double, &value, &low, &high, "", flags);
    if (is_changed) chosen = fmt::format("{:.3g}", value);
  }
  ImGui::PopStyleColor(5);
  ImGui::PopStyleVar(3);
  return is_changed;
}

bool draw_line(const KnobField& field, std::string& chosen) {
  std::string text = chosen;
  const float buttons = field.kind == KnobKind::bytes ? px(76) : 0;
  ImGui::SetNextItemWidth(ImGui::GetContentRegionAvail().x - buttons);
  input_line("##value", "", text);
  const bool is_entered = ImGui::IsItemDeactivatedAfterEdit();
  if (field.kind == KnobKind::bytes) {
    const Result<std::int64_t> bytes = parse_bytes(chosen);
    ImGui::BeginDisabled(!bytes.ok());
    ImGui::SameLine(0, px(4));
    const bool is_halved = ImGui::Button("/2", {px(34), 0});
    ImGui::SameLine(0, px(4));
    const bool is_doubled = ImGui::Button("x2", {px(34), 0});
    ImGui::EndDisabled();
    if (bytes.ok() && (is_halved || is_doubled)) {
      const double most = field.max.value_or(1e18);
      const double wanted = static_cast<double>(*bytes) * (is_doubled ? 2 : 0.5);
      const double value = std::clamp(wanted, field.min.value_or(1), most);
      chosen = bytes_setting(static_cast<std::int64_t>(value));
      return true;
    }
  }
  if (!is_entered || text == chosen || text.empty()) return false;
  chosen = text;
  return true;
}

// Few words stand side by side; many fold up.
bool draw_words(const std::vector<std::string>& words, std::string& chosen, bool is_pending) {
  constexpr std::size_t kSideBySide = 3;
  std::string wanted = chosen;
  if (words.size() > kSideBySide) {
    ImGui::SetNextItemWidth(-1);
    if (ImGui::BeginCombo("##value", chosen.c_str())) {
      for (const std::string& word : words) {
        if (ImGui::Selectable(word.c_str(), word == chosen)) wanted = word;
      }
      ImGui::EndCombo();
    }
  } else {
    const float gap = px(4);
    const auto count = static_cast<float>(words.size());
    const float width = (ImGui::GetContentRegionAvail().x - gap * (count - 1)) / count;
    for (std::size_t w = 0; w < words.size(); ++w) {
      if (w > 0) ImGui::SameLine(0, gap);
      const bool is_on = words[w] == chosen;
      const ImU32 colour = is_pending ? look().colours.amber : look().colours.accent;
      if (is_on) ImGui::PushStyleColor(ImGuiCol_Button, with_alpha(colour, 0.28F));
      if (is_on) ImGui::PushStyleColor(ImGuiCol_Text, colour);
      if (ImGui::Button(words[w].c_str(), {width, 0})) wanted = words[w];
      if (is_on) ImGui::PopStyleColor(2);
    }
  }
  if (wanted == chosen) return false;
  chosen = wanted;
  return true;
}

bool draw_shares(const KnobField& field, std::string& chosen) {
  std::optional<std::vector<double>> shares = parse_shares(chosen, field.share_names.size());
  if (!shares) return draw_line(field, chosen);
  constexpr std::size_t kInRow = 4;
  const float gap = px(4);
  const std::size_t in_row = std::min(kInRow, shares->size());
  const float width = (ImGui::GetContentRegionAvail().x - gap * static_cast<float>(in_row - 1)) /
                      static_cast<float>(in_row);
  bool is_changed = false;
  for (std::size_t d = 0; d < shares->size(); ++d) {
    if (d % in_row > 0) ImGui::SameLine(0, gap);
    ImGui::SetNextItemWidth(width);
    const double least = 0;
    const double most = 1e9;
    const double largest = *std::ranges::max_element(*shares);
    const auto speed = static_cast<float>(std::max(0.02, largest / 200));
    const std::string id = "##" + field.share_names[d];
    if (ImGui::DragScalar(id.c_str(), ImGuiDataType_Double, &(*shares)[d], speed, &least, &most,
                          "%.4g", ImGuiSliderFlags_AlwaysClamp)) {
      is_changed = true;
    }
    ImGui::SetItemTooltip("%s's share; drag, or Ctrl+click to type. 0 drains it.",
                          field.share_names[d].c_str());
  }
  // All at 0 is no division; the last one that was dragged stays as it was.
  const double sum = std::accumulate(shares->begin(), shares->end(), 0.0);
  if (!is_changed || sum <= 0) return false;
  chosen = shares_setting(*shares);
  return true;
}

bool draw_control(const KnobField& field, std::string& chosen) {
  const bool is_bounded = field.min && field.max && *field.min < *field.max;
  switch (field.kind) {
    case KnobKind::integer:
    case KnobKind::number:
      return is_bounded && parse_number(chosen) ? draw_slider(field, chosen)
                                                : draw_line(field, chosen);
    case KnobKind::boolean:
      return draw_words({"true", "false"}, chosen, chosen != field.in_force);
    case KnobKind::word:
      return field.words.empty() ? draw_line(field, chosen)
                                 : draw_words(field.words, chosen, chosen != field.in_force);
    case KnobKind::shares:
      return draw_shares(field, chosen);
    case KnobKind::bytes:
    case KnobKind::text:
      return draw_line(field, chosen);
  }
  return false;
}

}  // namespace

KnobKind knob_kind(const std::string& type) {
  constexpr std::array<std::pair<std::string_view, KnobKind>, 6> kKinds = {
      {{"integer", KnobKind::integer},
       {"number", KnobKind::number},
       {"boolean", KnobKind::boolean},
       {"word", KnobKind::word},
       {"bytes", KnobKind::bytes},
       {"shares", KnobKind::shares}}};
  for (const auto& [name, kind] : kKinds) {
    if (name == type) return kind;
  }
  return KnobKind::text;
}

bool draw_knob_field(const KnobField& field, std::string& chosen) {
  ImGui::PushID(field.key.c_str());
  draw_head(field, chosen);
  ImGui::BeginDisabled(!field.can_turn);
  const bool is_changed = draw_control(field, chosen);
  ImGui::EndDisabled();
  ImGui::PopID();
  ImGui::Dummy({0, px(1)});
  return is_changed;
}

}  // namespace sluice::gui
