#include "gui/app/shell.h"

#include <fmt/format.h>
#include <imgui_internal.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>

#include "core/control/control_server.h"
#include "gui/app/window.h"
#include "gui/data/child_process.h"
#include "gui/data/live_runs.h"
#include "gui/widgets/figures.h"
#include "gui/widgets/look.h"
#include "gui/widgets/panel.h"

namespace sluice::gui {
namespace {

constexpr const char* kDockHost = "##dock host";

// Of the last twenty steps; 0 without any.
TimeNs recent_dur(const std::vector<rundb::StepRow>& steps) {
  std::vector<TimeNs> durs;
  for (auto step = steps.rbegin(); step != steps.rend() && durs.size() < 20; ++step)
    durs.push_back(step->dur);
  if (durs.empty()) return 0;
  std::ranges::nth_element(durs, durs.begin() + static_cast<std::ptrdiff_t>(durs.size() / 2));
  return durs[durs.size() / 2];
}

void draw_badge(const std::string& text, ImU32 colour) {
  const FontScope font(look().bold, Look::kSmallSize);
  const ImVec2 size = ImGui::CalcTextSize(text.c_str());
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const ImVec2 pad = {px(8), px(2)};
  const float y = at.y + (ImGui::GetFrameHeight() - size.y) / 2;
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled({at.x, y - pad.y}, {at.x + size.x + 2 * pad.x, y + size.y + pad.y}, colour,
                      px(9));
  list->AddText({at.x + pad.x, y}, text_on(colour), text.c_str());
  ImGui::Dummy({size.x + 2 * pad.x, size.y});
}

constexpr ImGuiWindowFlags kPanelFlags = ImGuiWindowFlags_NoDecoration |
                                         ImGuiWindowFlags_NoDocking | ImGuiWindowFlags_NoMove |
                                         ImGuiWindowFlags_NoSavedSettings;

// In the middle, so far below the menu, as high as what is in it.
void place_panel(float width_max, float below) {
  const ImGuiViewport* viewport = ImGui::GetMainViewport();
  const float width = std::min(width_max, viewport->WorkSize.x - px(40));
  ImGui::SetNextWindowPos({viewport->GetCenter().x - width / 2, viewport->WorkPos.y + below});
  ImGui::SetNextWindowSize({width, 0});
}

// Says something above all else, whatever is docked below; end_notice() follows in any case.
bool begin_notice(const char* name, float width_max, float below, ImU32 border) {
  place_panel(width_max, below);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowBorderSize, px(1));
  ImGui::PushStyleColor(ImGuiCol_Border, border);
  return ImGui::Begin(name, nullptr, kPanelFlags);
}
void end_notice() {
  ImGui::BringWindowToDisplayFront(ImGui::GetCurrentWindow());
  ImGui::End();
  ImGui::PopStyleColor();
  ImGui::PopStyleVar();
}

// Right of what is there. What does not fit as a whole is left out: false.
bool draw_fitting(const std::string& text, ImU32 colour = 0) {
  ImGui::SameLine(0, px(14));
  const float end = ImGui::GetCursorPosX() + ImGui::CalcTextSize(text.c_str()).x + px(6);
  if (end > ImGui::GetWindowWidth()) return false;
  draw_coloured(colour == 0 ? look().colours.text : colour, text, false);
  return true;
}

}  // namespace

Shell::Shell(Settings& settings, std::string program, bool gives_way)
    : settings_(&settings),
      program_(std::move(program)),
      gives_way_(gives_way),
      views_(all_views()) {
  for (const std::unique_ptr<View>& view : views_)
    view->is_open = std::ranges::find(settings.closed, view->title()) == settings.closed.end();
  make_commands();
  samples_.begin(sample_runs, Window::wake);
}

Shell::~Shell() = default;

void Shell::open_run(const std::string& path) {
  close_run();
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  const std::string name = error ? path : absolute.lexically_normal().string();
  session_.feed = std::make_unique<RunFeed>(name, FeedOptions{.wake = Window::wake});
  session_.turning.link = std::make_unique<ControlLink>(control::socket_path_of(name),
                                                        ControlOptions{.wake = Window::wake});
  session_.turning.advisor =
      std::make_unique<Advisor>(name, AdvisorOptions{.program = program_, .wake = Window::wake});
  settings_->note_opened(name);
  session_.wake = Window::wake;
  session_.recent = settings_->recent;
}

void Shell::close_run() {
  spans_at_opening_.reset();
  std::unique_ptr<RunFeed> feed = std::move(session_.feed);
  std::unique_ptr<Advisor> advisor = std::move(session_.turning.advisor);
  session_.close();
  started_log_.clear();
  log_line_.forget();
  if (feed == nullptr) return;
  std::erase_if(closing_, [](const std::future<void>& done) {
    return done.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  });
  closing_.push_back(
      std::async(std::launch::async, [gone = std::move(feed), last = std::move(advisor)]() mutable {
        last.reset();
        gone.reset();
      }));
}

std::string Shell::window_title() const {
  if (session_.feed == nullptr) return "Sluice";
  const std::string file = std::filesystem::path(session_.feed->path()).filename().string();
  if (!session_.has_facts()) return file + " - Sluice";
  const RunFacts& facts = session_.facts();
  return fmt::format("{}{} - {}{} - Sluice", facts.name(), session_.run->is_live ? " (live)" : "",
                     file, facts.stand_ins.empty() ? "" : " - " + facts.stand_ins);
}

bool Shell::is_settled() const {
  if (session_.feed == nullptr) return true;
  if (session_.run == nullptr) return false;
  if (!session_.run->problem.empty()) return true;
  if (!session_.brings_forward.empty()) return false;
  // A run that goes on is ahead of what is read of it; what it had when it was opened counts.
  const bool is_live = session_.run->is_live;
  const std::int64_t span_count =
      is_live ? spans_at_opening_.value_or(0) : session_.run->span_count;
  const bool has_statistics =
      session_.statistics != nullptr && session_.statistics->seen_count >= span_count;
  const bool has_timeline = session_.run->span_count == 0 || session_.has_timeline() ||
                            (is_live && session_.timeline != nullptr);
  const bool has_advice = !session_.turning.advisor->is_working(Question::suggest);
  return has_statistics && has_timeline && has_advice && session_.verdict != nullptr &&
         session_.minimap != nullptr;
}

void Shell::draw(const FrameCost& cost) {
  session_.pick_up();
  if (session_.run != nullptr && !spans_at_opening_) spans_at_opening_ = session_.run->span_count;
  if (gives_way_ && session_.run != nullptr && session_.run->is_live) spare_time_.give_way();
  if (session_.verdict != nullptr)
    session_.turning.ask_for_advice(*session_.verdict, ImGui::GetTime());
  run_pressed(commands_);
  draw_top_bar(cost);
  if (session_.feed == nullptr) {
    draw_start_page();
  } else {
    draw_problem();
    // It may have closed the run.
    if (session_.has_facts()) {
      draw_dock_space();
      draw_views();
    }
  }
  draw_open_box();
  if (shows_export_) draw_export();
  palette_.draw(commands_);
  draw_shortcut_sheet(commands_, &shows_shortcuts_);
}

// Top bar
// ------------------------------------------------------------------------------------------

void Shell::draw_top_bar(const FrameCost& cost) {
  if (!ImGui::BeginMainMenuBar()) return;
  {
    const FontScope font(look().bold, Look::kTitleSize);
    ImGui::TextUnformatted("Sluice");
  }
  draw_menus(commands_);
  if (session_.has_facts()) {
    draw_run_state();
    draw_recorder_state();
  }
  if (shows_cost_) {
    ImGui::SameLine(0, px(16));
    const FontScope font(look().mono, Look::kSmallSize);
    ImGui::Text("%.2f ms a frame, worst %.2f ms, %d vertices", cost.last_ms, cost.worst_ms,
                cost.vertex_count);
  }
  ImGui::EndMainMenuBar();
}

void Shell::draw_run_state() {
  const RunFacts& facts = session_.facts();
  const RunSnapshot& run = *session_.run;
  const Colours& colours = look().colours;
  ImGui::SameLine(0, px(18));
  const ImU32 colour = run.is_live ? colours.green : colours.dim;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImGui::GetWindowDrawList()->AddCircleFilled({at.x + px(5), at.y + ImGui::GetFrameHeight() / 2},
                                              px(4.5F), colour);
  ImGui::Dummy({px(10), ImGui::GetTextLineHeight()});
  ImGui::SameLine(0, px(5));
  const auto planned = static_cast<std::int64_t>(facts.info.meta_number("steps", 0));
  const bool is_cut = planned > static_cast<std::int64_t>(session_.steps().size());
  draw_coloured(colour,
                run.is_live            ? "live"
                : facts.is_simulated() ? "simulated"
                : is_cut               ? "ended before its last step"
                                       : "finished",
                false);
  ImGui::SameLine(0, px(8));
  ImGui::Text("%s \u00b7 %s", facts.name().c_str(), facts.method_line.c_str());
  if (!facts.stand_ins.empty()) {
    ImGui::SameLine(0, px(8));
    draw_badge(facts.stand_ins, colours.amber);
  }
  const std::vector<rundb::StepRow>& steps = session_.steps();
  if (steps.empty()) return;
  const rundb::StepRow& last = steps.back();
  const TimeNs dur = recent_dur(steps);
  const FontScope font(look().mono, Look::kTextSize);
  if (!draw_fitting(fmt::format("step {}{}", step_text(last.id),
                                planned > 0 ? " / " + grouped_text(planned) : "")))
    return;
  if (std::isfinite(last.loss) && !draw_fitting(fmt::format("loss {:.3f}", last.loss))) return;
  if (last.tokens > 0 && dur > 0) {
    const double tokens = static_cast<double>(last.tokens) * 1e9 / static_cast<double>(dur);
    if (!draw_fitting(fmt::format("{} tok/s", count_text(tokens)))) return;
  }
  if (run.is_live && planned > last.id + 1)
    draw_fitting("left " + time_text((planned - last.id - 1) * dur), colours.dim);
}

// At the right end, if there is room: it is also in the view of losses and facts.
void Shell::draw_recorder_state() {
  const std::int64_t lost = lost_count(session_.facts().losses);
  std::string text =
      lost == 0 ? "recording: nothing lost" : fmt::format("recording: {} LOST", grouped_text(lost));
  if (session_.run->recorder_share >= 0)
    text += fmt::format(" \u00b7 {} of a processor", percent_text(session_.run->recorder_share, 1));
  const float x = ImGui::GetWindowWidth() - ImGui::CalcTextSize(text.c_str()).x - px(14);
  ImGui::SameLine();
  if (lost == 0 && x < ImGui::GetCursorPosX() + px(10)) return;
  ImGui::SetCursorPosX(std::max(x, ImGui::GetCursorPosX() + px(10)));
  draw_coloured(lost == 0 ? look().colours.dim : look().colours.amber, text, false);
}

// Docks
// --------------------------------------------------------------------------------------------

void Shell::draw_dock_space() {
  const ImGuiID dock = ImGui::GetID(kDockHost);
  const ImGuiDockNode* node = ImGui::DockBuilderGetNode(dock);
  if (lays_out_ || node == nullptr ||
      (node->IsLeafNode() && node->Windows.Size == 0 &&
       ImGui::FindWindowSettingsByID(ImHashStr("Timeline")) == nullptr)) {
    lay_out(dock);
    lays_out_ = false;
  }
  ImGui::DockSpaceOverViewport(dock, ImGui::GetMainViewport(), ImGuiDockNodeFlags_None);
  node = ImGui::DockBuilderGetCentralNode(dock);
  if (node == nullptr || node->Windows.Size > 0) return;
  const char* words = "Closed. Menu View opens each view again; Default layout shows all of them.";
  const ImVec2 size = ImGui::CalcTextSize(words);
  if (size.x > node->Size.x) return;
  node->HostWindow->DrawList->AddText(node->Rect().GetCenter() - size / 2, look().colours.dim,
                                      words);
}

// The answer first, top left; the timeline the largest; history and tables below; at the right what
// acts.
void Shell::lay_out(ImGuiID dock) {
  ImGui::DockBuilderRemoveNode(dock);
  ImGui::DockBuilderAddNode(dock, static_cast<int>(ImGuiDockNodeFlags_DockSpace));
  ImGui::DockBuilderSetNodeSize(dock, ImGui::GetMainViewport()->WorkSize);
  ImGuiID rest = dock;
  // In a small window the sides keep what their texts need, also when it is made larger later on.
  const float width = ImGui::GetMainViewport()->WorkSize.x;
  const float right = std::clamp(px(320) / width, 0.2F, 0.4F);
  const float side = std::clamp(px(280) / (width * (1 - right)), 0.25F, 0.5F);
  const ImGuiID knobs = ImGui::DockBuilderSplitNode(rest, ImGuiDir_Right, right, nullptr, &rest);
  ImGuiID bottom = ImGui::DockBuilderSplitNode(rest, ImGuiDir_Down, 0.36F, nullptr, &rest);
  ImGuiID left = ImGui::DockBuilderSplitNode(rest, ImGuiDir_Left, side, nullptr, &rest);
  const ImGuiID devices = ImGui::DockBuilderSplitNode(left, ImGuiDir_Down, 0.35F, nullptr, &left);
  const ImGuiID steps = ImGui::DockBuilderSplitNode(bottom, ImGuiDir_Left, 0.25F, nullptr, &bottom);
  const ImGuiID phases =
      ImGui::DockBuilderSplitNode(bottom, ImGuiDir_Left, 0.36F, nullptr, &bottom);
  ImGui::DockBuilderDockWindow("Overview", left);
  ImGui::DockBuilderDockWindow("Devices", devices);
  ImGui::DockBuilderDockWindow("Timeline", rest);
  ImGui::DockBuilderDockWindow("Knobs", knobs);
  ImGui::DockBuilderDockWindow("Steps", steps);
  ImGui::DockBuilderDockWindow("Where the time went", phases);
  for (const char* name : {"Statistics", "Links", "Compare", "SQL", "Losses and facts"})
    ImGui::DockBuilderDockWindow(name, bottom);
  ImGui::DockBuilderFinish(dock);
  // In front of the tabs beside it; what was asked for before stays the last.
  auto& forward = session_.brings_forward;
  forward.insert(forward.begin(), {"Statistics", "Overview"});
  docking_frames_ = 3;
}

void Shell::draw_views() {
  std::string forward;
  if (docking_frames_ > 0) {
    docking_frames_ -= 1;
  } else if (!session_.brings_forward.empty()) {
    forward = session_.brings_forward.front();
    session_.brings_forward.erase(session_.brings_forward.begin());
  }
  for (const std::unique_ptr<View>& view : views_) {
    if (forward == view->title()) {
      view->is_open = true;
      ImGui::SetNextWindowFocus();
    }
    settings_->note_view(view->title(), view->is_open);
    if (!view->is_open) continue;
    ImGui::SetNextWindowSize({px(720), px(420)}, ImGuiCond_FirstUseEver);
    if (ImGui::Begin(view->title(), &view->is_open)) view->draw_content(session_);
    ImGui::End();
  }
}

// Without a run
// ------------------------------------------------------------------------------------

void Shell::look_for_live_runs() {
  const double now = ImGui::GetTime();
  if (now - live_seen_at_ < 2) return;
  live_seen_at_ = now;
  live_ = live_runs();
}

void Shell::draw_path_list(const char* id, const std::vector<std::string>& paths) {
  ImGui::PushID(id);
  for (const std::string& path : paths) {
    std::error_code error;
    const bool is_there = std::filesystem::exists(path, error);
    ImGui::BeginDisabled(!is_there);
    const std::string copy = path;  // opening changes the list
    const bool is_chosen = ImGui::Selectable(path.c_str());
    ImGui::EndDisabled();
    if (!is_there) {
      ImGui::SameLine();
      draw_figure("gone", look().colours.dim);
    }
    if (is_chosen) {
      open_run(copy);
      break;
    }
  }
  ImGui::PopID();
}

void Shell::draw_start_page() {
  look_for_live_runs();
  place_panel(px(760), px(80));
  if (ImGui::Begin("Start", nullptr, kPanelFlags)) {
    {
      const FontScope font(look().bold, 22);
      ImGui::TextUnformatted("Sluice");
    }
    draw_empty("Drop a run database here, choose one below, or press Ctrl+O.");
    if (ImGui::Button("Open a run\u2026")) opens_box_ = true;
    ImGui::Dummy({0, px(8)});
    draw_title("Going on now on this machine");
    if (live_.empty()) draw_empty("No run is being recorded. `./run` begins one.");
    draw_path_list("live", live_);
    ImGui::Dummy({0, px(8)});
    draw_title("Opened before");
    if (settings_->recent.empty()) draw_empty("None yet.");
    draw_path_list("recent", settings_->recent);
    ImGui::Dummy({0, px(8)});
    draw_new_runs();
    ImGui::Dummy({0, px(8)});
    draw_note("? shows all shortcuts, Ctrl+P all commands.");
  }
  ImGui::End();
}

// They go on when the window is closed: it watches runs and owns none.
void Shell::draw_new_runs() {
  draw_title("New run", "into out/, goes on without this window");
  const std::shared_ptr<const std::vector<SampleRun>> samples = samples_.result();
  if (samples == nullptr || samples->empty()) {
    draw_empty(samples == nullptr ? "Looking for sample_models/runs\u2026"
                                  : "There is no folder sample_models/runs here: start sluice-gui "
                                    "in a checkout.");
    return;
  }
  for (const SampleRun& run : *samples) {
    ImGui::PushID(run.name.c_str());
    if (ImGui::Button("Begin")) begin_run(run);
    ImGui::PopID();
    ImGui::SameLine();
    ImGui::AlignTextToFramePadding();
    ImGui::TextUnformatted(run.name.c_str());
    if (!run.comment.empty()) draw_note(run.comment);
  }
  if (!start_problem_.empty()) draw_coloured(look().colours.red, start_problem_);
}

void Shell::begin_run(const SampleRun& run) {
  Result<StartedRun> started = make_error(ErrorCode::internal, "it was not tried");
  spare_time_.do_ordinarily(
      [&] { started = start_run(program_.empty() ? find_sluice() : program_, run, "out"); });
  start_problem_ = started.ok() ? "" : started.error().message();
  if (!started.ok()) return;
  open_run(started->database);
  started_log_ = started->log;
}

// A run that was begun here and has no database yet: what it says meanwhile.
void Shell::draw_starting() {
  const double now = ImGui::GetTime();
  if (now - log_seen_at_ > 0.5 && !log_line_.is_working()) {
    log_seen_at_ = now;
    log_line_.begin([log = started_log_] { return last_log_line(log); }, Window::wake);
  }
  draw_title("The run is starting");
  const std::shared_ptr<const std::string> line = log_line_.result();
  draw_coloured(look().colours.text,
                line == nullptr || line->empty() ? "It has said nothing yet." : *line);
  draw_note("What it prints is in " + started_log_);
}

void Shell::draw_problem() {
  const bool is_waiting = session_.run == nullptr;
  if (!is_waiting && session_.run->problem.empty()) return;
  const bool has_rest = session_.has_facts();
  if (begin_notice("Problem", px(760), px(has_rest ? 40 : 120),
                   is_waiting ? look().colours.line : look().colours.red)) {
    if (is_waiting) {
      draw_title("Opening");
      draw_empty(session_.feed->path());
    } else if (!has_rest && !started_log_.empty()) {
      draw_starting();
      if (ImGui::Button("Close the run")) close_run();
    } else {
      draw_title(has_rest ? "The run can no longer be read" : "This run cannot be shown");
      draw_coloured(look().colours.text, session_.run->problem);
      draw_note("It is tried again twice a second.");
      if (ImGui::Button("Close the run")) close_run();
      ImGui::SameLine();
      if (ImGui::Button("Open another\u2026")) opens_box_ = true;
    }
  }
  end_notice();
}

// Exporting
// ----------------------------------------------------------------------------------------

void Shell::begin_export(ExportForm form) {
  shows_export_ = true;
  exported_.forget();
  exported_.begin([program = program_, database = session_.feed->path(),
                   form] { return export_run(program, database, form); },
                  Window::wake);
}

void Shell::draw_export() {
  const std::shared_ptr<const Exported> exported = exported_.result();
  const bool is_bad = exported != nullptr && !exported->problem.empty();
  if (begin_notice("Export", px(620), px(40), is_bad ? look().colours.red : look().colours.line)) {
    if (exported == nullptr) {
      draw_title("Exporting the run");
      draw_note("A process of low priority does it.");
    } else {
      draw_title(is_bad ? "The run was not exported" : "The run was exported");
      draw_coloured(look().colours.text, is_bad ? exported->problem : exported->path);
      if (ImGui::Button("Close")) shows_export_ = false;
      if (!is_bad) {
        ImGui::SameLine();
        if (ImGui::Button("Copy the path")) ImGui::SetClipboardText(exported->path.c_str());
      }
    }
  }
  end_notice();
}

}  // namespace sluice::gui
