#pragma once
// A control server without a run behind it, in a folder of its own.

#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "core/control/control_client.h"
#include "core/control/control_server.h"

namespace sluice::control {

class ServedRun {
 public:
  ServedRun() : ServedRun(made_folder(), "run.db.socket") {}
  // `folder` is removed at the end.
  ServedRun(const std::string& folder, const std::string& name)
      : path(folder + "/" + name), folder_(folder) {
    auto started = start_another();
    if (!started.ok()) throw std::runtime_error(started.error().message());
    server = *std::move(started);
  }
  ~ServedRun() {
    server.reset();
    std::filesystem::remove_all(folder_);
  }

  Result<std::unique_ptr<ControlServer>> start_another() {
    RunSeam seam;
    seam.knobs = [] {
      return std::vector<Knob>{
          {"buffers", "integer", 1.0, 64.0, {}, "1 to 64", "subgroups", "3", "Help.", "3"}};
    };
    seam.check = [this](const std::vector<std::string>& waiting,
                        const std::vector<std::string>& settings) -> Status {
      MutexLock lock(mutex_);
      waiting_ = waiting;
      if (settings.front() != "buffers=400") return ok_status();
      return make_error(ErrorCode::memory, "buffers=400 is refused");
    };
    seam.watched = [this](bool is_watched) {
      MutexLock lock(mutex_);
      watched_.push_back(is_watched);
    };
    seam.asked = [this](const Request& request) {
      MutexLock lock(mutex_);
      asked_.push_back(std::string(kind_name(request.kind)) + " by " + request.who);
    };
    return ControlServer::start(path, {kProtocolVersion, "made", "/nowhere/run.db", getpid()},
                                std::move(seam));
  }

  std::unique_ptr<ControlClient> connect() {
    auto client = ControlClient::connect(path, std::chrono::seconds(5));
    if (!client.ok()) throw std::runtime_error(client.error().message());
    return *std::move(client);
  }

  std::vector<std::string> last_waiting() {
    MutexLock lock(mutex_);
    return waiting_;
  }

  // What the run was told of whether anybody follows it.
  std::vector<bool> watched() {
    MutexLock lock(mutex_);
    return watched_;
  }

  // The snapshots and stops that the run was told of.
  std::vector<std::string> asked() {
    MutexLock lock(mutex_);
    return asked_;
  }

  std::string path;
  std::unique_ptr<ControlServer> server;

 private:
  static std::string made_folder() {
    std::string folder =
        (std::filesystem::temp_directory_path() / "sluice-control-XXXXXX").string();
    if (mkdtemp(folder.data()) == nullptr) throw std::runtime_error("mkdtemp");
    return folder;
  }

  std::string folder_;
  Mutex mutex_;
  std::vector<std::string> waiting_ GUARDED_BY(mutex_);
  std::vector<bool> watched_ GUARDED_BY(mutex_);
  std::vector<std::string> asked_ GUARDED_BY(mutex_);
};

}  // namespace sluice::control
