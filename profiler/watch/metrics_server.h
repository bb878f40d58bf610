#pragma once
// A run's metrics at http://127.0.0.1:PORT/metrics, by a thread of its own that reads the run's
// database when it is asked, and never talks to the run.
//
// Thread contract: one thread. The destructor waits for an answer that is being made.

#include <memory>
#include <string>

#include "base/status.h"

namespace sluice::watch {

class MetricsServer {
 public:
  // Port 0: any. Errors: those of rundb::Reader and of HttpResponder::listen().
  static Result<std::unique_ptr<MetricsServer>> start(const std::string& database, int port);
  virtual ~MetricsServer() = default;

  virtual std::string address() const = 0;  // "http://127.0.0.1:9100/metrics"
};

}  // namespace sluice::watch
