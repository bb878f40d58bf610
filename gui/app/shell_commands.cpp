// The actions of the menus, the palette and the keys of the shell.

#include <imgui.h>
#include <imgui_internal.h>

#include <algorithm>

#include "base/words.h"
#include "gui/app/run_door.h"
#include "gui/app/shell.h"
#include "gui/app/shell_parts.h"
#include "gui/data/opening.h"
#include "gui/data/span_lookup.h"
#include "gui/views/session.h"
#include "gui/views/span_details.h"

namespace sluice::gui {

void Shell::make_commands() {
  add_file_commands();
  add_timeline_commands();
  add_knob_commands();
  add_window_commands();
}

void Shell::add_file_commands() {
  const auto has_run = [this] { return session_->pieces.feed != nullptr; };
  commands_.push_back({.menu = "Run",
                       .name = "Open\u2026",
                       .keys = "Ctrl+O",
                       .chord = ImGuiMod_Ctrl | ImGuiKey_O,
                       .run = [this] { parts_->open_box.open(); },
                       .while_typing = true});
  commands_.push_back(
      {.menu = "Run",
       .name = "Read the ranks again",
       .keys = "F5",
       .chord = ImGuiKey_F5,
       .run = [this] { door_->read_ranks_again(); },
       .is_there =
           [this] { return session_->pieces.ranks != nullptr && door_->opening() == nullptr; }});
  commands_.push_back({.menu = "Run",
                       .name = "Close, back to the start page",
                       .keys = "Ctrl+W",
                       .chord = ImGuiMod_Ctrl | ImGuiKey_W,
                       .run = [this] { close_run(); },
                       .is_there = has_run});
  const auto can_export = [this] {
    return session_->pieces.has_facts() && !parts_->export_panel.is_working();
  };
  const auto source = [this]() -> ExportSource {
    const RunPieces& pieces = session_->pieces;
    if (pieces.ranks == nullptr) return {pieces.feed->path(), pieces.feed->path()};
    const bool has_folder = !pieces.ranks->folder.empty();
    return {pieces.feed->path(), has_folder ? pieces.place() + "/run.db" : pieces.place()};
  };
  const auto ask_for_export = [this, source](ExportForm form) {
    parts_->export_panel.ask(source(), form,
                             export_choices(session_->pieces.steps(), session_->timeline));
  };
  commands_.push_back(
      {.menu = "Run",
       .name = "Save a report page",
       .keys = "Ctrl+E",
       .chord = ImGuiMod_Ctrl | ImGuiKey_E,
       .run = [this, source] { parts_->export_panel.begin(source(), ExportForm::report); },
       .is_there = can_export});
  commands_.push_back({.menu = "Run",
                       .name = "Export a trace for Perfetto\u2026",
                       .run = [ask_for_export] { ask_for_export(ExportForm::trace); },
                       .is_there = can_export});
  commands_.push_back({.menu = "Run",
                       .name = "Export the tables as CSV\u2026",
                       .run = [ask_for_export] { ask_for_export(ExportForm::tables); },
                       .is_there = can_export});
  commands_.push_back({.menu = "Run",
                       .name = "Quit",
                       .keys = "Ctrl+Q",
                       .chord = ImGuiMod_Ctrl | ImGuiKey_Q,
                       .run = [this] { wants_to_quit_ = true; },
                       .while_typing = true});
}

void Shell::add_timeline_commands() {
  const auto is_shown = [this] { return session_->pieces.has_facts(); };
  const auto add = [this, is_shown](const char* name, const char* keys, ImGuiKeyChord chord,
                                    std::function<void()> run) {
    commands_.push_back({.menu = "Timeline",
                         .name = name,
                         .keys = keys,
                         .chord = chord,
                         .run = std::move(run),
                         .is_there = is_shown});
  };
  TimelineState& timeline = session_->timeline;
  add("Follow the end of a live run", "L", ImGuiKey_L, [&] { timeline.view.toggle_following(); });
  add("Fit the run", "Home", ImGuiKey_Home, [&] { timeline.view.show_all(); });
  add("Fit the step under the centre", "T", ImGuiKey_T, [&] { timeline.view.show_middle_step(); });
  add("Fit what is selected: the span, else the measured range", "F", ImGuiKey_F,
      [&] { timeline.fit_selection(); });
  add_moving_commands();
  add("Back to where you looked before", "Alt+Left", ImGuiMod_Alt | ImGuiKey_LeftArrow,
      [&] { timeline.go(-1); });
  add("Forward again", "Alt+Right", ImGuiMod_Alt | ImGuiKey_RightArrow, [&] { timeline.go(1); });
  add("Measure by dragging", "M", ImGuiKey_M, [&] { timeline.measure.toggle(); });
  add("Pin the measured range, to compare another with it", "P", ImGuiKey_P, [&] {
    if (!timeline.measure.range()) return;
    timeline.measure.pin();
    session_->foreground.bring("Compare");
  });
  add("Write a note at the chosen span, else in the middle of the view", "B", ImGuiKey_B, [&] {
    timeline.write_note();
    session_->foreground.bring("Timeline");
  });
  add("Find a span by name", "Ctrl+F", ImGuiMod_Ctrl | ImGuiKey_F, [&] {
    timeline.search.focus();
    session_->foreground.bring("Timeline");
  });
  add("Next match", "N", ImGuiKey_N, [&] { timeline.show_found(1); });
  add("Previous match", "Shift+N", ImGuiMod_Shift | ImGuiKey_N, [&] { timeline.show_found(-1); });
  commands_.push_back({.menu = "Timeline",
                       .name = "Copy what Details says of the chosen span",
                       .keys = "Ctrl+C",
                       .chord = ImGuiMod_Ctrl | ImGuiKey_C,
                       .run =
                           [this] {
                             const SpanDetails details =
                                 details_of(session_->pieces, *session_->pieces.chosen);
                             ImGui::SetClipboardText(details_text(details).c_str());
                           },
                       .is_there = [this] { return session_->pieces.chosen != nullptr; }});
  add("Fold all groups", "", 0,
      [&] { timeline.rows.folding().close_all(session_->pieces.facts()); });
  add("Unfold all groups", "", 0, [&] { timeline.rows.folding().open_all(); });
  add("Keep the rows of phases that are over", "I", ImGuiKey_I,
      [&] { timeline.rows.folding().toggle_keeping_all_rows(); });
  commands_.back().is_on = [&] { return timeline.rows.folding().keeps_all_rows(); };
  add("Close what is open, then clear what is selected", "Esc", ImGuiKey_Escape,
      [this] { dismiss(); });
}

// Their keys go on while they are held, and work at the cursor: gui/views/timeline_view.cpp.
void Shell::add_moving_commands() {
  const auto add = [this](const char* name, const char* keys, std::function<void()> run) {
    commands_.push_back(
        {.menu = "Timeline", .name = name, .keys = keys, .run = std::move(run), .is_there = [this] {
           return session_->pieces.has_facts();
         }});
  };
  TimelineState& timeline = session_->timeline;
  add("Zoom in", "W", [&] { timeline.view.zoom(1 / 1.4, timeline.view.middle()); });
  add("Zoom out", "S", [&] { timeline.view.zoom(1.4, timeline.view.middle()); });
  add("Pan to earlier", "A", [&] { timeline.view.pan(-timeline.view.range().width() / 8); });
  add("Pan to later", "D", [&] { timeline.view.pan(timeline.view.range().width() / 8); });
}

// One thing at a time, what lies above first. ImGui has closed a menu or a box by itself.
void Shell::dismiss() {
  if (had_popup_) return;
  if (parts_->shows_shortcuts) {
    parts_->shows_shortcuts = false;
  } else if (!parts_->export_panel.dismiss()) {
    session_->timeline.dismiss();
  }
}

void Shell::add_knob_commands() {
  const auto add = [this](const char* name, const char* keys, ImGuiKeyChord chord,
                          std::function<void()> run, std::function<bool()> is_there) {
    commands_.push_back({.menu = "Knobs",
                         .name = name,
                         .keys = keys,
                         .chord = chord,
                         .run = std::move(run),
                         .is_there = std::move(is_there)});
  };
  const auto can_turn = [this] {
    return session_->pieces.has_facts() && session_->control.choice.can_turn();
  };
  const auto has_chosen = [this, can_turn] {
    return can_turn() && !session_->control.choice.pending().empty();
  };
  const auto can_choose = [this] {
    return session_->pieces.has_facts() && session_->control.choice.can_choose();
  };
  const auto may_discard = [this, can_choose] {
    return can_choose() && !session_->control.choice.pending().empty();
  };
  add(
      words::kApply, "Ctrl+Enter", ImGuiMod_Ctrl | ImGuiKey_Enter,
      [this] { session_->control.apply(); }, has_chosen);
  add(
      words::kDiscard, "Ctrl+Backspace", ImGuiMod_Ctrl | ImGuiKey_Backspace,
      [this] { session_->control.choice.discard(); }, may_discard);
  add(
      words::kWhatIf, "Ctrl+I", ImGuiMod_Ctrl | ImGuiKey_I,
      [this] { session_->control.ask_what_if(); }, may_discard);
  add(
      words::kTune, "Ctrl+U", ImGuiMod_Ctrl | ImGuiKey_U,
      [this] { session_->control.ask_for_proposal(); }, can_choose);
  add(
      "New run with the pending changes", "Ctrl+Shift+Enter",
      ImGuiMod_Ctrl | ImGuiMod_Shift | ImGuiKey_Enter,
      [this] { session_->control.ask_for_new_run(); },
      [this] { return session_->pieces.has_facts() && session_->control.choice.is_for_new_run(); });
  add(
      words::kRevert, "Ctrl+Z", ImGuiMod_Ctrl | ImGuiKey_Z,
      [this] { session_->control.take_back(session_->control.effects().back()); },
      [this, can_turn] { return can_turn() && !session_->control.effects().empty(); });
  add(
      "Stop the run after its current step", "", 0, [this] { session_->control.link->stop(); },
      [this, can_turn] { return can_turn() && !session_->control.choice.state()->is_stopping; });
}

void Shell::add_window_commands() {
  for (const std::unique_ptr<View>& view : views_) {
    View* shown = view.get();
    commands_.push_back({.menu = "View",
                         .name = shown->title(),
                         .keys = {},
                         .run = [this, shown] { session_->foreground.bring(shown->title()); },
                         .is_on = [shown] { return shown->is_open; },
                         .is_there = [this] { return session_->pieces.has_facts(); }});
  }
  const auto add = [this](const char* menu, const char* name, const char* keys, ImGuiKeyChord chord,
                          std::function<void()> run, std::function<bool()> is_on = {}) {
    commands_.push_back({.menu = menu,
                         .name = name,
                         .keys = keys,
                         .chord = chord,
                         .run = std::move(run),
                         .is_on = std::move(is_on),
                         .while_typing = (chord & ImGuiMod_Ctrl) != 0});
  };
  add("View", "Default layout", "", 0, [this] {
    for (const std::unique_ptr<View>& view : views_) view->is_open = true;
    parts_->docks.lay_out_again();
  });
  add(
      "View", "Light theme", "Ctrl+T", ImGuiMod_Ctrl | ImGuiKey_T,
      [this] {
        set_theme(settings_->theme == Theme::dark ? Theme::light : Theme::dark);
        ImGui::MarkIniSettingsDirty();
      },
      [this] { return settings_->theme == Theme::light; });
  add("View", "Larger", "Ctrl+=", ImGuiMod_Ctrl | ImGuiKey_Equal,
      [this] { scale_ = std::min(3.0, scale_ * 1.1); });
  add("View", "Smaller", "Ctrl+-", ImGuiMod_Ctrl | ImGuiKey_Minus,
      [this] { scale_ = std::max(0.6, scale_ / 1.1); });
  add(
      "View", "Time of a frame", "F12", ImGuiKey_F12, [this] { parts_->top_bar.toggle_cost(); },
      [this] { return parts_->top_bar.shows_cost(); });
  add("Help", "All commands", "Ctrl+P", ImGuiMod_Ctrl | ImGuiKey_P,
      [this] { parts_->palette.open(); });
  add(
      "Help", "Shortcuts", "?", ImGuiMod_Shift | ImGuiKey_Slash,
      [this] { parts_->shows_shortcuts = !parts_->shows_shortcuts; },
      [this] { return parts_->shows_shortcuts; });
}

}  // namespace sluice::gui
