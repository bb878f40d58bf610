#pragma once
// A run on a server (ssh://host/path/run.db), followed for this window: a thread writes what comes
// into a copy (profiler/relay/follower.h), which is opened as any live run. The copy lies in the
// cache folder and goes with the object, unless a place was named for it.
//
// Thread contract: any thread. Destroying it waits for ssh to end, so it is not for the frame
// thread.

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "base/status.h"
#include "gui/data/published.h"
#include "profiler/relay/far_run.h"
#include "profiler/relay/follower.h"
#include "profiler/report/merged_file.h"

namespace sluice::gui {

struct FarChoice {
  std::string program = "sluice";  // at the other end
  std::string copy = {};           // where the copy stays; empty: it is removed
};

// How the line is now.
struct FarLine {
  relay::FollowState state = {};
  bool is_over = false;      // nothing more comes
  std::string problem = {};  // why, where that is an error
};

class FollowedRun {
 public:
  // `wake` is called by the thread whenever there is more to show. Errors: the name is wrong, or
  // there is no folder for the copy.
  static Result<std::shared_ptr<const FollowedRun>> begin(const std::string& name,
                                                          const FarChoice& choice,
                                                          std::function<void()> wake);
  ~FollowedRun();
  FollowedRun(const FollowedRun&) = delete;
  FollowedRun& operator=(const FollowedRun&) = delete;

  std::string name() const { return run_.text(); }
  const std::string& host() const { return run_.host; }
  // The copy, which is there once the line says so.
  const std::string& database() const { return options_.copy; }
  // The name that people use for it, and the place of files that are made of it: in the working
  // folder.
  const std::string& place() const { return place_; }
  // The copy stays when this goes.
  bool is_kept() const { return !file_; }
  // Null: it is only being begun.
  std::shared_ptr<const FarLine> line() const { return line_.latest(); }
  // "cut, trying again"; empty: all is well.
  std::string words() const;

 private:
  FollowedRun(relay::FarRun run, std::optional<report::MergedFile> file, const FarChoice& choice,
              std::function<void()> wake);
  void follow(const std::stop_token& stop);

  const relay::FarRun run_;
  const std::optional<report::MergedFile> file_;  // none: the copy stays
  const std::string place_;
  const std::function<void()> wake_;
  relay::FollowOptions options_;
  Published<FarLine> line_;
  std::jthread thread_;
};

}  // namespace sluice::gui
