#pragma once
// A small HTTP/1.0 server for one page, on 127.0.0.1 alone: GET /metrics, and nothing else.
//
// Bounded: so many clients, so many bytes of a request, so long for all of it; whoever passes one
// of these is answered with the reason where that can help, and disconnected. It waits for no
// client, so that a slow one holds up nobody.
//
// Thread contract: serve() blocks its thread; stop() from any thread.

#include <chrono>
#include <functional>
#include <memory>

#include "base/status.h"

namespace sluice::watch {

struct HttpOptions {
  int clients_max = 16;
  std::size_t request_bytes_max = 4096;
  std::chrono::milliseconds patience{5000};  // from a client's connection to its last byte
};

class HttpResponder {
 public:
  // Port 0: any that is free. ErrorCode::config: the port is in use, or may not be taken.
  static Result<std::unique_ptr<HttpResponder>> listen(int port, HttpOptions options = {});
  virtual ~HttpResponder() = default;

  virtual int port() const = 0;
  // Until stop(). An error of `page` is answered with 503 and its message.
  virtual void serve(const std::function<Result<std::string>()>& page) = 0;
  virtual void stop() = 0;
};

}  // namespace sluice::watch
