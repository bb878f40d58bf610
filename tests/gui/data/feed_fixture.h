#pragma once
// Waiting for what the threads of a feed bring: until it is there, or five minutes went by.

#include <chrono>
#include <functional>
#include <thread>

#include "gui/data/run_feed.h"
#include "tests/profiler/report/made_run.h"

namespace sluice::gui {

using report::kMs;
using report::MadeRun;
using report::write_made_run;
using rundb::require_ok;
using rundb::TempFolder;

inline bool comes_true(const std::function<bool()>& condition) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(5);
  while (std::chrono::steady_clock::now() < until) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return false;
}

// Looks often, so that tests do not wait for the second in which a finished file is looked at.
inline FeedOptions quick() {
  FeedOptions options;
  options.poll_live_ns = options.poll_finished_ns = 5'000'000;
  return options;
}

}  // namespace sluice::gui
