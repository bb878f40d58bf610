#include "gui/data/followed_run.h"

#include <chrono>
#include <filesystem>
#include <utility>

#include "gui/data/run_path.h"

namespace sluice::gui {
namespace {

// A run that is recorded says something each second.
constexpr std::chrono::seconds kQuiet{2};

std::string followed_folder() {
  return (std::filesystem::path(report::merged_folder()).parent_path() / "followed").string();
}

std::chrono::seconds silence_of(const relay::FollowState& state) {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() -
                                                          state.heard_at);
}

std::string words_of(const FarLine& line) {
  const relay::FollowState& state = line.state;
  if (!line.problem.empty()) return "no longer followed: " + line.problem;
  if (line.is_over) return "";
  if (state.line == relay::LineState::connecting) return "connecting";
  if (state.line == relay::LineState::cut) return "cut, trying again";
  if (silence_of(state) >= kQuiet) return fmt::format("behind by {} s", silence_of(state).count());
  if (state.spans_left > 0)
    return fmt::format("{} % here", state.spans * 100 / (state.spans + state.spans_left));
  return "";
}

}  // namespace

Result<std::shared_ptr<const FollowedRun>> FollowedRun::begin(const std::string& name,
                                                              const FarChoice& choice,
                                                              std::function<void()> wake) {
  ASSIGN_OR_RETURN(relay::FarRun run, relay::parse_far_run(name));
  std::optional<report::MergedFile> file;
  if (choice.copy.empty()) {
    ASSIGN_OR_RETURN(report::MergedFile made, report::MergedFile::create(followed_folder()));
    file.emplace(std::move(made));
  }
  return std::shared_ptr<const FollowedRun>(
      new FollowedRun(std::move(run), std::move(file), choice, std::move(wake)));
}

FollowedRun::FollowedRun(relay::FarRun run, std::optional<report::MergedFile> file,
                         const FarChoice& choice, std::function<void()> wake)
    : run_(std::move(run)),
      file_(std::move(file)),
      place_(absolute_path(choice.copy.empty() ? file_name(run_.path) : choice.copy)),
      wake_(std::move(wake)) {
  options_.copy = file_ ? file_->path() : absolute_path(choice.copy);
  options_.command = relay::ssh_command(
      run_, {.program = choice.program, .control_socket = options_.copy + ".socket"});
  options_.errors = relay::ErrorOutput::kept;
  thread_ = std::jthread([this](const std::stop_token& stop) { follow(stop); });
}

FollowedRun::~FollowedRun() {
  thread_.request_stop();
  thread_.join();  // before the file goes
}

void FollowedRun::follow(const std::stop_token& stop) {
  FarLine line;
  std::string said;
  bool had_copy = false;
  options_.stops = [&stop] { return stop.stop_requested(); };
  options_.tell = [&](const relay::FollowState& state) {
    line.state = state;
    line_.publish(std::make_shared<const FarLine>(line));
    // A frame for what has changed, not for each turn: the copy's reader sees those by itself.
    std::string words = words_of(line);
    const bool is_news = words != said || state.has_copy != had_copy;
    said = std::move(words);
    had_copy = state.has_copy;
    if (is_news) wake_();
  };
  const Status status = relay::follow_run(options_);
  line.is_over = true;
  if (!status.ok()) line.problem = status.error().message();
  line_.publish(std::make_shared<const FarLine>(line));
  if (!stop.stop_requested()) wake_();
}

std::string FollowedRun::words() const {
  const std::shared_ptr<const FarLine> line = line_.latest();
  return line == nullptr ? "connecting" : words_of(*line);
}

}  // namespace sluice::gui
