#pragma once
// Why the open run cannot be shown: it is being opened, it has no database yet, or reading it
// failed.
//
// Thread contract: the frame thread.

#include <string>

#include "gui/data/background.h"

namespace sluice::gui {

class Notice;
struct RunPieces;

enum class NoticeChoice : std::uint8_t { none, close_run, open_another };

class ProblemNotice {
 public:
  // The open run was begun by this window and prints into that file; empty: it was not.
  void follow_log(const std::string& log);
  // Draws nothing where there is no problem.
  NoticeChoice draw(const RunPieces& pieces);

 private:
  void say_starting(Notice& notice);

  std::string log_;
  Background<std::string> log_line_;
  double log_seen_at_ = -1e9;
};

}  // namespace sluice::gui
