#include "profiler/watch/http_responder.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::watch {
namespace {

using Clock = std::chrono::steady_clock;

class OwnedDescriptor {
 public:
  explicit OwnedDescriptor(int descriptor) : descriptor_(descriptor) {}
  OwnedDescriptor(OwnedDescriptor&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)) {}
  OwnedDescriptor& operator=(OwnedDescriptor&&) = delete;
  ~OwnedDescriptor() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

struct Client {
  OwnedDescriptor socket;
  Clock::time_point until;
  std::string request = {};
  std::string answer = {};  // empty: the request is not whole
  std::size_t sent = 0;
  bool is_over = false;
};

std::string answer_of(std::string_view status, std::string_view body, std::string_view more = "",
                      std::string_view type = "text/plain; charset=utf-8") {
  return fmt::format(
      "HTTP/1.0 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n{}\r\n{}",
      status, type, body.size(), more, body);
}

// The first line decides: "GET /metrics HTTP/1.1".
std::string answer_to(std::string_view request, const std::function<Result<std::string>()>& page) {
  const std::string_view line = request.substr(0, request.find_first_of("\r\n"));
  const std::size_t first = line.find(' ');
  const std::size_t second = first == line.npos ? line.npos : line.find(' ', first + 1);
  if (second == line.npos || !line.substr(second + 1).starts_with("HTTP/"))
    return answer_of("400 Bad Request", "this is no HTTP request\n");
  if (line.substr(0, first) != "GET")
    return answer_of("405 Method Not Allowed", "only GET\n", "Allow: GET\r\n");
  const std::string_view target = line.substr(first + 1, second - first - 1);
  if (target.substr(0, target.find('?')) != "/metrics")
    return answer_of("404 Not Found", "there is /metrics and nothing else\n");
  const Result<std::string> text = page();
  if (!text.ok()) return answer_of("503 Service Unavailable", text.error().message() + "\n");
  return answer_of("200 OK", *text, "", "text/plain; version=0.0.4; charset=utf-8");
}

bool is_whole(std::string_view request) {
  return request.find("\r\n\r\n") != request.npos || request.find("\n\n") != request.npos;
}

class Responder final : public HttpResponder {
 public:
  Responder(OwnedDescriptor listener, OwnedDescriptor stop, int port, HttpOptions options)
      : listener_(std::move(listener)), stop_(std::move(stop)), port_(port), options_(options) {}

  int port() const override { return port_; }

  void stop() override {
    // An eventfd takes 2^64 - 2 of these.
    [[maybe_unused]] const int failed = ::eventfd_write(stop_.get(), 1);
  }

  void serve(const std::function<Result<std::string>()>& page) override {
    while (true) {
      std::vector<pollfd> asked = {{stop_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
      for (const Client& client : clients_) {
        const short events = client.answer.empty() ? POLLIN : POLLOUT;
        asked.push_back({client.socket.get(), events, 0});
      }
      if (::poll(asked.data(), asked.size(), wait_ms()) < 0) continue;  // a signal
      if (asked[0].revents != 0) return;
      std::size_t at = 2;
      for (Client& client : clients_) {
        if (asked[at++].revents != 0) go_on(client, page);
      }
      if (asked[1].revents != 0) take_clients();
      const Clock::time_point now = Clock::now();
      std::erase_if(clients_, [now](const Client& of) { return of.is_over || now >= of.until; });
    }
  }

 private:
  // Until the first client's patience ends; without any, for ever.
  int wait_ms() const {
    if (clients_.empty()) return -1;
    const Clock::time_point first = clients_.front().until;  // all have the same patience
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(first - Clock::now());
    return static_cast<int>(std::max<std::int64_t>(0, left.count()));
  }

  // One too many takes the place of the one that has been there longest: clients that say nothing
  // keep nobody out.
  void take_clients() {
    while (true) {
      const int socket = ::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (socket < 0) return;
      if (std::ssize(clients_) >= options_.clients_max) clients_.pop_front();
      clients_.push_back({OwnedDescriptor(socket), Clock::now() + options_.patience});
    }
  }

  void go_on(Client& client, const std::function<Result<std::string>()>& page) const {
    if (client.answer.empty()) receive(client, page);
    if (!client.answer.empty()) send(client);
  }

  void receive(Client& client, const std::function<Result<std::string>()>& page) const {
    char bytes[1024];
    const ssize_t count = ::recv(client.socket.get(), bytes, sizeof bytes, 0);
    if (count <= 0) {
      client.is_over = count == 0 || (errno != EAGAIN && errno != EINTR);
      return;
    }
    client.request.append(bytes, static_cast<std::size_t>(count));
    if (is_whole(client.request)) {
      client.answer = answer_to(client.request, page);
    } else if (client.request.size() > options_.request_bytes_max) {
      client.answer = answer_of("431 Request Header Fields Too Large", "the request is too long\n");
    }
  }

  static void send(Client& client) {
    const std::string_view rest = std::string_view(client.answer).substr(client.sent);
    const ssize_t count = ::send(client.socket.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
    if (count < 0) {
      client.is_over = errno != EAGAIN && errno != EINTR;
      return;
    }
    client.sent += static_cast<std::size_t>(count);
    client.is_over = client.sent == client.answer.size();
  }

  OwnedDescriptor listener_;
  OwnedDescriptor stop_;
  int port_;
  HttpOptions options_;
  std::list<Client> clients_;
};

Error port_error(int port, std::string_view doing) {
  const int error = errno;
  if (error == EADDRINUSE) {
    return make_error(ErrorCode::config,
                      "--metrics {}: another program listens on that port; name another one, or 0 "
                      "for any",
                      port);
  }
  return make_error(ErrorCode::config, "--metrics {}: {}: {}; name another port, or 0 for any",
                    port, doing, std::strerror(error));
}

}  // namespace

Result<std::unique_ptr<HttpResponder>> HttpResponder::listen(int port, HttpOptions options) {
  OwnedDescriptor listener(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  OwnedDescriptor stop(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (listener.get() < 0 || stop.get() < 0) return port_error(port, "no socket can be made");
  const int yes = 1;  // a port whose last connections have ended just now is free
  (void)::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      ::listen(listener.get(), SOMAXCONN) != 0 ||
      ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return port_error(port, "cannot listen on 127.0.0.1");
  }
  return std::unique_ptr<HttpResponder>(std::make_unique<Responder>(
      std::move(listener), std::move(stop), ntohs(address.sin_port), options));
}

}  // namespace sluice::watch
