#pragma once
// Between the frame thread and the threads that read: what is asked for, and what is there.
//
// Thread contract: any thread; the lock is held for copies of small values only.

#include <optional>
#include <string>

#include "base/mutex.h"
#include "gui/data/published.h"
#include "gui/data/run_feed.h"
#include "gui/data/run_snapshot.h"
#include "gui/data/span_scan.h"
#include "gui/data/timeline_request.h"
#include "profiler/analyze/sampled_time.h"
#include "profiler/analyze/step_explanation.h"

namespace sluice::gui::detail {

struct Requests {
  std::uint64_t number = 0;  // grows with each change
  TimelineRequest timeline;
  std::int64_t chosen = 0;
  std::string search;
  ScanRange statistics;  // beside those of the whole run; the whole run: none
  std::optional<analyze::StepRange> explained;
  bool is_over = false;
};

class FeedChannel {
 public:
  FeedChannel(std::string database_path, FeedOptions feed_options)
      : path(std::move(database_path)), options(std::move(feed_options)) {}

  const std::string path;
  const FeedOptions options;
  Published<RunSnapshot> run;
  Published<TimelineWindow> timeline;
  Published<Minimap> minimap;
  Published<ChosenSpan> chosen;
  Published<SpanRank> rank;
  Published<StepPaths> paths;
  Published<Verdict> verdict;
  struct Statistics {
    Published<SpanStatistics> of_run;
    Published<SpanStatistics> of_range;
  };
  Statistics statistics;
  Published<Findings> found;
  struct ChosenSteps {
    Published<analyze::StepExplanation> explanation;
    Published<analyze::SampledTime> samples;
  };
  ChosenSteps steps;

  Requests requests() const {
    const MutexLock lock(mutex_);
    return requests_;
  }
  template <typename Change>
  void change(Change&& with) {
    const MutexLock lock(mutex_);
    with(requests_);
    requests_.number += 1;
    changed_.notify_all();
  }
  // To whoever waits: look again, the file holds more.
  void nudge() {
    change([](Requests&) {});
  }
  // Until something changed since `number`, or `dur_ns` went by; what is asked for then.
  Requests wait(std::uint64_t number, TimeNs dur_ns) {
    const MutexLock lock(mutex_);
    if (requests_.number == number && !requests_.is_over)
      changed_.wait_for(mutex_, std::chrono::nanoseconds(dur_ns));
    return requests_;
  }

 private:
  mutable Mutex mutex_;
  CondVar changed_;
  Requests requests_ GUARDED_BY(mutex_);
};

void follow(FeedChannel& channel);  // until is_over
void study(FeedChannel& channel);   // the same

}  // namespace sluice::gui::detail
