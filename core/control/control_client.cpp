#include "core/control/control_client.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include <array>
#include <deque>

#include "base/clock.h"
#include "core/control/socket_address.h"

namespace sluice::control {
namespace {

using std::chrono::milliseconds;

// An answer of `knobs` has some 20 KiB; what has this much and no newline is no run of ours.
constexpr std::size_t kAnswerBytesMax = 4 << 20;

class Deadline {
 public:
  explicit Deadline(milliseconds timeout)
      : end_ns_(monotonic_now_ns() + timeout.count() * 1'000'000) {}
  int left_ms() const {
    const TimeNs left_ns = end_ns_ - monotonic_now_ns();
    return left_ns <= 0 ? 0 : static_cast<int>((left_ns + 999'999) / 1'000'000);
  }

 private:
  TimeNs end_ns_;
};

Error gone() {
  return make_error(ErrorCode::cancelled, "the run has closed its control socket: it has ended");
}

class SocketClient final : public ControlClient {
 public:
  explicit SocketClient(Descriptor fd) : fd_(std::move(fd)) {}

  Status await_greeting(milliseconds timeout) {
    ASSIGN_OR_RETURN(std::optional<Message> message, next_message(Deadline(timeout)));
    if (!message) return make_error(ErrorCode::busy, "the run does not answer");
    if (message->error) return *message->error;
    if (!message->greeting) {
      return make_error(ErrorCode::corrupt, "what listens there is no run of Sluice");
    }
    if (message->greeting->version != kProtocolVersion) {
      return make_error(ErrorCode::unsupported,
                        "the run speaks version {} of the control protocol, this program {}",
                        message->greeting->version, kProtocolVersion);
    }
    greeting_ = *message->greeting;
    return ok_status();
  }

  const Greeting& greeting() const override { return greeting_; }
  int descriptor() const override { return fd_.get(); }

  Result<Message> ask(Request request, milliseconds timeout) override {
    const Deadline deadline(timeout);
    request.id = ++last_id_;
    RETURN_IF_ERROR(send_all(request_line(request), deadline));
    for (;;) {
      ASSIGN_OR_RETURN(std::optional<Message> message, next_message(deadline));
      if (!message) {
        return make_error(ErrorCode::busy, "the run did not answer within {} ms", timeout.count());
      }
      if (message->answer_to == request.id || message->answer_to == 0) {
        if (message->error) return *message->error;
        return *std::move(message);
      }
      if (!message->answer_to) events_.push_back(*std::move(message));
    }
  }

  Result<std::optional<Message>> next_event(milliseconds timeout) override {
    if (!events_.empty()) {
      std::optional<Message> event = std::move(events_.front());
      events_.pop_front();
      return event;
    }
    return next_message(Deadline(timeout));
  }

 private:
  Status send_all(std::string_view text, const Deadline& deadline) {
    while (!text.empty()) {
      const ssize_t count = send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (count >= 0) {
        text.remove_prefix(static_cast<std::size_t>(count));
        continue;
      }
      if (errno == EINTR) continue;
      if (errno != EAGAIN) return gone();
      pollfd polled{fd_.get(), POLLOUT, 0};
      if (poll(&polled, 1, deadline.left_ms()) == 0) {
        return make_error(ErrorCode::busy, "the run does not read its control socket");
      }
    }
    return ok_status();
  }

  Result<std::optional<Message>> next_message(const Deadline& deadline) {
    for (;;) {
      const std::size_t end = in_.find('\n');
      if (end != std::string::npos) {
        ASSIGN_OR_RETURN(Message message, parse_message(std::string_view(in_).substr(0, end)));
        in_.erase(0, end + 1);
        return std::optional<Message>(std::move(message));
      }
      pollfd polled{fd_.get(), POLLIN, 0};
      const int ready = poll(&polled, 1, deadline.left_ms());
      if (ready < 0 && errno == EINTR) continue;
      if (ready <= 0) return std::optional<Message>();
      RETURN_IF_ERROR(read_some());
    }
  }

  Status read_some() {
    std::array<char, 16 << 10> bytes;
    const ssize_t count = recv(fd_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return ok_status();
    if (count <= 0) return gone();
    in_.append(bytes.data(), static_cast<std::size_t>(count));
    if (in_.size() > kAnswerBytesMax) {
      return make_error(ErrorCode::corrupt, "what listens there is no run of Sluice");
    }
    return ok_status();
  }

  Descriptor fd_;
  Greeting greeting_;
  std::string in_;
  std::deque<Message> events_;
  std::int64_t last_id_ = 0;
};

}  // namespace

Result<std::unique_ptr<ControlClient>> ControlClient::connect(const std::string& socket_path,
                                                              milliseconds timeout) {
  ASSIGN_OR_RETURN(const SocketAddress address, socket_address(socket_path));
  Descriptor fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.is_open()) return make_error(ErrorCode::io, "socket: {}", strerror(errno));
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address.address),
                address.size_bytes) != 0) {
    if (errno == ENOENT || errno == ECONNREFUSED) {
      return make_error(ErrorCode::not_found,
                        "{}: no run listens there: it has ended, or its database lies elsewhere",
                        socket_path);
    }
    return make_error(ErrorCode::io, "{}: {}", socket_path, strerror(errno));
  }
  auto client = std::make_unique<SocketClient>(std::move(fd));
  if (const Status greeted = client->await_greeting(timeout); !greeted.ok()) {
    return greeted.error().with_context(socket_path);
  }
  return std::unique_ptr<ControlClient>(std::move(client));
}

}  // namespace sluice::control
