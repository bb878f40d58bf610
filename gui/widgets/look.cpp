#include "gui/widgets/look.h"

#include <implot.h>

namespace sluice::gui {
namespace {

constexpr ImU32 rgb(unsigned hex) {
  return IM_COL32((hex >> 16) & 255, (hex >> 8) & 255, hex & 255, 255);
}

constexpr Colours kDark = {.page = rgb(0x14161a),
                           .panel = rgb(0x1c1f25),
                           .inset = rgb(0x262a32),
                           .line = rgb(0x353b45),
                           .text = rgb(0xe6e8eb),
                           .dim = rgb(0x98a0ab),
                           .accent = rgb(0x5aa9ff),
                           .amber = rgb(0xf3b33d),
                           .red = rgb(0xff7a70),
                           .green = rgb(0x57c08a),
                           .waiting = rgb(palette::kWaiting.dark)};
constexpr Colours kLight = {.page = rgb(0xe9ebef),
                            .panel = rgb(0xffffff),
                            .inset = rgb(0xeceef2),
                            .line = rgb(0xd3d7de),
                            .text = rgb(0x1c2026),
                            .dim = rgb(0x5d6673),
                            .accent = rgb(0x2468b8),
                            .amber = rgb(0xa86500),
                            .red = rgb(0xb3261e),
                            .green = rgb(0x1c7a4c),
                            .waiting = rgb(palette::kWaiting.light)};

ImVec4 vec(ImU32 colour, float alpha = 1) {
  ImVec4 made = ImGui::ColorConvertU32ToFloat4(colour);
  made.w = alpha;
  return made;
}

void colour_windows(ImGuiStyle& style, const Colours& c) {
  style.Colors[ImGuiCol_Text] = vec(c.text);
  style.Colors[ImGuiCol_TextDisabled] = vec(c.dim);
  style.Colors[ImGuiCol_WindowBg] = vec(c.panel);
  style.Colors[ImGuiCol_ChildBg] = vec(c.panel, 0);
  style.Colors[ImGuiCol_PopupBg] = vec(c.panel, 0.98F);
  style.Colors[ImGuiCol_Border] = vec(c.line);
  style.Colors[ImGuiCol_MenuBarBg] = vec(c.page);
  style.Colors[ImGuiCol_TitleBg] = style.Colors[ImGuiCol_TitleBgActive] =
      style.Colors[ImGuiCol_TitleBgCollapsed] = vec(c.page);
  style.Colors[ImGuiCol_DockingEmptyBg] = vec(c.page);
  style.Colors[ImGuiCol_DockingPreview] = vec(c.accent, 0.4F);
  style.Colors[ImGuiCol_Tab] = style.Colors[ImGuiCol_TabDimmed] = vec(c.page);
  style.Colors[ImGuiCol_TabSelected] = style.Colors[ImGuiCol_TabDimmedSelected] = vec(c.panel);
  style.Colors[ImGuiCol_TabHovered] = vec(c.inset);
  style.Colors[ImGuiCol_TabSelectedOverline] = vec(c.accent);
  style.Colors[ImGuiCol_TabDimmedSelectedOverline] = vec(c.line);
  style.Colors[ImGuiCol_ScrollbarBg] = vec(c.panel, 0);
  style.Colors[ImGuiCol_ScrollbarGrab] = vec(c.line);
  style.Colors[ImGuiCol_ScrollbarGrabHovered] = style.Colors[ImGuiCol_ScrollbarGrabActive] =
      vec(c.dim, 0.6F);
  style.Colors[ImGuiCol_ModalWindowDimBg] = vec(c.page, 0.6F);
}

void colour_items(ImGuiStyle& style, const Colours& c) {
  style.Colors[ImGuiCol_FrameBg] = style.Colors[ImGuiCol_Button] = vec(c.inset);
  style.Colors[ImGuiCol_FrameBgHovered] = style.Colors[ImGuiCol_ButtonHovered] = vec(c.line);
  style.Colors[ImGuiCol_FrameBgActive] = style.Colors[ImGuiCol_ButtonActive] = vec(c.accent, 0.35F);
  style.Colors[ImGuiCol_CheckMark] = style.Colors[ImGuiCol_SliderGrab] =
      style.Colors[ImGuiCol_SliderGrabActive] = vec(c.accent);
  style.Colors[ImGuiCol_Header] = vec(c.accent, 0.22F);
  style.Colors[ImGuiCol_HeaderHovered] = vec(c.accent, 0.16F);
  style.Colors[ImGuiCol_HeaderActive] = vec(c.accent, 0.32F);
  style.Colors[ImGuiCol_Separator] = vec(c.line);
  style.Colors[ImGuiCol_SeparatorHovered] = style.Colors[ImGuiCol_SeparatorActive] =
      vec(c.accent, 0.7F);
  style.Colors[ImGuiCol_ResizeGrip] = vec(c.line, 0);
  style.Colors[ImGuiCol_TableHeaderBg] = vec(c.panel, 0);
  style.Colors[ImGuiCol_TableBorderStrong] = style.Colors[ImGuiCol_TableBorderLight] = vec(c.line);
  style.Colors[ImGuiCol_TableRowBg] = vec(c.panel, 0);
  style.Colors[ImGuiCol_TableRowBgAlt] = vec(c.inset, 0.5F);
  style.Colors[ImGuiCol_TextSelectedBg] = vec(c.accent, 0.35F);
  style.Colors[ImGuiCol_NavCursor] = vec(c.accent);
  style.Colors[ImGuiCol_TextLink] = vec(c.accent);
}

void size_items(ImGuiStyle& style) {
  style.WindowPadding = {12, 10};
  style.FramePadding = {8, 4};
  style.ItemSpacing = {8, 6};
  style.CellPadding = {6, 3};
  style.WindowRounding = style.PopupRounding = 6;
  style.FrameRounding = style.GrabRounding = 4;
  style.TabRounding = 4;
  style.WindowBorderSize = 0;
  style.PopupBorderSize = 1;
  style.FrameBorderSize = 0;
  style.TabBarBorderSize = 0;
  style.ScrollbarSize = 11;
  style.DockingSeparatorSize = 5;
  style.WindowMenuButtonPosition = ImGuiDir_None;
  style.SeparatorTextBorderSize = 1;
}

void style_plots(const Colours& c, float scale) {
  ImPlotStyle& style = ImPlot::GetStyle();
  style = ImPlotStyle();
  style.PlotPadding = {4 * scale, 6 * scale};
  style.LabelPadding = {4 * scale, 3 * scale};
  style.PlotBorderSize = 0;
  style.MinorAlpha = 0;
  style.Colors[ImPlotCol_FrameBg] = vec(c.panel, 0);
  style.Colors[ImPlotCol_PlotBg] = vec(c.inset, 0.35F);
  style.Colors[ImPlotCol_PlotBorder] = vec(c.line);
  style.Colors[ImPlotCol_AxisGrid] = vec(c.line, 0.7F);
  style.Colors[ImPlotCol_AxisText] = vec(c.dim);
  style.Colors[ImPlotCol_Crosshairs] = vec(c.dim);
}

}  // namespace

Look& look() {
  static Look the_look;
  return the_look;
}

void apply_look(Theme theme, float scale) {
  Look& now = look();
  now.theme = theme;
  now.scale = scale;
  now.colours = theme == Theme::dark ? kDark : kLight;
  ImGuiStyle style;
  size_items(style);
  colour_windows(style, now.colours);
  colour_items(style, now.colours);
  style.ScaleAllSizes(scale);
  style.FontScaleDpi = scale;
  style.FontSizeBase = Look::kTextSize;
  ImGui::GetStyle() = style;
  style_plots(now.colours, scale);
}

ImU32 themed(ThemedColour colour) {
  return rgb(look().theme == Theme::dark ? colour.dark : colour.light);
}

ImU32 stage_colour(std::optional<std::uint32_t> colour) {
  return rgb(colour.value_or(palette::kUnknown));
}

ImU32 text_on(ImU32 colour) {
  const ImVec4 c = ImGui::ColorConvertU32ToFloat4(colour);
  const float light = 0.3F * c.x + 0.59F * c.y + 0.11F * c.z;
  return light < 0.49F ? rgb(0xffffff) : rgb(0x10131a);
}

ImU32 with_alpha(ImU32 colour, float alpha) {
  const auto a = static_cast<ImU32>(alpha * 255.0F + 0.5F);
  return (colour & ~IM_COL32_A_MASK) | (a << IM_COL32_A_SHIFT);
}

}  // namespace sluice::gui
