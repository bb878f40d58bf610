#include "profiler/watch/http_responder.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <string>
#include <thread>

namespace sluice::watch {
namespace {

// A server of one line, on a thread.
struct Served {
  explicit Served(HttpOptions options = {})
      : responder(*HttpResponder::listen(0, options)),
        thread([this] { responder->serve([] { return Result<std::string>("figure 1\n"); }); }) {}
  ~Served() {
    responder->stop();
    thread.join();
  }
  int connect() const {
    const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(responder->port()));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    return socket;
  }

  std::unique_ptr<HttpResponder> responder;
  std::thread thread;
};

void send_all(int socket, const std::string& text) {
  (void)::send(socket, text.data(), text.size(), MSG_NOSIGNAL);
}
std::string all_of(int socket) {
  std::string text;
  char bytes[512];
  for (ssize_t n = 0; (n = ::recv(socket, bytes, sizeof bytes, 0)) > 0;)
    text.append(bytes, static_cast<std::size_t>(n));
  ::close(socket);
  return text;
}
std::string answer(const Served& served, const std::string& request) {
  const int socket = served.connect();
  send_all(socket, request);
  return all_of(socket);
}

}  // namespace

TEST_CASE("one page is served, and all else refused by its number") {
  const Served served;
  const std::string page = answer(served, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
  CHECK(page.starts_with("HTTP/1.0 200 OK\r\n"));
  CHECK(page.ends_with("\r\n\r\nfigure 1\n"));
  CHECK(page.find("Content-Length: 9\r\n") != std::string::npos);
  CHECK(answer(served, "GET / HTTP/1.0\r\n\r\n").starts_with("HTTP/1.0 404 "));
  CHECK(answer(served, "POST /metrics HTTP/1.0\r\n\r\n").starts_with("HTTP/1.0 405 "));
  CHECK(answer(served, "\x16\x03\x01 garbage\n\n").starts_with("HTTP/1.0 400 "));
  CHECK(answer(served, std::string(3, '\0') + "\r\n\r\n").starts_with("HTTP/1.0 400 "));
}

TEST_CASE("a request beyond the bound is refused") {
  const Served served({.request_bytes_max = 100});
  CHECK(answer(served, "GET /metrics HTTP/1.0\r\nX: " + std::string(200, 'x'))
            .starts_with("HTTP/1.0 431 "));
}

TEST_CASE("clients that say nothing hold up nobody, and are let go") {
  const Served served({.clients_max = 2, .patience = std::chrono::milliseconds(50)});
  const int first = served.connect();
  send_all(first, "GET /met");
  const int second = served.connect();
  const int third = served.connect();  // one too many: the first goes
  CHECK(answer(served, "GET /metrics HTTP/1.0\r\n\r\n").starts_with("HTTP/1.0 200 "));
  for (const int silent : {first, second, third}) CHECK(all_of(silent).empty());
}

TEST_CASE("a port that is in use is one sentence") {
  const Served served;
  const auto again = HttpResponder::listen(served.responder->port());
  REQUIRE(!again.ok());
  CHECK(again.error().message().find("another program listens") != std::string::npos);
}

}  // namespace sluice::watch
