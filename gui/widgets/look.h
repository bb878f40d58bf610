#pragma once
// Colours, fonts and sizes of everything that is drawn. Stages, causes and phases have the colours
// of base/colour.h, here and in the report; a light theme keeps the hues.
//
// Thread contract: the frame thread.

#include <imgui.h>

#include <cstdint>
#include <optional>

#include "base/colour.h"

namespace sluice::gui {

enum class Theme { dark, light };

struct Colours {
  ImU32 page = 0, panel = 0, inset = 0, line = 0, text = 0, dim = 0;
  ImU32 accent = 0;   // the one
  ImU32 amber = 0;    // what somebody changed or should notice
  ImU32 red = 0;      // limits reached
  ImU32 green = 0;    // measured gains
  ImU32 waiting = 0;  // nothing but waiting
};

struct Look {
  Theme theme = Theme::dark;
  float scale = 1;  // of the display
  Colours colours;
  ImFont* text = nullptr;
  ImFont* bold = nullptr;
  ImFont* mono = nullptr;  // figures

  // Two sizes and a half, before scaling.
  static constexpr float kTitleSize = 15;
  static constexpr float kTextSize = 13;
  static constexpr float kSmallSize = 11.5F;
};

// The one in use; changed between frames.
Look& look();
// Colours of a theme, and ImGui's and ImPlot's styles from them, at a scale.
void apply_look(Theme theme, float scale);

// In the theme that is in use.
ImU32 themed(ThemedColour colour);
// 0xRRGGBB, as the run's table of stages has it; what is no stage is grey.
ImU32 stage_colour(std::optional<std::uint32_t> colour);
// Text on a box of that colour.
ImU32 text_on(ImU32 colour);
ImU32 with_alpha(ImU32 colour, float alpha);

// A length in pixels of the drawing, on this display.
inline float px(float length) { return length * look().scale; }

// Fonts for a part of a view: FontScope title(look().bold, Look::kTitleSize).
class FontScope {
 public:
  FontScope(ImFont* font, float size) { ImGui::PushFont(font, size); }
  ~FontScope() { ImGui::PopFont(); }
  FontScope(const FontScope&) = delete;
  FontScope& operator=(const FontScope&) = delete;
};

}  // namespace sluice::gui
