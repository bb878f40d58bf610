#include "gui/app/app.h"

#include <GLFW/glfw3.h>
#include <backends/imgui_impl_glfw.h>
#include <backends/imgui_impl_opengl3.h>
#include <fmt/format.h>
#include <imgui.h>
#include <imgui_internal.h>
#include <implot.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <optional>

#include "gui/app/fonts.h"
#include "gui/app/input_order.h"
#include "gui/app/picture_wait.h"
#include "gui/app/settings.h"
#include "gui/app/shell.h"
#include "gui/app/top_bar.h"
#include "gui/views/session.h"
#include "gui/widgets/look.h"

namespace sluice::gui {
namespace {

// Sizes that follow from content and appearing windows need further frames to settle.
constexpr int kFramesAfterEvent = 3;
constexpr double kWaitSeconds = 0.5;     // the start page looks for live runs, tooltips appear
constexpr double kTypingSeconds = 0.25;  // the cursor blinks

// This thread's time: other threads on the same processors are not the frame's.
double thread_cpu_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

// ImGui, ImPlot and the backends, begun and ended together.
class ImguiSession {
 public:
  ImguiSession(GLFWwindow* window, const std::string& settings_file, Settings& settings) {
    ImGui::CreateContext();
    ImPlot::CreateContext();
    ImGuiIO& io = ImGui::GetIO();
    io.ConfigFlags |= ImGuiConfigFlags_DockingEnable | ImGuiConfigFlags_NavEnableKeyboard;
    io.ConfigDockingWithShift = false;
    io.ConfigWindowsMoveFromTitleBarOnly = true;
    settings_file_.emplace(settings, settings_file);
    load_fonts();
    ImGui_ImplGlfw_InitForOpenGL(window, true);
    ImGui_ImplOpenGL3_Init("#version 330 core");
  }
  void end_backends() {
    ImGui_ImplOpenGL3_Shutdown();
    ImGui_ImplGlfw_Shutdown();
  }
  ~ImguiSession() {
    settings_file_->keep();
    ImPlot::DestroyContext();
    ImGui::DestroyContext();
  }
  ImguiSession(const ImguiSession&) = delete;
  ImguiSession& operator=(const ImguiSession&) = delete;
  SettingsFile& settings_file() { return *settings_file_; }

 private:
  std::optional<SettingsFile> settings_file_;  // from when the context is there
};

class App {
 public:
  App(const AppOptions& options, const AppHooks& hooks, Window& window, Settings& settings,
      SettingsFile& settings_file)
      : options_(options),
        hooks_(hooks),
        window_(window),
        settings_file_(settings_file),
        shell_(settings, options.sluice, options.answers, options.gives_way) {
    if (!options.theme.empty())
      settings.theme = options.theme == "light" ? Theme::light : Theme::dark;
    apply();
    shell_.choose_far(options.far);
    if (!options.databases.empty()) shell_.open_runs(options.databases);
    if (!options.view.empty()) shell_.session().foreground.bring(options.view);
    wanted_steps_ = options.steps;
  }

  Status run() {
    if (hooks_.started) hooks_.started(shell_);
    frames_left_ = kFramesAfterEvent;
    while (!window_.is_closing() && !shell_.wants_to_quit()) {
      const bool is_busy = hooks_.is_busy && hooks_.is_busy();
      // A view that a held key moves has a frame as often as the display shows one.
      const bool is_moving = shell_.session().timeline.motion() == TimelineState::Motion::moves;
      if (is_busy || is_moving || frames_left_ > 0) {
        take(window_.poll());
      } else {
        take(window_.wait(ImGui::GetIO().WantTextInput ? kTypingSeconds : kWaitSeconds));
        if (frames_left_ == 0) continue;
      }
      frames_left_ = std::max(0, frames_left_ - 1);
      // ImGui takes a key's press and its release, which may come together, in a frame each.
      if (ImGui::GetCurrentContext()->InputEventsQueue.Size > 0) frames_left_ = kFramesAfterEvent;
      std::vector<std::string> dropped = window_.take_dropped();
      if (!dropped.empty()) shell_.open_runs(std::move(dropped));
      draw();
      ASSIGN_OR_RETURN(const bool is_done, take_picture());
      if (is_done) break;
    }
    return ok_status();
  }

 private:
  // A live run has results several times a second, each of which is one frame; where none follow,
  // the frames in which sizes settle come with the wait's end.
  void take(Woken woken) {
    if (woken == Woken::event) {
      frames_left_ = kFramesAfterEvent;
      is_unsettled_ = false;
    } else if (woken == Woken::results) {
      frames_left_ = std::max(frames_left_, 1);
      is_unsettled_ = true;
    } else if (frames_left_ == 0 && is_unsettled_) {
      frames_left_ = kFramesAfterEvent - 1;
      is_unsettled_ = false;
    } else if (frames_left_ == 0 &&
               (ImGui::GetIO().WantTextInput || is_on_start_page() ||
                shell_.session().timeline.motion() != TimelineState::Motion::none)) {
      frames_left_ = 1;
    }
  }

  bool is_on_start_page() { return shell_.session().pieces.feed == nullptr; }

  // A theme or a scale that was asked for, between frames.
  void apply() {
    const double display =
        options_.scale > 0 ? options_.scale : static_cast<double>(window_.display_scale());
    const auto scale = static_cast<float>(display * shell_.wanted_scale());
    const bool is_same = look().scale == scale && look().theme == shell_.wanted_theme();
    if (is_same && has_look_) return;
    has_look_ = true;
    apply_look(shell_.wanted_theme(), scale);
  }

  void draw() {
    apply();
    const double begin_ms = thread_cpu_ms();
    ImGui_ImplOpenGL3_NewFrame();
    ImGui_ImplGlfw_NewFrame();
    {
      const HeldInput held;
      ImGui::NewFrame();
    }
    show_wanted_steps();
    shell_.draw(cost_);
    ImGui::Render();
    settings_file_.keep_changes();
    note_cost(thread_cpu_ms() - begin_ms);
    if (hooks_.drawn) hooks_.drawn(cost_);
    const std::string title = shell_.window_title();
    if (title != title_) window_.set_title(title_ = title);
    if (!hooks_.is_shown || hooks_.is_shown()) show();
    if (hooks_.after_show) hooks_.after_show();
  }

  // Steps that the record does not have are said in Details, once it has later ones or has ended.
  void show_wanted_steps() {
    Session& session = shell_.session();
    if (!wanted_steps_ || !session.pieces.has_facts()) return;
    const std::vector<rundb::StepRow>& steps = session.pieces.steps();
    const bool are_there = !steps.empty() && steps.back().id >= wanted_steps_->last;
    if (!are_there && session.pieces.was_live()) return;
    const auto first = std::ranges::find(steps, wanted_steps_->first, &rundb::StepRow::id);
    const auto last = std::ranges::find(steps, wanted_steps_->last, &rundb::StepRow::id);
    if (first != steps.end() && last != steps.end())
      session.timeline.view.fit({first->ts, last->ts + last->dur});
    session.timeline.explain(*wanted_steps_);
    session.foreground.bring("Details");
    wanted_steps_.reset();
  }

  void show() {
    int width = 0;
    int height = 0;
    glfwGetFramebufferSize(window_.handle(), &width, &height);
    glViewport(0, 0, width, height);
    const ImVec4 page = ImGui::ColorConvertU32ToFloat4(look().colours.page);
    glClearColor(page.x, page.y, page.z, 1);
    glClear(GL_COLOR_BUFFER_BIT);
    ImGui_ImplOpenGL3_RenderDrawData(ImGui::GetDrawData());
    if (hooks_.before_show) hooks_.before_show();
    drawn_size_ = {width, height};
    if (!is_taking_picture()) window_.show_frame();
  }

  void note_cost(double ms) {
    cost_.last_ms = ms;
    costs_[cost_index_++ % costs_.size()] = cost_.last_ms;
    cost_.worst_ms = *std::ranges::max_element(costs_);
    cost_.vertex_count = ImGui::GetDrawData()->TotalVtxCount;
  }

  bool is_taking_picture() const { return settled_frames_ > kFramesAfterEvent; }

  // With --screenshot: when all is there, but perhaps predictions, and some frames went by. True:
  // it is taken.
  Result<bool> take_picture() {
    if (options_.screenshot.empty()) return false;
    const bool was_taken = is_taking_picture();
    const std::vector<std::string> awaited = shell_.awaited();
    const double now_seconds = glfwGetTime();
    settled_frames_ = picture_wait_.is_over(awaited, now_seconds) ? settled_frames_ + 1 : 0;
    const std::string word = picture_wait_.word(awaited, now_seconds);
    if (!word.empty()) fmt::print(stderr, "{}", word);
    if (!was_taken) {
      Window::wake();
      return false;
    }
    RETURN_IF_ERROR(save_screenshot(drawn_size_.first, drawn_size_.second, options_.screenshot));
    return true;
  }

  const AppOptions& options_;
  const AppHooks& hooks_;
  Window& window_;
  SettingsFile& settings_file_;
  Shell shell_;
  std::optional<analyze::StepRange> wanted_steps_;
  FrameCost cost_;
  std::array<double, 100> costs_{};
  std::size_t cost_index_ = 0;
  std::string title_;
  std::pair<int, int> drawn_size_;
  int frames_left_ = 0;
  bool is_unsettled_ = false;  // since results were drawn in one frame
  int settled_frames_ = 0;
  PictureWait picture_wait_;
  bool has_look_ = false;
};

}  // namespace

Status run_app(const AppOptions& options, const AppHooks& hooks) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Window> window, Window::open(options.window));
  Settings settings;
  const std::string ini = options.settings_path.empty() ? settings_path() : options.settings_path;
  Status status;
  {
    ImguiSession imgui(window->handle(), ini == "-" ? "" : ini, settings);
    {
      App app(options, hooks, *window, settings, imgui.settings_file());
      status = app.run();
    }
    if (hooks.ending) hooks.ending();
    imgui.end_backends();
  }
  if (hooks.ended) hooks.ended();
  return status;
}

Result<std::string> check_window() {
  ASSIGN_OR_RETURN(const std::unique_ptr<Window> window, Window::open({.is_visible = false}));
  const auto words_of = [](GLenum name) {
    const auto* words = reinterpret_cast<const char*>(glGetString(name));
    return std::string(words == nullptr ? "?" : words);
  };
  return fmt::format("opens: OpenGL {}, drawn by {}", words_of(GL_VERSION), words_of(GL_RENDERER));
}

}  // namespace sluice::gui
