#include "gui/app/window.h"

#define GLFW_INCLUDE_NONE
#include <GLFW/glfw3.h>

#include <algorithm>
#include <utility>

namespace sluice::gui {
namespace {

std::string glfw_words() {
  const char* words = nullptr;
  return glfwGetError(&words) == GLFW_NO_ERROR || words == nullptr ? "no reason given" : words;
}

std::atomic<bool> g_woken{false};  // by a thread that has a result: GLFW's empty event says no more

Window& window_of(GLFWwindow* handle) {
  return *static_cast<Window*>(glfwGetWindowUserPointer(handle));
}

// Set before ImGui's, which call these first.
void note_events_of(GLFWwindow* handle) {
  glfwSetCursorPosCallback(handle, [](auto* h, double, double) { window_of(h).note_event(); });
  glfwSetMouseButtonCallback(handle, [](auto* h, int, int, int) { window_of(h).note_event(); });
  glfwSetScrollCallback(handle, [](auto* h, double, double) { window_of(h).note_event(); });
  glfwSetKeyCallback(handle, [](auto* h, int, int, int, int) { window_of(h).note_event(); });
  glfwSetCharCallback(handle, [](auto* h, unsigned) { window_of(h).note_event(); });
  glfwSetWindowFocusCallback(handle, [](auto* h, int) { window_of(h).note_event(); });
  glfwSetCursorEnterCallback(handle, [](auto* h, int) { window_of(h).note_event(); });
  glfwSetFramebufferSizeCallback(handle, [](auto* h, int, int) { window_of(h).note_event(); });
  glfwSetWindowRefreshCallback(handle, [](auto* h) { window_of(h).note_event(); });
  glfwSetWindowContentScaleCallback(handle,
                                    [](auto* h, float, float) { window_of(h).note_event(); });
  glfwSetDropCallback(handle, [](auto* h, int count, const char** paths) {
    window_of(h).note_dropped({paths, paths + count});
  });
}

constexpr int kWidth = 1600;
constexpr int kHeight = 1000;
constexpr int kTitleBar = 36;  // of the window system, which is part of the work area

// The size that is wanted, as far as the screen has room for it beside its own bars.
std::pair<int, int> fitting_size(const WindowOptions& options) {
  if (options.width > 0 && options.height > 0) return {options.width, options.height};
  int x = 0;
  int y = 0;
  int width = 0;
  int height = 0;
  GLFWmonitor* monitor = glfwGetPrimaryMonitor();
  if (monitor != nullptr) glfwGetMonitorWorkarea(monitor, &x, &y, &width, &height);
  if (width <= 0 || height <= kTitleBar) return {kWidth, kHeight};
  return {std::min(kWidth, width), std::min(kHeight, height - kTitleBar)};
}

Error no_display() {
  return make_error(ErrorCode::unsupported,
                    "there is no display to open a window on ({}). Run sluice-gui in a desktop "
                    "session, or over `ssh -X`; without one, `sluice show` and `sluice report` "
                    "say the same of a run",
                    glfw_words());
}

}  // namespace

Result<std::unique_ptr<Window>> Window::open(const WindowOptions& options) {
  if (glfwInit() != GLFW_TRUE) return no_display();
  glfwWindowHint(GLFW_CONTEXT_VERSION_MAJOR, 3);
  glfwWindowHint(GLFW_CONTEXT_VERSION_MINOR, 3);
  glfwWindowHint(GLFW_OPENGL_PROFILE, GLFW_OPENGL_CORE_PROFILE);
  glfwWindowHint(GLFW_OPENGL_FORWARD_COMPAT, GLFW_TRUE);
  glfwWindowHintString(GLFW_X11_CLASS_NAME, "sluice-gui");
  glfwWindowHintString(GLFW_X11_INSTANCE_NAME, "sluice-gui");  // without it the class is not taken
  glfwWindowHintString(GLFW_WAYLAND_APP_ID, "sluice-gui");
  glfwWindowHint(GLFW_VISIBLE, options.is_visible ? GLFW_TRUE : GLFW_FALSE);
  const auto [width, height] = fitting_size(options);
  GLFWwindow* handle = glfwCreateWindow(width, height, options.title.c_str(), nullptr, nullptr);
  if (handle == nullptr) {
    const Error error = make_error(
        ErrorCode::unsupported,
        "this display gives no OpenGL 3.3 ({}). Install a driver that does (Debian: "
        "libgl1-mesa-dri, which also draws in software), or use `sluice show` and `sluice report`",
        glfw_words());
    glfwTerminate();
    return error;
  }
  std::unique_ptr<Window> window(new Window(handle));
  glfwSetWindowUserPointer(handle, window.get());
  note_events_of(handle);
  glfwMakeContextCurrent(handle);
  glfwSwapInterval(1);
  return window;
}

Window::~Window() {
  glfwDestroyWindow(handle_);
  glfwTerminate();
}

bool Window::is_closing() const { return glfwWindowShouldClose(handle_) != 0; }
void Window::set_title(const std::string& title) { glfwSetWindowTitle(handle_, title.c_str()); }

float Window::display_scale() const {
  float x = 1;
  float y = 1;
  glfwGetWindowContentScale(handle_, &x, &y);
  return std::clamp(x, 0.5F, 4.0F);
}

Woken Window::wait(double seconds_max) {
  if (!has_event_ && !g_woken) glfwWaitEventsTimeout(seconds_max);
  return poll();
}

Woken Window::poll() {
  glfwPollEvents();
  const bool has_results = g_woken.exchange(false);
  if (std::exchange(has_event_, false)) return Woken::event;
  return has_results ? Woken::results : Woken::nothing;
}

void Window::wake() {
  if (!g_woken.exchange(true)) glfwPostEmptyEvent();
}

void Window::show_frame() { glfwSwapBuffers(handle_); }

std::vector<std::string> Window::take_dropped() { return std::exchange(dropped_, {}); }

void Window::note_dropped(std::vector<std::string> paths) {
  dropped_ = std::move(paths);
  has_event_ = true;
}

}  // namespace sluice::gui
