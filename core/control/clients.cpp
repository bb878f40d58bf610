#include "core/control/clients.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/control/messages.h"

namespace sluice::control {
namespace {

constexpr std::size_t kUnreadBytesMax = 1 << 20;
// Requests of one client that are answered before the others have their turn.
constexpr int kRequestsATurn = 64;
constexpr std::size_t kReadBytes = 16 << 10;
// How long clients have to read the goodbye.
constexpr int kGoodbyeMs = 200;

// Somebody of the same user, or root.
Status check_peer(int fd) {
  ucred peer{};
  socklen_t size_bytes = sizeof peer;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size_bytes) != 0) {
    return make_error(ErrorCode::io, "the client's user is not known: {}", strerror(errno));
  }
  if (peer.uid == geteuid() || peer.uid == 0) return ok_status();
  return make_error(ErrorCode::config,
                    "this run belongs to user {}; user {} may not change or watch it", geteuid(),
                    peer.uid);
}

std::string too_long(std::int64_t id) {
  return error_line(id,
                    make_error(ErrorCode::config, "a request has at most {} bytes", kLineBytesMax));
}

// Who asked waits for an answer with its id.
std::string too_long(std::string_view line) {
  std::int64_t id = 0;
  static_cast<void>(parse_request(line, id).ok());
  return too_long(id);
}

Descriptor spare_descriptor() { return Descriptor(open("/dev/null", O_RDONLY | O_CLOEXEC)); }

}  // namespace

Clients::Clients(Descriptor listener, Descriptor wake, std::string greeting_line)
    : listener_(std::move(listener)),
      wake_(std::move(wake)),
      spare_(spare_descriptor()),
      greeting_line_(std::move(greeting_line)) {}

void Clients::wake() const {
  const std::uint64_t one = 1;
  // Full means that it will wake anyway.
  if (::write(wake_.get(), &one, sizeof one) < 0) return;
}

void Clients::wait(const AnswerLine& answer) {
  std::vector<pollfd> polled = {{listener_.get(), POLLIN, 0}, {wake_.get(), POLLIN, 0}};
  bool has_lines = false;
  for (const Client& client : clients_) {
    // Whoever does not read his answers is not read either.
    const bool is_read = !client.is_over && client.out.size() < kUnreadBytesMax;
    has_lines = has_lines || (is_read && client.in.find('\n') != std::string::npos);
    polled.push_back(
        {client.fd.get(),
         static_cast<short>((is_read ? POLLIN : 0) | (client.out.empty() ? 0 : POLLOUT)), 0});
  }
  if (poll(polled.data(), polled.size(), has_lines ? 0 : -1) < 0) return;
  if (polled[1].revents != 0) {
    std::uint64_t count = 0;
    if (::read(wake_.get(), &count, sizeof count) < 0) count = 0;
  }
  std::size_t i = 2;
  for (Client& client : clients_) {
    const short events = polled[i++].revents;
    if ((events & (POLLHUP | POLLERR | POLLNVAL)) != 0 && (events & POLLIN) == 0) {
      client.is_over = true;
      continue;
    }
    if ((events & POLLIN) != 0) read(client);
    answer_lines(client, answer);
    write(client);
  }
  if ((polled[0].revents & POLLIN) != 0) accept_all();
}

void Clients::accept_all() {
  for (;;) {
    Descriptor fd(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!fd.is_open() && (errno == EMFILE || errno == ENFILE)) {
      turn_away();
      return;
    }
    if (!fd.is_open()) return;
    Client client;
    client.fd = std::move(fd);
    if (const Status peer = check_peer(client.fd.get()); !peer.ok()) {
      client.out = error_line(0, peer.error());
      client.is_over = true;
    } else if (clients_.size() >= kClientsMax) {
      client.out = error_line(
          0, make_error(ErrorCode::busy, "{} clients are connected already", kClientsMax));
      client.is_over = true;
    } else {
      client.out = greeting_line_;
    }
    write(client);
    if (!client.is_over) clients_.push_back(std::move(client));
  }
}

// Without a descriptor for it, a client would wait at the listener, which would wake this thread
// again and again. The spare one is closed for as long as it takes to tell the client.
void Clients::turn_away() {
  spare_.reset();
  {
    const Descriptor fd(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    const std::string line = error_line(
        0, make_error(ErrorCode::busy, "the run has as many files open as it may (ulimit -n)"));
    // Whoever cannot be told sees the end of the connection.
    if (fd.is_open()) (void)!send(fd.get(), line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  spare_ = spare_descriptor();
}

void Clients::read(Client& client) {
  std::array<char, kReadBytes> bytes;
  const ssize_t count = ::read(client.fd.get(), bytes.data(), bytes.size());
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count <= 0) {
    client.is_over = true;
    return;
  }
  client.in.append(bytes.data(), static_cast<std::size_t>(count));
}

void Clients::answer_lines(Client& client, const AnswerLine& answer) {
  std::size_t from = 0;
  for (int turn = 0; turn < kRequestsATurn && !client.is_over; ++turn) {
    if (client.out.size() >= kUnreadBytesMax) break;
    const std::size_t end = client.in.find('\n', from);
    if (end == std::string::npos) break;
    const std::string_view line = std::string_view(client.in).substr(from, end - from);
    from = end + 1;
    if (line.size() > kLineBytesMax) {
      client.out += too_long(line);
      continue;
    }
    const Answer answered = answer(line);
    client.out += answered.line;
    client.subscribes = client.subscribes || answered.subscribes;
  }
  client.in.erase(0, from);
  // Without its end it cannot be told what of the bytes that follow belongs to it.
  if (client.in.size() > kLineBytesMax && client.in.find('\n') == std::string::npos) {
    client.out += too_long(0);
    client.is_over = true;
    client.in.clear();
  }
}

void Clients::write(Client& client) {
  while (!client.out.empty()) {
    const ssize_t count = send(client.fd.get(), client.out.data(), client.out.size(), MSG_NOSIGNAL);
    if (count < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN) return;
      client.is_over = true;
      return;
    }
    client.out.erase(0, static_cast<std::size_t>(count));
  }
}

void Clients::spread(const std::vector<std::string>& events) {
  if (events.empty()) return;
  for (Client& client : clients_) {
    if (!client.subscribes || client.is_over) continue;
    for (const std::string& event : events) client.out += event;
    write(client);
    client.is_over = client.is_over || client.out.size() > kUnreadBytesMax;
  }
}

void Clients::forget_gone() {
  clients_.remove_if([](const Client& client) { return client.is_over; });
}

bool Clients::has_subscribers() const { return std::ranges::any_of(clients_, &Client::subscribes); }

void Clients::say_goodbye(const std::string& line) {
  std::vector<pollfd> unread;
  for (Client& client : clients_) {
    if (client.is_over) continue;
    client.out += line;
    write(client);
    if (!client.out.empty()) unread.push_back({client.fd.get(), POLLOUT, 0});
  }
  if (!unread.empty() && poll(unread.data(), unread.size(), kGoodbyeMs) > 0) {
    for (Client& client : clients_) write(client);
  }
  clients_.clear();
}

}  // namespace sluice::control
