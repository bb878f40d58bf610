#pragma once
// The real program in a real window, driven by Dear ImGui's test engine: mouse and keys go in where
// a person's would, item by item.

#include <imgui_test_engine/imgui_te_context.h>
#include <imgui_test_engine/imgui_te_engine.h>

#include <chrono>
#include <string>

#include "gui/app/app.h"
#include "gui/app/shell.h"

namespace sluice::gui {

// What a script is given: the engine's context and the program's own state.
struct Drive {
  ImGuiTestContext* test = nullptr;
  Shell* shell = nullptr;

  Session& session() const { return shell->session(); }
  // Frames go by until it is so; false after so long.
  bool comes_true(const std::function<bool()>& condition,
                  std::chrono::seconds within = std::chrono::minutes(5)) const;
  // As comes_true, until it is drawn.
  bool has_item(const char* item) const;
  // Clicks until it has come true: what a live run says may move a button between aiming and
  // clicking.
  bool click_until(const char* item, const std::function<bool()>& condition) const;
  bool settles() const;
  void save_picture(const std::string& path) const;
  // For whoever looks at it, in the folder of pictures; with --all.
  void picture_with_all(const std::string& name) const;
};

// Runs the program until the script is through. Returns what went wrong, empty if nothing did.
std::string drive(const AppOptions& options, const std::function<void(const Drive&)>& script);

}  // namespace sluice::gui
