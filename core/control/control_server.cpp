#include "core/control/control_server.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <list>
#include <thread>

#include "base/mutex.h"
#include "core/control/effect_watch.h"
#include "core/control/socket_address.h"
#include "core/control/superseded.h"

namespace sluice::control {
namespace {

constexpr std::size_t kClientsMax = 256;
constexpr std::size_t kUnreadBytesMax = 1 << 20;
constexpr std::size_t kWaitingSnapshotsMax = 1024;
// Requests of one client that are answered before the others have their turn.
constexpr int kRequestsATurn = 64;
constexpr std::size_t kReadBytes = 16 << 10;
// How long clients have to read the goodbye.
constexpr int kGoodbyeMs = 200;

Error system_error(const std::string& what) {
  return make_error(ErrorCode::io, "{}: {}", what, strerror(errno));
}

// Somebody of the same user, or root.
Status check_peer(int fd) {
  ucred peer{};
  socklen_t size_bytes = sizeof peer;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size_bytes) != 0) {
    return system_error("the client's user is not known");
  }
  if (peer.uid == geteuid() || peer.uid == 0) return ok_status();
  return make_error(ErrorCode::config,
                    "this run belongs to user {}; user {} may not change or watch it", geteuid(),
                    peer.uid);
}

struct Client {
  Descriptor fd;
  std::string in;   // what no newline has ended yet
  std::string out;  // what the client has not read yet
  bool subscribes = false;
  bool is_over = false;  // let go at the end of the turn; what could be written has been
};

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

class Server final : public ControlServer {
 public:
  Server(std::string path, Descriptor listener, Descriptor wake, Greeting greeting, RunSeam seam)
      : path_(std::move(path)),
        listener_(std::move(listener)),
        wake_(std::move(wake)),
        greeting_(std::move(greeting)),
        seam_(std::move(seam)) {
    struct stat own{};
    if (stat(path_.c_str(), &own) == 0) inode_ = own.st_ino;
    thread_ = std::thread([this] { serve(); });
  }
  ~Server() override { close(""); }

  Due take_due() override;
  bool stop_is_asked() const override { return stop_is_asked_; }
  void tell(const RunStatus& status) override;
  void tell(const ChangeEvent& event) override { tell(change_event_line(event)); }
  void tell(const SnapshotEvent& event) override { tell(snapshot_event_line(event)); }
  void close(const std::string& reason) override;

 private:
  void tell(std::string event);
  void wake() const;
  void serve();
  void poll_once(int timeout_ms);
  void accept_clients();
  void turn_away();
  void read(Client& client);
  void answer_lines(Client& client);
  std::string answer(Client& client, std::string_view line);
  std::string answer_set(const Request& request);
  std::string answer_snapshot(const Request& request);
  std::string answer_stop(const Request& request);
  void supersede(const SetRequest& later) REQUIRES(mutex_);
  void put(Client& client, std::string_view text);
  static void write(Client& client);
  void spread_events();
  void tell_whether_watched();
  void say_goodbye();

  const std::string path_;
  ino_t inode_ = 0;
  Descriptor listener_;
  Descriptor wake_;
  const Greeting greeting_;
  const RunSeam seam_;
  std::list<Client> clients_;  // the server's thread only, as the next one
  bool is_watched_ = false;
  Descriptor spare_ = spare_descriptor();  // the same
  std::thread thread_;

  Mutex mutex_;
  Due due_ GUARDED_BY(mutex_);
  RunStatus status_ GUARDED_BY(mutex_);
  std::vector<std::string> events_ GUARDED_BY(mutex_);
  std::int64_t next_change_ GUARDED_BY(mutex_) = 1;
  bool is_closing_ GUARDED_BY(mutex_) = false;
  std::atomic<bool> stop_is_asked_{false};
  std::string goodbye_ GUARDED_BY(mutex_);
};

Due Server::take_due() {
  MutexLock lock(mutex_);
  Due due;
  std::swap(due, due_);
  return due;
}

void Server::tell(const RunStatus& status) {
  {
    MutexLock lock(mutex_);
    status_ = status;
  }
  tell(step_event_line(status));
}

void Server::tell(std::string event) {
  {
    MutexLock lock(mutex_);
    events_.push_back(std::move(event));
  }
  wake();
}

void Server::wake() const {
  const std::uint64_t one = 1;
  // Full means that it will wake anyway.
  if (::write(wake_.get(), &one, sizeof one) < 0) return;
}

void Server::close(const std::string& reason) {
  {
    MutexLock lock(mutex_);
    if (is_closing_) return;
    is_closing_ = true;
    goodbye_ = reason;
    for (const QueuedSet& queued : due_.sets) {
      ChangeEvent event;
      event.change = queued.change;
      event.state = ChangeState::refused;
      event.settings = queued.set.settings;
      event.who = queued.set.who;
      event.message = kEndedBeforeNextStep;
      events_.push_back(change_event_line(event));
    }
    for (const std::int64_t snapshot : due_.snapshots) {
      SnapshotEvent event;
      event.snapshot = snapshot;
      event.message = kEndedBeforeSnapshot;
      events_.push_back(snapshot_event_line(event));
    }
    due_ = {};
  }
  wake();
  thread_.join();
  // Ours, if nobody has put another one there.
  struct stat there{};
  if (lstat(path_.c_str(), &there) == 0 && there.st_ino == inode_) unlink(path_.c_str());
}

void Server::serve() {
  for (;;) {
    poll_once(-1);
    bool is_closing = false;
    {
      MutexLock lock(mutex_);
      is_closing = is_closing_;
    }
    spread_events();
    clients_.remove_if([](const Client& client) { return client.is_over; });
    tell_whether_watched();
    if (is_closing) break;
  }
  say_goodbye();
}

void Server::tell_whether_watched() {
  const bool is_watched = std::ranges::any_of(clients_, &Client::subscribes);
  if (is_watched == is_watched_) return;
  is_watched_ = is_watched;
  if (seam_.watched) seam_.watched(is_watched);
}

void Server::poll_once(int timeout_ms) {
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
  if (poll(polled.data(), polled.size(), has_lines ? 0 : timeout_ms) < 0) return;
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
    answer_lines(client);
    write(client);
  }
  if ((polled[0].revents & POLLIN) != 0) accept_clients();
}

void Server::accept_clients() {
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
      client.out = greeting_line(greeting_);
    }
    write(client);
    if (!client.is_over) clients_.push_back(std::move(client));
  }
}

// Without a descriptor for it, a client would wait at the listener, which would wake this thread
// again and again. The spare one is closed for as long as it takes to tell the client.
void Server::turn_away() {
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

void Server::read(Client& client) {
  std::array<char, kReadBytes> bytes;
  const ssize_t count = ::read(client.fd.get(), bytes.data(), bytes.size());
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count <= 0) {
    client.is_over = true;
    return;
  }
  client.in.append(bytes.data(), static_cast<std::size_t>(count));
}

void Server::answer_lines(Client& client) {
  std::size_t from = 0;
  for (int turn = 0; turn < kRequestsATurn && !client.is_over; ++turn) {
    if (client.out.size() >= kUnreadBytesMax) break;
    const std::size_t end = client.in.find('\n', from);
    if (end == std::string::npos) break;
    const std::string_view line = std::string_view(client.in).substr(from, end - from);
    from = end + 1;
    put(client, line.size() <= kLineBytesMax ? answer(client, line) : too_long(line));
  }
  client.in.erase(0, from);
  // Without its end it cannot be told what of the bytes that follow belongs to it.
  if (client.in.size() > kLineBytesMax && client.in.find('\n') == std::string::npos) {
    put(client, too_long(0));
    client.is_over = true;
    client.in.clear();
  }
}

std::string Server::answer(Client& client, std::string_view line) {
  std::int64_t id = 0;
  const Result<Request> request = parse_request(line, id);
  if (!request.ok()) return error_line(id, request.error());
  switch (request->kind) {
    case RequestKind::status: {
      MutexLock lock(mutex_);
      return status_line(id, status_);
    }
    case RequestKind::knobs:
      return knobs_line(id, seam_.knobs());
    case RequestKind::subscribe:
      client.subscribes = true;
      return ok_line(id);
    case RequestKind::set:
      return answer_set(*request);
    case RequestKind::snapshot:
      return answer_snapshot(*request);
    case RequestKind::stop:
      return answer_stop(*request);
  }
  return error_line(id, make_error(ErrorCode::internal, "no such request"));
}

std::string Server::answer_set(const Request& request) {
  if (!request.set.revert_if.empty()) {
    const Result<RevertRule> rule = parse_revert_rule(request.set.revert_if);
    if (!rule.ok()) return error_line(request.id, rule.error().with_context("revert_if"));
  }
  std::vector<std::string> waiting;
  {
    MutexLock lock(mutex_);
    if (is_closing_) {
      return error_line(request.id, make_error(ErrorCode::cancelled, "the run is ending"));
    }
    for (const QueuedSet& queued : due_.sets) {
      for (const std::string& setting : queued.set.settings) waiting.push_back(setting);
    }
  }
  if (const Status checked = seam_.check(waiting, request.set.settings); !checked.ok()) {
    return error_line(request.id, checked.error());
  }
  MutexLock lock(mutex_);
  if (is_closing_) {  // while it was checked
    return error_line(request.id, make_error(ErrorCode::cancelled, "the run is ending"));
  }
  const std::int64_t change = next_change_++;
  supersede(request.set);
  due_.sets.push_back({change, request.set});
  return set_line(request.id, change, status_.step + 1);
}

// What waits keeps the knobs that `later` leaves alone.
void Server::supersede(const SetRequest& later) {
  std::vector<QueuedSet> left;
  for (QueuedSet& queued : due_.sets) {
    ChangeEvent event;
    event.settings = queued.set.settings;
    drop_superseded(queued.set.settings, later.settings);
    if (!queued.set.settings.empty()) {
      left.push_back(std::move(queued));
      continue;
    }
    event.change = queued.change;
    event.state = ChangeState::superseded;
    event.step = status_.step;
    event.who = queued.set.who;
    event.message = superseded_by(later.who);
    events_.push_back(change_event_line(event));
  }
  due_.sets = std::move(left);
}

std::string Server::answer_snapshot(const Request& request) {
  MutexLock lock(mutex_);
  if (is_closing_) {
    return error_line(request.id, make_error(ErrorCode::cancelled, "the run is ending"));
  }
  if (due_.snapshots.size() >= kWaitingSnapshotsMax) {
    return error_line(request.id, make_error(ErrorCode::busy, "{} snapshots wait for the next step",
                                             kWaitingSnapshotsMax));
  }
  due_.snapshots.push_back(next_change_);
  return snapshot_line(request.id, next_change_++);
}

std::string Server::answer_stop(const Request& request) {
  MutexLock lock(mutex_);
  if (is_closing_) {
    return error_line(request.id, make_error(ErrorCode::cancelled, "the run is ending"));
  }
  stop_is_asked_ = true;
  return ok_line(request.id);
}

void Server::put(Client& client, std::string_view text) { client.out += text; }

void Server::write(Client& client) {
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

// A subscriber that does not read is let go: events are not kept for it without end.
void Server::spread_events() {
  std::vector<std::string> events;
  {
    MutexLock lock(mutex_);
    events.swap(events_);
  }
  if (events.empty()) return;
  for (Client& client : clients_) {
    if (!client.subscribes || client.is_over) continue;
    for (const std::string& event : events) put(client, event);
    write(client);
    client.is_over = client.is_over || client.out.size() > kUnreadBytesMax;
  }
}

void Server::say_goodbye() {
  std::string line;
  {
    MutexLock lock(mutex_);
    line = end_event_line(goodbye_);
  }
  std::vector<pollfd> unread;
  for (Client& client : clients_) {
    if (client.is_over) continue;
    put(client, line);
    write(client);
    if (!client.out.empty()) unread.push_back({client.fd.get(), POLLOUT, 0});
  }
  if (!unread.empty() && poll(unread.data(), unread.size(), kGoodbyeMs) > 0) {
    for (Client& client : clients_) write(client);
  }
  clients_.clear();
}

// Only a socket of nobody's is removed.
Status clear_stale(const std::string& path, const SocketAddress& address) {
  struct stat there{};
  if (lstat(path.c_str(), &there) != 0) return ok_status();
  if (!S_ISSOCK(there.st_mode)) {
    return make_error(ErrorCode::config, "{} is no socket; remove it if nobody needs it", path);
  }
  const Descriptor probe(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (connect(probe.get(), reinterpret_cast<const sockaddr*>(&address.address),
              address.size_bytes) == 0 ||
      errno == EAGAIN) {
    return make_error(ErrorCode::busy, "another run is listening at {}", path);
  }
  if (errno != ECONNREFUSED) return system_error(path);
  if (unlink(path.c_str()) != 0) return system_error(path);
  return ok_status();
}

}  // namespace

Result<std::unique_ptr<ControlServer>> ControlServer::start(const std::string& socket_path,
                                                            const Greeting& greeting,
                                                            RunSeam seam) {
  ASSIGN_OR_RETURN(const SocketAddress address, socket_address(socket_path));
  RETURN_IF_ERROR(clear_stale(socket_path, address));
  Descriptor listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener.is_open()) return system_error("socket");
  // The mode of the file is that of the socket when it gets its name: never open to others.
  if (fchmod(listener.get(), S_IRUSR | S_IWUSR) != 0 ||
      bind(listener.get(), reinterpret_cast<const sockaddr*>(&address.address),
           address.size_bytes) != 0 ||
      listen(listener.get(), static_cast<int>(kClientsMax)) != 0) {
    return system_error(socket_path);
  }
  Descriptor wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.is_open()) return system_error("eventfd");
  return std::unique_ptr<ControlServer>(std::make_unique<Server>(
      socket_path, std::move(listener), std::move(wake), greeting, std::move(seam)));
}

std::string socket_path_of(const std::string& database) { return database + ".socket"; }

}  // namespace sluice::control
