#pragma once
// How runs come into the window and leave it. Both take threads of their own: a run is looked for
// and its ranks are merged before it is there, and nobody waits for the reads under way of one that
// is closed.
//
// Thread contract: the frame thread. Destroying it waits for the runs that are being closed.

#include <cstdint>
#include <deque>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gui/data/advisor.h"
#include "gui/data/followed_run.h"

namespace sluice::gui {

class Opening;
struct Opened;
struct Session;
struct Settings;

class RunDoor {
 public:
  // `answers`: what a change should gain (gui/data/advice.h). The others live longer.
  RunDoor(Session& session, Settings& settings, Answers answers);
  ~RunDoor();

  // How runs on servers are followed.
  void choose_far(FarChoice far) { far_ = std::move(far); }
  // A database, the folder of a run, a run on a server, or the databases of all ranks of one; no
  // run is open.
  void open(std::vector<std::string> paths);
  // The picture of merged ranks is of the instant at which they were read: now.
  void read_ranks_again();
  // Once a frame: what has been looked for is there.
  void take_opened();
  // The run that is being looked for is not wanted any more.
  void end_opening();
  // Nothing of the run stays.
  void close();

  // Null: nothing is being looked for or merged.
  const Opening* opening() const { return opening_.get(); }
  // How many spans the run had when it was read first; 0: it has not been.
  std::int64_t spans_at_opening() const { return spans_at_opening_.value_or(0); }
  void note_spans();

 private:
  void open_database(const Opened& opened);

  Session& session_;
  Settings& settings_;
  const Answers answers_;
  FarChoice far_;
  std::unique_ptr<Opening> opening_;
  std::optional<std::int64_t> spans_at_opening_;
  std::deque<std::future<void>> closing_;
};

}  // namespace sluice::gui
