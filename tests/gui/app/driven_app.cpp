#include "tests/gui/app/driven_app.h"

#include <GLFW/glfw3.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <thread>

#include "tests/gui/app/window_fixture.h"
#include "tests/test_all.h"

namespace sluice::gui {
namespace {

// The engine calls a plain function, so what it works on stands here; one program at a time.
struct Running {
  ImGuiTestEngine* engine = nullptr;
  ImGuiTest* test = nullptr;
  Shell* shell = nullptr;
  const std::function<void(const Drive&)>* script = nullptr;
  std::string wanted_picture;
  std::string problem;
  bool has_run = false;
  std::int64_t frame_count = 0;
};
Running g_running;

void run_script(ImGuiTestContext* test) { (*g_running.script)({test, g_running.shell}); }

void begin_engine(Shell& shell) {
  g_running.shell = &shell;
  g_running.engine = ImGuiTestEngine_CreateContext();
  ImGuiTestEngineIO& io = ImGuiTestEngine_GetIO(g_running.engine);
  io.ConfigRunSpeed = ImGuiTestRunSpeed_Fast;
  io.ConfigVerboseLevel = ImGuiTestVerboseLevel_Warning;
  io.ConfigVerboseLevelOnError = ImGuiTestVerboseLevel_Info;
  io.ConfigLogToTTY = true;
  io.ConfigWatchdogKillTest = 600;
  // What ImGui mends by itself (a font that was not taken back) is a mistake of ours all the same.
  ImGui::GetCurrentContext()->ErrorCallback = [](ImGuiContext*, void*, const char* words) {
    if (g_running.problem.empty()) g_running.problem = std::string("ImGui: ") + words;
  };
  ImGuiTestEngine_Start(g_running.engine, ImGui::GetCurrentContext());
  g_running.test = IM_REGISTER_TEST(g_running.engine, "sluice-gui", "script");
  g_running.test->TestFunc = run_script;
  ImGuiTestEngine_QueueTest(g_running.engine, g_running.test);
}

// What the engine logged as errors, in one line; all of its log stands on the terminal.
std::string what_failed() {
  ImGuiTextBuffer lines;
  g_running.test->Output.Log.ExtractLinesForVerboseLevels(ImGuiTestVerboseLevel_Error,
                                                          ImGuiTestVerboseLevel_Error, &lines);
  std::string text = lines.c_str();
  std::ranges::replace(text, '\n', ' ');
  return "the script failed: " + text;
}

// Pixels cost a processor most of a frame here, and scripts look at items: those of one frame in
// sixteen, and of each that a picture is taken of. The others leave the processor to the run.
bool is_shown() {
  constexpr int kMadeForOneShown = 16;
  if (!g_running.wanted_picture.empty() || ++g_running.frame_count % kMadeForOneShown == 0)
    return true;
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  return false;
}

// While the frame is in the buffer that is drawn into: the one that is shown cannot be read.
void before_show() {
  ImGuiTestEngine_PreSwap(g_running.engine);
  if (g_running.wanted_picture.empty()) return;
  int width = 0;
  int height = 0;
  glfwGetFramebufferSize(glfwGetCurrentContext(), &width, &height);
  const Status saved = save_screenshot(width, height, g_running.wanted_picture);
  if (!saved.ok()) g_running.problem = saved.error().message();
  g_running.wanted_picture.clear();
}

void after_show() {
  ImGuiTestEngine_PostSwap(g_running.engine);
  if (!ImGuiTestEngine_IsTestQueueEmpty(g_running.engine)) return;
  ImGuiTestEngineResultSummary summary;
  ImGuiTestEngine_GetResultSummary(g_running.engine, &summary);
  g_running.has_run = summary.CountTested == 1;
  if (g_running.has_run && summary.CountSuccess != 1) g_running.problem = what_failed();
  glfwSetWindowShouldClose(glfwGetCurrentContext(), GLFW_TRUE);
}

}  // namespace

bool Drive::comes_true(const std::function<bool()>& condition, std::chrono::seconds within) const {
  const auto until = std::chrono::steady_clock::now() + within;
  while (!condition() && std::chrono::steady_clock::now() < until) test->Yield();
  return condition();
}

bool Drive::has_item(const char* item) const {
  return comes_true([&] { return test->ItemExists(item); });
}

bool Drive::click_until(const char* item, const std::function<bool()>& condition) const {
  for (int round = 0; round < 6 && !condition(); ++round) {
    // It may be hidden for a while.
    if (!comes_true([&] { return condition() || test->ItemExists(item); })) return false;
    if (!condition()) {
      test->ItemClick(item, ImGuiMouseButton_Left, ImGuiTestOpFlags_NoCheckHoveredId);
    }
    comes_true(condition, std::chrono::seconds(10));
  }
  return condition();
}

bool Drive::settles() const {
  return comes_true([this] { return shell->is_settled(); });
}

void Drive::save_picture(const std::string& path) const {
  test->Yield(3);
  g_running.wanted_picture = path;
  test->Yield(2);
}

void Drive::picture_with_all(const std::string& name) const {
  if (is_testing_all()) save_picture(picture_folder() + "/" + name + ".png");
}

std::string drive(const AppOptions& options, const std::function<void(const Drive&)>& script) {
  g_running = {};
  g_running.script = &script;
  AppHooks hooks;
  hooks.started = begin_engine;
  hooks.is_busy = [] { return true; };
  hooks.is_shown = is_shown;
  hooks.before_show = before_show;
  hooks.after_show = after_show;
  hooks.ending = [] { ImGuiTestEngine_Stop(g_running.engine); };
  hooks.ended = [] { ImGuiTestEngine_DestroyContext(g_running.engine); };
  const Status status = run_app(options, hooks);
  if (!status.ok()) return status.error().message();
  if (g_running.problem.empty() && !g_running.has_run) return "the script did not run";
  return g_running.problem;
}

}  // namespace sluice::gui
