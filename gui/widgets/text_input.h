#pragma once
// Fields to type into a std::string.
//
// Thread contract: the frame thread, inside an ImGui window.

#include <imgui.h>

#include <functional>
#include <string>

namespace sluice::gui {

// True when Enter was pressed. `hint` stands there while it is empty.
bool input_line(const char* id, const char* hint, std::string& text);
// The same; Tab puts what `complete` makes of the text in its place.
bool completing_line(const char* id, const char* hint, std::string& text,
                     const std::function<std::string()>& complete);
void input_lines(const char* id, std::string& text, ImVec2 size);

}  // namespace sluice::gui
