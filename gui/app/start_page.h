#pragma once
// The page of a window without a run: runs that are live, runs opened before, runs to begin.
//
// Thread contract: the frame thread. The disk is read, and a run is begun, by other threads.

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "gui/app/run_start.h"
#include "gui/app/settings.h"
#include "gui/data/background.h"
#include "gui/data/known_runs.h"
#include "gui/data/new_run.h"
#include "gui/data/run_list.h"

namespace sluice::gui {

// The choice that somebody made on the page in this frame.
struct StartChoice {
  std::string database = {};  // to be opened; empty: none
  std::string log = {};       // of the run, if it was begun here
  bool opens_box = false;
};

class StartPage {
 public:
  // `program`: the command `sluice`, which trains; empty: find_sluice().
  StartPage(const Settings& settings, SpareTime& spare_time, std::string program);

  StartChoice draw();
  // Another run is opened: one that is still being begun is not opened after it.
  void open_nothing() { beginning_.forget(); }
  // The page stays as drawn until something on the disk changes.
  bool is_settled() const { return runs_.result() != nullptr && samples_.result() != nullptr; }

 private:
  void look_for_runs_again();
  void look_at_recent_runs();
  std::string summary_words(const std::string& path) const;
  void draw_path_list(const char* id, const std::vector<std::string>& paths, StartChoice& choice);
  void draw_new_runs();
  void begin_run(const SampleRun& run);
  void take_begun_run(StartChoice& choice);

  const Settings* settings_;
  std::string program_;
  Background<KnownRuns> runs_;
  double looked_at_ = -1e9;
  double drawn_at_ = -1e9;
  Background<std::vector<RunSummary>> recent_;  // of those opened before
  Background<std::vector<SampleRun>> samples_;
  RunStart beginning_;
  std::string problem_;  // why a run could not be begun
};

}  // namespace sluice::gui
