#include "gui/data/run_feed.h"

#include <thread>

#include "gui/data/detail/feed_channel.h"
#include "gui/data/span_scan.h"
#include "gui/data/sql_console.h"

namespace sluice::gui {

struct RunFeed::Impl {
  Impl(const std::string& path, FeedOptions options)
      : channel(path, options), console(path, options.wake) {}

  detail::FeedChannel channel;
  SqlConsole console;
  std::thread follower;
  std::thread student;
};

RunFeed::RunFeed(const std::string& path, FeedOptions options)
    : impl_(std::make_unique<Impl>(path, std::move(options))) {
  impl_->follower = std::thread([this] { detail::follow(impl_->channel); });
  impl_->student = std::thread([this] { detail::study(impl_->channel); });
}

RunFeed::~RunFeed() {
  impl_->channel.change([](detail::Requests& requests) { requests.is_over = true; });
  impl_->follower.join();
  impl_->student.join();
}

const std::string& RunFeed::path() const { return impl_->channel.path; }

std::shared_ptr<const RunSnapshot> RunFeed::run() const { return impl_->channel.run.latest(); }
std::shared_ptr<const TimelineWindow> RunFeed::timeline() const {
  return impl_->channel.timeline.latest();
}
std::shared_ptr<const Minimap> RunFeed::minimap() const { return impl_->channel.minimap.latest(); }
std::shared_ptr<const ChosenSpan> RunFeed::chosen() const { return impl_->channel.chosen.latest(); }
std::shared_ptr<const SpanRank> RunFeed::rank() const { return impl_->channel.rank.latest(); }
std::shared_ptr<const StepPaths> RunFeed::paths() const { return impl_->channel.paths.latest(); }
std::shared_ptr<const Verdict> RunFeed::verdict() const { return impl_->channel.verdict.latest(); }
std::shared_ptr<const SpanStatistics> RunFeed::statistics() const {
  return impl_->channel.statistics.of_run.latest();
}
std::shared_ptr<const SpanStatistics> RunFeed::range_statistics() const {
  return impl_->channel.statistics.of_range.latest();
}
std::shared_ptr<const Findings> RunFeed::found() const { return impl_->channel.found.latest(); }
std::shared_ptr<const analyze::SampledTime> RunFeed::samples() const {
  return impl_->channel.steps.samples.latest();
}
std::shared_ptr<const analyze::StepExplanation> RunFeed::explanation() const {
  return impl_->channel.steps.explanation.latest();
}
SqlConsole& RunFeed::console() { return impl_->console; }

void RunFeed::want_timeline(const TimelineRequest& request) {
  impl_->channel.change([&](detail::Requests& requests) { requests.timeline = request; });
}
void RunFeed::choose_span(std::int64_t span_id) {
  impl_->channel.change([&](detail::Requests& requests) { requests.chosen = span_id; });
}
void RunFeed::search(const std::string& text) {
  impl_->channel.change([&](detail::Requests& requests) { requests.search = text; });
}
void RunFeed::want_statistics(ScanRange range) {
  impl_->channel.change([&](detail::Requests& requests) { requests.statistics = range; });
}
void RunFeed::explain(const analyze::StepRange& steps) {
  impl_->channel.change([&](detail::Requests& requests) { requests.explained = steps; });
}

}  // namespace sluice::gui
