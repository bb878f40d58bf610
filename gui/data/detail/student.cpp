// Works out what takes longer: see gui/data/run_feed.h.

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "gui/data/detail/feed_channel.h"
#include "gui/data/span_lookup.h"
#include "gui/data/step_paths.h"
#include "gui/data/timeline_window.h"
#include "gui/data/verdict.h"

namespace sluice::gui::detail {
namespace {

constexpr std::int64_t kScanRows = 100'000;  // at a time: about 0.1 s
constexpr TimeNs kPathsNs = 100'000'000;     // for paths at a time
constexpr TimeNs kPublishNs = 1'000'000'000;
constexpr TimeNs kIdleNs = 1'000'000'000;
// Pauses between two verdicts on a live run, which take at most a fiftieth of a processor.
constexpr TimeNs kVerdictNs = 1'000'000'000;
constexpr TimeNs kVerdictRest = 49;

class Student {
 public:
  explicit Student(FeedChannel& channel) : channel_(&channel) {}

  void run() {
    Requests requests = channel_->requests();
    while (!requests.is_over) {
      const std::shared_ptr<const RunSnapshot> run = channel_->run.latest();
      bool has_more = false;
      if (run != nullptr && run->facts != nullptr && run->problem.empty()) {
        if (run->file != std::exchange(file_, run->file)) reader_ = nullptr;
        const Result<bool> worked = work(*run, requests);
        // The follower finds the same and says so; here it is tried again with a fresh reader.
        if (!worked.ok()) reader_ = nullptr;
        has_more = worked.ok() && *worked;
      } else {
        reader_ = nullptr;
      }
      requests = channel_->wait(requests.number, has_more ? 0 : pause_ns());
    }
  }

 private:
  Result<bool> work(const RunSnapshot& run, const Requests& requests) {
    if (reader_ == nullptr) {
      ASSIGN_OR_RETURN(reader_, rundb::Reader::open(channel_->path));
      scan_ = SpanScan();
      range_scan_ = SpanScan();
      step_count_ = static_cast<std::size_t>(-1);
      searched_ = {};
      ranked_ = 0;
      explained_.reset();
      paths_ = StepPathReader();
    }
    RETURN_IF_ERROR(look_for(run, requests.search));
    RETURN_IF_ERROR(explain(run, requests.explained));
    RETURN_IF_ERROR(judge(run));
    RETURN_IF_ERROR(follow_paths(run, requests.timeline));
    RETURN_IF_ERROR(rank(requests.chosen));
    RETURN_IF_ERROR(scan_range(run, requests.statistics));
    ASSIGN_OR_RETURN(const bool has_more, scan(run));
    return has_more || !paths_.is_complete();
  }

  Status follow_paths(const RunSnapshot& run, const TimelineRequest& request) {
    ASSIGN_OR_RETURN(const rundb::Reader::Snapshot snapshot, reader_->snapshot());
    ASSIGN_OR_RETURN(auto paths,
                     paths_.advance(*reader_, *run.facts, *run.steps, request, kPathsNs));
    if (paths == nullptr) return ok_status();
    channel_->paths.publish(std::move(paths));
    channel_->options.wake();
    return ok_status();
  }

  // Whoever chose the steps waits for it, so it goes before what is there for everybody.
  Status explain(const RunSnapshot& run, const std::optional<analyze::StepRange>& steps) {
    if (!steps || steps == explained_) return ok_status();
    explained_ = steps;
    ASSIGN_OR_RETURN(const rundb::Reader::Snapshot snapshot, reader_->snapshot());
    Result<analyze::StepExplanation> explanation =
        analyze::explain_steps(*reader_, run.facts->info, *run.steps, *steps);
    if (!explanation.ok()) {
      analyze::StepExplanation none;
      none.steps = *steps;
      none.why_unknown = explanation.error().message();
      explanation = std::move(none);
    }
    channel_->steps.explanation.publish(
        std::make_shared<const analyze::StepExplanation>(*std::move(explanation)));
    channel_->options.wake();
    channel_->steps.samples.publish(samples_of(run, *steps));
    channel_->options.wake();
    return ok_status();
  }

  // Null: none were recorded.
  std::shared_ptr<const analyze::SampledTime> samples_of(const RunSnapshot& run,
                                                         const analyze::StepRange& steps) {
    Result<analyze::SampledTime> samples =
        analyze::sampled_time(*reader_, run.facts->info, *run.steps, steps);
    if (!samples.ok())
      samples = analyze::SampledTime{.steps = steps, .why_none = samples.error().message()};
    else if (samples->threads.empty())
      return nullptr;
    return std::make_shared<const analyze::SampledTime>(*std::move(samples));
  }

  Status rank(std::int64_t span_id) {
    if (span_id == ranked_) return ok_status();
    ranked_ = span_id;
    if (span_id == 0) return ok_status();
    Result<SpanRank> rank = rank_of(*reader_, span_id);
    if (!rank.ok()) return rank.error().code() == ErrorCode::not_found ? ok_status() : rank.error();
    channel_->rank.publish(std::make_shared<const SpanRank>(*rank));
    channel_->options.wake();
    return ok_status();
  }

  // A range that somebody looks at comes at once, in one go: it is seldom the most of a run.
  Status scan_range(const RunSnapshot& run, const ScanRange& range) {
    if (range == ScanRange()) return ok_status();
    const bool is_other = !(range == range_scan_.range());
    const TimeNs now_ns = monotonic_now_ns();
    if (!is_other && run.is_live && now_ns - range_published_ns_ < kPublishNs) return ok_status();
    if (is_other) range_scan_ = SpanScan(range);
    bool has_read = is_other;
    for (bool has_more = true; has_more; has_read = has_read || has_more) {
      ASSIGN_OR_RETURN(has_more, range_scan_.advance(*reader_, *run.facts, kScanRows));
      if (!(channel_->requests().statistics == range) || channel_->requests().is_over)
        return ok_status();
    }
    if (!has_read) return ok_status();
    range_published_ns_ = now_ns;
    channel_->statistics.of_range.publish(range_scan_.statistics(*run.steps, 0));
    channel_->options.wake();
    return ok_status();
  }

  Status look_for(const RunSnapshot& run, const std::string& text) {
    if (text == searched_) return ok_status();
    ASSIGN_OR_RETURN(Findings found, find_spans(*reader_, *run.facts, text));
    searched_ = text;
    channel_->found.publish(std::make_shared<const Findings>(std::move(found)));
    channel_->options.wake();
    return ok_status();
  }

  Status judge(const RunSnapshot& run) {
    const TimeNs begin_ns = monotonic_now_ns();
    if (run.steps->size() == step_count_) return ok_status();
    if (begin_ns < judge_again_ns_) return ok_status();
    ASSIGN_OR_RETURN(const rundb::Reader::Snapshot snapshot, reader_->snapshot());
    Result<Verdict> read = read_verdict(*reader_, *run.facts);
    if (!read.ok()) {
      // The analyses could not look, and nobody waits for them.
      Verdict none;
      none.why_empty = "The run could not be looked at: " + read.error().message();
      channel_->verdict.publish(std::make_shared<const Verdict>(std::move(none)));
      channel_->options.wake();
      return read.error();
    }
    Verdict verdict = *std::move(read);
    step_count_ = run.steps->size();
    channel_->verdict.publish(std::make_shared<const Verdict>(std::move(verdict)));
    channel_->options.wake();
    const TimeNs end_ns = monotonic_now_ns();
    judge_again_ns_ = end_ns + std::max(kVerdictNs, (end_ns - begin_ns) * kVerdictRest);
    return ok_status();
  }

  // True: there is more to read.
  Result<bool> scan(const RunSnapshot& run) {
    ASSIGN_OR_RETURN(const bool has_read, scan_.advance(*reader_, *run.facts, kScanRows));
    is_unpublished_ = is_unpublished_ || has_read || !has_published_;
    const TimeNs now_ns = monotonic_now_ns();
    const bool is_due = !has_read || now_ns - published_ns_ >= kPublishNs;
    if (is_unpublished_ && is_due && (now_ns - published_ns_ >= kPublishNs || !run.is_live)) {
      channel_->statistics.of_run.publish(scan_.statistics(*run.steps, run.span_count));
      channel_->options.wake();
      published_ns_ = now_ns;
      is_unpublished_ = false;
      has_published_ = true;
    }
    return has_read;
  }

  TimeNs pause_ns() const { return is_unpublished_ ? kPublishNs / 4 : kIdleNs; }

  FeedChannel* channel_;
  std::unique_ptr<rundb::Reader> reader_;
  std::uint64_t file_ = 0;
  SpanScan scan_;
  SpanScan range_scan_;
  TimeNs range_published_ns_ = 0;
  std::size_t step_count_ = static_cast<std::size_t>(-1);
  TimeNs judge_again_ns_ = 0;
  TimeNs published_ns_ = 0;
  bool is_unpublished_ = false;
  bool has_published_ = false;
  std::string searched_;
  std::int64_t ranked_ = 0;
  std::optional<analyze::StepRange> explained_;
  StepPathReader paths_;
};

}  // namespace

void study(FeedChannel& channel) { Student(channel).run(); }

}  // namespace sluice::gui::detail
