#include "gui/app/run_door.h"

#include <chrono>
#include <utility>

#include "core/control/control_server.h"
#include "gui/app/settings.h"
#include "gui/app/window.h"
#include "gui/data/opening.h"
#include "gui/data/run_notes.h"
#include "gui/data/run_path.h"
#include "gui/views/session.h"

namespace sluice::gui {

RunDoor::RunDoor(Session& session, Settings& settings, Answers answers)
    : session_(session), settings_(settings), answers_(std::move(answers)) {}

RunDoor::~RunDoor() = default;

void RunDoor::open(std::vector<std::string> paths) {
  session_.wake = Window::wake;
  for (std::string& path : paths) {
    if (!relay::is_far_run(path)) path = absolute_path(path);
  }
  const bool is_far = relay::is_far_run(paths.front());
  // A path that is named as databases are is one, as far as can be said without the disk.
  if (paths.size() == 1 && !is_far && paths.front().ends_with(".db")) {
    open_database({.database = paths.front()});
  } else {
    opening_ = std::make_unique<Opening>(std::move(paths), nullptr, far_, Window::wake);
  }
}

void RunDoor::open_database(const Opened& opened) {
  session_.pieces.ranks = opened.ranks;
  session_.pieces.far = opened.far;
  session_.pieces.feed =
      std::make_unique<RunFeed>(opened.database, FeedOptions{.wake = Window::wake});
  const std::string& own = session_.pieces.own_database();
  session_.control.link = std::make_unique<ControlLink>(control::socket_path_of(own),
                                                        ControlOptions{.wake = Window::wake});
  session_.control.consultation.open(std::make_unique<Advisor>(own, Window::wake, answers_));
  // Several databases that are no folder's have no one name that opens them again.
  if (opened.far != nullptr) {
    settings_.note_opened(opened.far->name());
  } else if (opened.ranks == nullptr || !opened.ranks->folder.empty()) {
    settings_.note_opened(session_.pieces.place());
  }
  // What is compared and listed beside others lies on this machine's disk.
  session_.recent = settings_.recent;
  std::erase_if(session_.recent, relay::is_far_run);
  // Notes lie beside the run: a copy that goes takes none with it.
  if (opened.far != nullptr && !opened.far->is_kept()) return;
  session_.notes = std::make_unique<RunNotes>();
  session_.notes->open(session_.pieces.place(), Window::wake);
}

void RunDoor::read_ranks_again() {
  const std::shared_ptr<const MergedRanks>& ranks = session_.pieces.ranks;
  if (ranks == nullptr || opening_ != nullptr) return;
  opening_ = std::make_unique<Opening>(ranks->databases, ranks->file, far_, Window::wake);
}

void RunDoor::take_opened() {
  const std::shared_ptr<const Opened> opened = opening_ == nullptr ? nullptr : opening_->result();
  if (opened == nullptr || !opened->problem.empty()) return;
  end_opening();
  if (session_.pieces.feed == nullptr) return open_database(*opened);
  session_.pieces.ranks = opened->ranks;
  session_.timeline.choose(0);  // operations have other numbers in the new file
}

void RunDoor::end_opening() {
  if (opening_ == nullptr) return;
  closing_.push_back(
      std::async(std::launch::async, [gone = std::move(opening_)]() mutable { gone.reset(); }));
}

void RunDoor::close() {
  spans_at_opening_.reset();
  end_opening();
  std::unique_ptr<RunFeed> feed = std::move(session_.pieces.feed);
  std::unique_ptr<Advisor> advisor = session_.control.consultation.release();
  std::shared_ptr<const MergedRanks> ranks = std::move(session_.pieces.ranks);
  std::shared_ptr<const FollowedRun> far = std::move(session_.pieces.far);
  session_.close();
  if (feed == nullptr) return;
  std::erase_if(closing_, [](const std::future<void>& done) {
    return done.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  });
  closing_.push_back(std::async(std::launch::async,
                                [gone = std::move(feed), last = std::move(advisor),
                                 merged = std::move(ranks), copied = std::move(far)]() mutable {
                                  last.reset();
                                  gone.reset();
                                  merged.reset();  // which removes their file
                                  copied.reset();  // the same, of a copy
                                }));
}

void RunDoor::note_spans() {
  if (session_.pieces.run != nullptr && !spans_at_opening_)
    spans_at_opening_ = session_.pieces.run->span_count;
}

}  // namespace sluice::gui
