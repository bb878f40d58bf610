#pragma once
// The program at this end of the line (ssh, or any other whose output is a followed run), with a
// socket to it and a pipe from it. It is in the terminal's foreground group, so that ssh can ask
// for a password, and ends with this process.
//
// Thread contract: one thread at a time.

#include <sys/types.h>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace sluice::relay {

enum class ErrorOutput : std::uint8_t {
  shown,  // on this program's stderr
  kept,   // its last lines are read here, for a window
};

class LineProcess {
 public:
  // `command[0]` is looked for in PATH; no shell reads any word.
  static Result<LineProcess> start(const std::vector<std::string>& command, ErrorOutput errors);
  LineProcess(LineProcess&& other) noexcept;
  LineProcess& operator=(LineProcess&&) = delete;
  ~LineProcess();  // ends it

  // False: it takes nothing any more.
  bool send(std::string_view bytes);

  enum class Heard : std::uint8_t { bytes, nothing, end };
  // What it says within the time, behind `into`.
  Heard hear(std::chrono::milliseconds within, std::string& into);

  // Closes both and waits for its end, which is asked for after a moment. The exit code, or
  // 128 and the signal.
  int finish();
  // The last line of what was kept of its stderr.
  std::string last_words() const;

 private:
  LineProcess(pid_t process, int to, int from, int errors);
  void take_errors();

  pid_t process_ = -1;  // -1: none, or moved from
  int to_ = -1;
  int from_ = -1;
  int errors_ = -1;
  std::string words_;
};

}  // namespace sluice::relay
