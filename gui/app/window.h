#pragma once
// A window with OpenGL 3.3, by GLFW, on X11 or Wayland.
//
// Thread contract: the main thread; wake() from any.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"

struct GLFWwindow;

namespace sluice::gui {

// The reason why a window woke.
enum class Woken : std::uint8_t {
  nothing,
  results,  // wake(): a thread has something to show
  event     // someone did something
};

struct WindowOptions {
  int width = 0;  // 0: 1600 x 1000, or what the screen has room for
  int height = 0;
  std::string title = "Sluice";
  bool is_visible = true;
};

class Window {
 public:
  // Says what is missing: a display, or OpenGL 3.3 on it.
  static Result<std::unique_ptr<Window>> open(const WindowOptions& options);
  ~Window();
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  GLFWwindow* handle() const { return handle_; }
  bool is_closing() const;
  void set_title(const std::string& title);
  float display_scale() const;  // of the monitor that it is on

  // Waits for an event or wake(), at most `seconds_max`.
  Woken wait(double seconds_max);
  Woken poll();  // the same, without waiting
  static void wake();
  void show_frame();  // what was drawn becomes visible

  // Files dropped onto the window since the last call.
  std::vector<std::string> take_dropped();

  // Called by GLFW.
  void note_event() { has_event_ = true; }
  void note_dropped(std::vector<std::string> paths);

 private:
  explicit Window(GLFWwindow* handle) : handle_(handle) {}

  GLFWwindow* handle_;
  bool has_event_ = true;
  std::vector<std::string> dropped_;
};

}  // namespace sluice::gui
