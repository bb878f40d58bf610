#include "profiler/relay/relay.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>

#include "profiler/relay/turns.h"
#include "storage/rundb/reader.h"
#include "storage/rundb/record_tail.h"
#include "storage/rundb/recording_now.h"

namespace sluice::relay {
namespace {

using Clock = std::chrono::steady_clock;

// Which file it is: a new run may take the place of the one that was opened.
struct FileIdentity {
  dev_t device = 0;
  ino_t inode = 0;
  bool operator==(const FileIdentity&) const = default;
};
FileIdentity identity_of(const std::string& path) {
  struct stat file;
  if (::stat(path.c_str(), &file) != 0) return {};
  return {file.st_dev, file.st_ino};
}

class Relay {
 public:
  Relay(std::string database, int in, int out, RelayOptions options)
      : database_(std::move(database)), in_(in), out_(out), options_(options) {}

  Status run() {
    if (!send(stream_header())) return ok_status();
    const Status status = follow();
    // A cursor that is no such thing is told, too: somebody has written it.
    if (!status.ok()) {
      std::string bytes;
      put_failure(status.error(), frames_, bytes);
      (void)send(bytes);
    }
    return status;
  }

 private:
  Status follow() {
    RETURN_IF_ERROR(take_cursor());
    if (is_over_) return ok_status();
    RETURN_IF_ERROR(open());
    while (!is_over_) {
      RETURN_IF_ERROR(reopen_if_replaced());
      // In this order: what a run has written before it ended is in its last turn.
      const bool is_live = rundb::is_being_recorded(database_);
      ASSIGN_OR_RETURN(rundb::CopyTurn turn, tail_->next(cursor_));
      cursor_ = turn.cursor;
      const bool has_more = turn.has_more;
      if (!turn.is_empty() || is_live != was_live_ || Clock::now() >= next_sign_)
        RETURN_IF_ERROR(send_turn({.turn = std::move(turn), .is_live = is_live}));
      if (!has_more) wait();
    }
    return ok_status();
  }

  Status open() {
    file_ = identity_of(database_);
    tail_.reset();
    ASSIGN_OR_RETURN(reader_, rundb::Reader::open(database_));
    tail_.emplace(*reader_);
    return ok_status();
  }

  // While another file is being made, the one that is open goes on.
  Status reopen_if_replaced() {
    const FileIdentity now = identity_of(database_);
    if (now == file_ || now == FileIdentity()) return ok_status();
    Result<std::unique_ptr<rundb::Reader>> reader = rundb::Reader::open(database_);
    if (!reader.ok()) return ok_status();
    file_ = now;
    tail_.reset();
    reader_ = *std::move(reader);
    tail_.emplace(*reader_);
    return ok_status();
  }

  // The one frame that comes in.
  Status take_cursor() {
    FrameReader frames;
    while (!is_over_) {
      ASSIGN_OR_RETURN(const std::optional<Frame> frame, frames.next());
      if (frame) {
        ASSIGN_OR_RETURN(cursor_, cursor_in(*frame));
        return ok_status();
      }
      std::array<char, 4096> bytes;
      const ssize_t count = ::read(in_, bytes.data(), bytes.size());
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) is_over_ = true;
      if (count > 0) frames.add(std::string_view(bytes.data(), static_cast<std::size_t>(count)));
    }
    return ok_status();
  }

  Status send_turn(SentTurn sent) {
    was_live_ = sent.is_live;
    next_sign_ = Clock::now() + options_.sign_of_life;
    std::string bytes;
    RETURN_IF_ERROR(put_turn(sent, frames_, bytes));
    if (!send(bytes)) is_over_ = true;
    return ok_status();
  }

  // False: nobody reads any more.
  bool send(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t count = ::write(out_, bytes.data(), bytes.size());
      if (count < 0 && errno != EINTR) return false;
      if (count > 0) bytes.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
  }

  // The pause, or the end of the other end.
  void wait() {
    pollfd polled = {in_, POLLIN, 0};
    if (::poll(&polled, 1, static_cast<int>(options_.pause.count())) <= 0) return;
    std::array<char, 4096> bytes;
    const ssize_t count = ::read(in_, bytes.data(), bytes.size());
    if (count == 0 || (count < 0 && errno != EINTR)) is_over_ = true;
  }

  const std::string database_;
  const int in_;
  const int out_;
  const RelayOptions options_;
  FrameWriter frames_;
  FileIdentity file_;
  std::unique_ptr<rundb::Reader> reader_;
  std::optional<rundb::RecordTail> tail_;
  rundb::CopyCursor cursor_;
  Clock::time_point next_sign_ = Clock::time_point::min();
  bool was_live_ = false;
  bool is_over_ = false;
};

}  // namespace

Status serve_relay(const std::string& database, int in, int out, RelayOptions options) {
  return Relay(database, in, out, options).run();
}

}  // namespace sluice::relay
