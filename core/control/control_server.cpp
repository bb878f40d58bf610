#include "core/control/control_server.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "core/control/clients.h"
#include "core/control/effect_watch.h"
#include "core/control/socket_address.h"
#include "core/control/waiting_requests.h"

namespace sluice::control {
namespace {

Error system_error(const std::string& what) {
  return make_error(ErrorCode::io, "{}: {}", what, strerror(errno));
}

class Server final : public ControlServer {
 public:
  Server(std::string path, Clients clients, RunSeam seam)
      : path_(std::move(path)), seam_(std::move(seam)), clients_(std::move(clients)) {
    struct stat own{};
    if (stat(path_.c_str(), &own) == 0) inode_ = own.st_ino;
    thread_ = std::thread([this] { serve(); });
  }
  ~Server() override { close(""); }

  Due take_due() override { return waiting_.take_due(); }
  bool stop_is_asked() const override { return waiting_.stop_is_asked(); }
  void tell(const RunStatus& status) override;
  void tell(const ChangeEvent& event) override { tell(change_event_line(event)); }
  void tell(const SnapshotEvent& event) override { tell(snapshot_event_line(event)); }
  void close(const std::string& reason) override;

 private:
  void tell(std::string event);
  void serve();
  Clients::Answer answer(std::string_view line);
  std::string answer_set(const Request& request);
  void tell_of(const Request& accepted);
  void tell_whether_watched();

  const std::string path_;
  ino_t inode_ = 0;
  const RunSeam seam_;
  WaitingRequests waiting_;
  Clients clients_;  // the server's thread only, as the next one; but wake()
  bool is_watched_ = false;
  std::thread thread_;
};

void Server::tell(const RunStatus& status) {
  waiting_.note_status(status);
  tell(step_event_line(status));
}

void Server::tell(std::string event) {
  waiting_.add_event(std::move(event));
  clients_.wake();
}

void Server::close(const std::string& reason) {
  if (!waiting_.close(reason)) return;
  clients_.wake();
  thread_.join();
  // Ours, if nobody has put another one there.
  struct stat there{};
  if (lstat(path_.c_str(), &there) == 0 && there.st_ino == inode_) unlink(path_.c_str());
}

void Server::serve() {
  bool is_closed = false;
  while (!is_closed) {
    clients_.wait([this](std::string_view line) { return answer(line); });
    is_closed = waiting_.is_closed();  // before its events are taken: the last of them, too
    clients_.spread(waiting_.take_events());
    clients_.forget_gone();
    tell_whether_watched();
  }
  clients_.say_goodbye(end_event_line(waiting_.reason()));
}

void Server::tell_whether_watched() {
  const bool is_watched = clients_.has_subscribers();
  if (is_watched == is_watched_) return;
  is_watched_ = is_watched;
  if (seam_.watched) seam_.watched(is_watched);
}

void Server::tell_of(const Request& accepted) {
  if (seam_.asked) seam_.asked(accepted);
}

Clients::Answer Server::answer(std::string_view line) {
  std::int64_t id = 0;
  const Result<Request> request = parse_request(line, id);
  if (!request.ok()) return {error_line(id, request.error())};
  switch (request->kind) {
    case RequestKind::status:
      return {status_line(id, waiting_.status())};
    case RequestKind::knobs:
      return {knobs_line(id, seam_.knobs())};
    case RequestKind::subscribe:
      return {.line = ok_line(id), .subscribes = true};
    case RequestKind::set:
      return {answer_set(*request)};
    case RequestKind::snapshot: {
      const Result<std::int64_t> snapshot = waiting_.add_snapshot();
      if (snapshot.ok()) tell_of(*request);
      return {snapshot.ok() ? snapshot_line(id, *snapshot) : error_line(id, snapshot.error())};
    }
    case RequestKind::stop: {
      const Status asked = waiting_.ask_to_stop();
      if (asked.ok()) tell_of(*request);
      return {asked.ok() ? ok_line(id) : error_line(id, asked.error())};
    }
  }
  return {error_line(id, make_error(ErrorCode::internal, "no such request"))};
}

std::string Server::answer_set(const Request& request) {
  if (!request.set.revert_if.empty()) {
    const Result<RevertRule> rule = parse_revert_rule(request.set.revert_if);
    if (!rule.ok()) return error_line(request.id, rule.error().with_context("revert_if"));
  }
  const Result<std::vector<std::string>> before = waiting_.settings();
  if (!before.ok()) return error_line(request.id, before.error());
  if (const Status checked = seam_.check(*before, request.set.settings); !checked.ok()) {
    return error_line(request.id, checked.error());
  }
  // Refused where the run began to end while it was checked.
  const Result<WaitingRequests::Accepted> accepted = waiting_.add(request.set);
  if (!accepted.ok()) return error_line(request.id, accepted.error());
  return set_line(request.id, accepted->change, accepted->step);
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
      socket_path, Clients(std::move(listener), std::move(wake), greeting_line(greeting)),
      std::move(seam)));
}

std::string socket_path_of(const std::string& database) { return database + ".socket"; }

}  // namespace sluice::control
