#include "profiler/relay/follower.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "base/shell_quoted.h"
#include "profiler/relay/turns.h"
#include "storage/rundb/copy_writer.h"

namespace sluice::relay {
namespace {

constexpr std::chrono::milliseconds kPoll{100};  // how soon a stop is heard
constexpr int kNoProgram = 127;                  // of a shell, and of LineProcess
constexpr int kNotRunnable = 126;

class Following {
 public:
  explicit Following(const FollowOptions& options) : options_(options) {}

  Status run() {
    RETURN_IF_ERROR(open_copy());
    std::chrono::milliseconds pause = options_.first_pause;
    while (!is_over_ && !is_stopped()) {
      const std::int64_t turns_before = turns_;
      RETURN_IF_ERROR(connect());
      if (is_over_ || is_stopped()) break;
      if (turns_ > turns_before) pause = options_.first_pause;
      wait(pause);
      pause = std::min(pause * 2, options_.longest_pause);
    }
    return copy_ == nullptr ? ok_status() : copy_->close();
  }

 private:
  bool is_stopped() const { return options_.stops && options_.stops(); }

  // A copy that is there goes on; else the first turn makes one.
  Status open_copy() {
    std::error_code error;
    if (!std::filesystem::exists(options_.copy, error)) return ok_status();
    ASSIGN_OR_RETURN(copy_, rundb::CopyWriter::open(options_.copy, options_.size_bytes_max));
    state_.has_copy = copy_->cursor().run != 0;
    state_.spans = copy_->cursor().span_id;
    return ok_status();
  }

  // One connection, from its begin to its end.
  Status connect() {
    ASSIGN_OR_RETURN(LineProcess line, LineProcess::start(options_.command, options_.errors));
    const rundb::CopyCursor cursor = copy_ == nullptr ? rundb::CopyCursor() : copy_->cursor();
    std::string hello = stream_header();
    FrameWriter().put(FrameType::cursor, cursor_payload(cursor), hello);
    (void)line.send(hello);  // where nobody takes it, nothing comes
    frames_ = {};
    reader_ = {};
    note_heard();
    while (!is_over_ && !is_stopped()) {
      std::string bytes;
      const LineProcess::Heard heard = line.hear(kPoll, bytes);
      if (heard == LineProcess::Heard::end) return cut(line);
      if (heard == LineProcess::Heard::bytes) RETURN_IF_ERROR(take(bytes));
      options_.tell(state_);
    }
    return ok_status();
  }

  Status take(const std::string& bytes) {
    note_heard();
    frames_.add(bytes);
    while (!is_over_) {
      ASSIGN_OR_RETURN(std::optional<Frame> frame, frames_.next());
      if (!frame) return ok_status();
      ASSIGN_OR_RETURN(const std::optional<SentTurn> sent, reader_.take(*std::move(frame)));
      if (sent) RETURN_IF_ERROR(take_turn(*sent));
    }
    return ok_status();
  }

  Status take_turn(const SentTurn& sent) {
    const rundb::CopyTurn& turn = sent.turn;
    if (turn.begins_anew) RETURN_IF_ERROR(begin_anew(turn.cursor));
    if (copy_ == nullptr || copy_->cursor().run != (turn.begins_anew ? 0 : turn.cursor.run)) {
      return make_error(ErrorCode::corrupt,
                        "the other end goes on with another recording than the copy's");
    }
    if (!turn.pieces.empty() || turn.cursor != copy_->cursor())
      RETURN_IF_ERROR(copy_->write(turn.pieces, turn.cursor));
    turns_ += 1;
    state_.line = LineState::following;
    state_.why.clear();
    state_.has_copy = true;
    state_.is_live = sent.is_live;
    state_.spans = turn.cursor.span_id;
    state_.spans_left = turn.spans_left;
    is_over_ = options_.ends_with_run && !sent.is_live && !turn.has_more;
    return ok_status();
  }

  // A resume took steps back, or a new recording has the old one's place. A copy from an earlier
  // time is not thrown away for another recording.
  Status begin_anew(const rundb::CopyCursor& next) {
    const bool is_of_another =
        copy_ != nullptr && copy_->cursor().run != 0 && copy_->cursor().run != next.run;
    if (is_of_another && turns_ == 0 && !options_.replaces_others) {
      return make_error(ErrorCode::config,
                        "{}: is a copy of another recording; name another file, or replace it with "
                        "--force",
                        options_.copy);
    }
    if (copy_ != nullptr) RETURN_IF_ERROR(copy_->close());
    copy_.reset();
    ASSIGN_OR_RETURN(copy_, rundb::CopyWriter::create(options_.copy, options_.size_bytes_max));
    return ok_status();
  }

  // An error where trying again would not help.
  Status cut(LineProcess& line) {
    const int code = line.finish();
    const std::string said = line.last_words();
    std::string why = fmt::format("{} ended with {}", shell_quoted(options_.command.front()), code);
    if (!said.empty()) why = said;
    if (code == kNoProgram || code == kNotRunnable) {
      return make_error(ErrorCode::config,
                        "{}: there is no such program here, or no sluice at the other end; say "
                        "where it is with --far-program",
                        why);
    }
    // A relay that refuses a run says so in its stream: what ends before is the line.
    if (turns_ == 0 && !frames_.has_begun())
      return make_error(ErrorCode::config, "{}, and no run has come from there", why);
    state_.line = LineState::cut;
    state_.why = why;
    options_.tell(state_);
    return ok_status();
  }

  void note_heard() { state_.heard_at = std::chrono::steady_clock::now(); }

  void wait(std::chrono::milliseconds pause) const {
    for (; pause.count() > 0 && !is_stopped(); pause -= kPoll)
      std::this_thread::sleep_for(std::min(pause, kPoll));
  }

  const FollowOptions& options_;
  std::unique_ptr<rundb::CopyWriter> copy_;  // null: there is none yet
  FrameReader frames_;
  TurnReader reader_;
  FollowState state_;
  std::int64_t turns_ = 0;
  bool is_over_ = false;
};

}  // namespace

Status follow_run(const FollowOptions& options) { return Following(options).run(); }

}  // namespace sluice::relay
