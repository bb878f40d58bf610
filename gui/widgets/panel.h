#pragma once
// Small pieces of a panel: titles, figures at the right, bars, sentences for what is empty.
//
// Thread contract: the frame thread, inside an ImGui window.

#include <imgui.h>

#include <string>
#include <string_view>
#include <vector>

namespace sluice::gui {

// A panel's title; what belongs to it stands dim at the right.
void draw_title(const std::string& title, const std::string& note = {});
// A sentence that says why there is nothing here.
void draw_empty(std::string_view sentence);
// Dim and small: units, axes, notes.
void draw_note(const std::string& text);
void draw_coloured(ImU32 colour, const std::string& text, bool is_wrapped = true);

// The last item's tooltip, above it: what the item's click brings up stands beneath.
void tip_above(const char* text);

enum class LinkWidth { line, text };
// A sentence that leads somewhere, as wide as the line or as its text. True: it was clicked.
bool draw_link(const char* id, const std::string& text, ImU32 colour,
               LinkWidth width = LinkWidth::line);

// Figures in the monospaced face.
ImVec2 figure_size(const std::string& text);
// At the right edge of the cell or of the room that is left.
void draw_figure(const std::string& text, ImU32 colour = 0);

// A square of a stage's colour, as high as a line of text.
void draw_dot(ImU32 colour);
// A bar of `share` of the width; the rest is inset. Takes up its size.
void draw_meter(double share, ImU32 colour, ImVec2 size);

struct StripPart {
  double share = 0;
  ImU32 colour = 0;
  std::string tip;
};
// Parts side by side over the whole width.
void draw_strip(const char* id, const std::vector<StripPart>& parts, float height);

// The row of a table that was just begun is about what is chosen.
void mark_table_row();

// Two columns: what, and how much at the right. Begins and ends a table.
void draw_pair(const char* what, const std::string& figure);

}  // namespace sluice::gui
