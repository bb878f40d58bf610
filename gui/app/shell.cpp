#include "gui/app/shell.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "core/control/control_server.h"
#include "gui/app/picture_wait.h"
#include "gui/app/window.h"
#include "gui/data/child_process.h"
#include "gui/data/run_path.h"

namespace sluice::gui {

Shell::Shell(Settings& settings, std::string program, Answers answers, bool gives_way)
    : settings_(&settings),
      program_(program),
      answers_(std::move(answers)),
      gives_way_(gives_way),
      views_(all_views(session_)),
      start_page_(settings, spare_time_, program),
      new_run_(spare_time_),
      open_box_(settings.recent),
      export_panel_(std::move(program)) {
  for (const std::unique_ptr<View>& view : views_)
    view->is_open = std::ranges::find(settings.closed, view->title()) == settings.closed.end();
  make_commands();
}

Shell::~Shell() = default;

void Shell::open_runs(std::vector<std::string> paths) {
  close_run();
  start_page_.open_nothing();
  new_run_.forget();
  session_.wake = Window::wake;
  for (std::string& path : paths) path = absolute_path(path);
  // What is named as databases are is one, as far as can be said without the disk.
  if (paths.size() == 1 && paths.front().ends_with(".db")) {
    open_database({.database = paths.front(), .ranks = {}, .problem = {}});
  } else {
    opening_ = std::make_unique<Opening>(std::move(paths), nullptr, Window::wake);
  }
}

void Shell::open_database(const Opened& opened) {
  session_.pieces.ranks = opened.ranks;
  session_.pieces.feed =
      std::make_unique<RunFeed>(opened.database, FeedOptions{.wake = Window::wake});
  const std::string& own = session_.pieces.own_database();
  session_.turning.link = std::make_unique<ControlLink>(control::socket_path_of(own),
                                                        ControlOptions{.wake = Window::wake});
  session_.turning.advisor = std::make_unique<Advisor>(own, Window::wake, answers_);
  // Several databases that are no folder's have no one name that opens them again.
  if (opened.ranks == nullptr || !opened.ranks->folder.empty())
    settings_->note_opened(session_.pieces.place());
  session_.recent = settings_->recent;
}

void Shell::read_ranks_again() {
  const std::shared_ptr<const MergedRanks>& ranks = session_.pieces.ranks;
  if (ranks == nullptr || opening_ != nullptr) return;
  opening_ = std::make_unique<Opening>(ranks->databases, ranks->file, Window::wake);
}

void Shell::take_opened() {
  const std::shared_ptr<const Opened> opened = opening_ == nullptr ? nullptr : opening_->result();
  if (opened == nullptr || !opened->problem.empty()) return;
  end_opening();
  if (session_.pieces.feed == nullptr) return open_database(*opened);
  session_.pieces.ranks = opened->ranks;
  session_.timeline.choose(0);  // operations have other numbers in the new file
}

void Shell::end_opening() {
  if (opening_ == nullptr) return;
  closing_.push_back(
      std::async(std::launch::async, [gone = std::move(opening_)]() mutable { gone.reset(); }));
}

void Shell::close_run() {
  spans_at_opening_.reset();
  end_opening();
  std::unique_ptr<RunFeed> feed = std::move(session_.pieces.feed);
  std::unique_ptr<Advisor> advisor = std::move(session_.turning.advisor);
  std::shared_ptr<const MergedRanks> ranks = std::move(session_.pieces.ranks);
  session_.close();
  problem_notice_.follow_log({});
  if (feed == nullptr) return;
  std::erase_if(closing_, [](const std::future<void>& done) {
    return done.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  });
  closing_.push_back(std::async(
      std::launch::async,
      [gone = std::move(feed), last = std::move(advisor), merged = std::move(ranks)]() mutable {
        last.reset();
        gone.reset();
        merged.reset();  // which removes their file
      }));
}

std::string Shell::window_title() const {
  if (session_.pieces.feed == nullptr) return "Sluice";
  const std::string file = file_name(session_.pieces.place());
  if (!session_.pieces.has_facts()) return file + " - Sluice";
  const RunFacts& facts = session_.pieces.facts();
  return fmt::format("{}{} - {}{} - Sluice", facts.name(),
                     session_.pieces.run->is_live ? " (live)" : "", file,
                     facts.stand_ins.empty() ? "" : " - " + facts.stand_ins);
}

std::vector<std::string> Shell::awaited() const {
  if (opening_ != nullptr) {
    const bool is_refused = opening_->result() != nullptr && !opening_->result()->problem.empty();
    return is_refused ? std::vector<std::string>() : std::vector<std::string>{"the run"};
  }
  if (session_.pieces.feed == nullptr) {
    return start_page_.is_settled() ? std::vector<std::string>()
                                    : std::vector<std::string>{"the list of runs"};
  }
  if (session_.pieces.run == nullptr) return {"the run"};
  if (!session_.pieces.run->problem.empty()) return {};
  std::vector<std::string> awaited;
  if (!session_.foreground.is_empty()) awaited.emplace_back("a view");
  await_pieces(awaited);
  const Advisor& advisor = *session_.turning.advisor;
  if (advisor.is_working(Question::knobs)) awaited.emplace_back("knobs");
  if (advisor.is_working(Question::suggest)) awaited.emplace_back(kPredictions);
  return awaited;
}

// What is read of the run.
void Shell::await_pieces(std::vector<std::string>& awaited) const {
  // A live run is ahead of what is read of it; what it had when it was opened counts.
  const bool is_live = session_.pieces.run->is_live;
  const std::int64_t span_count =
      is_live ? spans_at_opening_.value_or(0) : session_.pieces.run->span_count;
  const bool has_statistics =
      session_.pieces.statistics != nullptr && session_.pieces.statistics->seen_count >= span_count;
  const bool has_timeline = session_.pieces.run->span_count == 0 ||
                            session_.timeline.has_picture() ||
                            (is_live && session_.pieces.timeline != nullptr);
  const StepPaths* paths = session_.pieces.paths.get();
  const bool has_paths = !has_timeline || session_.pieces.timeline == nullptr || is_live ||
                         session_.pieces.steps().empty() ||
                         (paths != nullptr && paths->is_complete);
  if (!has_statistics) awaited.emplace_back("statistics");
  if (!has_timeline) awaited.emplace_back("the timeline");
  if (!has_paths) awaited.emplace_back("critical paths");
  if (session_.pieces.verdict == nullptr) awaited.emplace_back("the verdict");
  if (session_.pieces.minimap == nullptr) awaited.emplace_back("the strip of all steps");
}

void Shell::draw(const FrameCost& cost) {
  take_opened();
  session_.pick_up();
  if (session_.pieces.run != nullptr && !spans_at_opening_)
    spans_at_opening_ = session_.pieces.run->span_count;
  if (gives_way_ && session_.pieces.was_live()) spare_time_.give_way();
  if (session_.pieces.verdict != nullptr)
    session_.turning.ask_for_advice(*session_.pieces.verdict, ImGui::GetTime());
  run_pressed(commands_);
  if (top_bar_.draw(session_.pieces, opening_.get(), commands_, cost)) read_ranks_again();
  if (session_.pieces.feed != nullptr) {
    draw_run();
  } else if (opening_ == nullptr) {
    draw_start_page();
  }
  draw_opening();
  begin_new_run();
  if (const std::string path = open_box_.draw(); !path.empty()) open_run(path);
  export_panel_.draw();
  palette_.draw(commands_);
  draw_shortcut_sheet(commands_, &shows_shortcuts_);
  had_popup_ = ImGui::IsPopupOpen("", ImGuiPopupFlags_AnyPopupId | ImGuiPopupFlags_AnyPopupLevel);
}

void Shell::begin_new_run() {
  Turning& turning = session_.turning;
  if (session_.pieces.has_facts() && turning.take_new_run()) {
    turning.new_run_problem.clear();
    const LikeRun like = session_.pieces.like_run(turning.pending.settings());
    new_run_.begin([program = program_, like] {
      return start_like(program.empty() ? find_sluice() : program, like);
    });
  }
  const std::optional<Result<StartedRun>> started = new_run_.take();
  if (!started) return;
  if (!started->ok()) {
    turning.new_run_problem = started->error().message();
    return;
  }
  const StartedRun run = **started;
  open_run(run.database);
  problem_notice_.follow_log(run.log);
}

void Shell::draw_start_page() {
  const StartChoice choice = start_page_.draw();
  if (choice.opens_box) open_box_.open();
  if (choice.database.empty()) return;
  open_run(choice.database);
  problem_notice_.follow_log(choice.log);
}

// Ranks that are read again leave the picture before as it is, and the top bar says how far it is.
void Shell::draw_opening() {
  if (opening_ == nullptr) return;
  const bool has_picture = session_.pieces.feed != nullptr;
  const std::shared_ptr<const Opened> opened = opening_->result();
  if (has_picture && (opened == nullptr || opened->problem.empty())) return;
  const OpeningChoice choice = draw_opening_notice(*opening_, has_picture);
  if (choice == OpeningChoice::none) return;
  end_opening();
  if (choice == OpeningChoice::open_another) open_box_.open();
}

void Shell::draw_run() {
  const NoticeChoice choice = problem_notice_.draw(session_.pieces);
  if (choice == NoticeChoice::open_another) open_box_.open();
  if (choice == NoticeChoice::close_run) close_run();
  if (session_.pieces.has_facts()) docks_.draw(views_, session_.foreground, *settings_);
}

}  // namespace sluice::gui
