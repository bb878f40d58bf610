#include "profiler/watch/metrics_server.h"

#include <thread>

#include "profiler/watch/http_responder.h"
#include "profiler/watch/metrics.h"

namespace sluice::watch {
namespace {

class Server final : public MetricsServer {
 public:
  Server(RunFollower run, std::unique_ptr<HttpResponder> responder)
      : run_(std::move(run)),
        responder_(std::move(responder)),
        thread_([this] { responder_->serve([this] { return metrics_.text(run_); }); }) {}
  ~Server() override {
    responder_->stop();
    thread_.join();
  }

  std::string address() const override {
    return fmt::format("http://127.0.0.1:{}/metrics", responder_->port());
  }

 private:
  RunFollower run_;  // the thread's, as the metrics
  Metrics metrics_;
  std::unique_ptr<HttpResponder> responder_;
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<MetricsServer>> MetricsServer::start(const std::string& database, int port) {
  ASSIGN_OR_RETURN(RunFollower run, RunFollower::open(database));
  ASSIGN_OR_RETURN(std::unique_ptr<HttpResponder> responder, HttpResponder::listen(port));
  return std::unique_ptr<MetricsServer>(
      std::make_unique<Server>(std::move(run), std::move(responder)));
}

}  // namespace sluice::watch
