#pragma once
// An X server without a screen (Xvfb), for as long as the object lives; DISPLAY names it, and is
// afterwards what it was before.

#include <memory>
#include <string>

namespace sluice::gui {

class VirtualDisplay {
 public:
  // Null where there is no Xvfb or it does not start; `why` says which.
  static std::unique_ptr<VirtualDisplay> start(std::string& why, bool has_opengl = true,
                                               const std::string& screen = "3900x2200");
  ~VirtualDisplay();
  VirtualDisplay(const VirtualDisplay&) = delete;
  VirtualDisplay& operator=(const VirtualDisplay&) = delete;

 private:
  explicit VirtualDisplay(int process) : process_(process) {}
  int process_;
  std::string display_before_;
};

// A program with its arguments, in a process of its own; its output goes nowhere.
class ChildProcess {
 public:
  explicit ChildProcess(const std::string& command);
  ~ChildProcess();  // ends it, if it is still there
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  int wait();  // its exit code
  int id() const { return process_; }

 private:
  int process_ = -1;
};

bool has_program(const std::string& name);
// The folder of this program: the others are built beside it.
std::string program_folder();

}  // namespace sluice::gui
