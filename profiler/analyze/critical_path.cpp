// Why the path explains the step:
//
// The walk goes backwards from the step's end. The span that it has reached is charged with its
// time, to what it ran on, and the walk goes on with what let that span begin:
// - if it waited after it was asked for, the span that held its link or engine until it began;
// - else a wait of the schedule that ended then: the wait is charged, not what was waited for, so
//   that what went on beside earlier work is not charged as well;
// - else its recorded cause, if it was asked for when that cause ended;
// - else the span that ended last before it was asked for.
// A gap before the next span's end is charged to `other`. So each nanosecond of the step is charged
// once, and the shares sum to the step.

#include "profiler/analyze/critical_path.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "profiler/analyze/intervals.h"
#include "profiler/analyze/link_use.h"

namespace sluice::analyze {
namespace {

// A kernel's own track says it, or, where a thread's of another program does not, its stage.
std::string_view ran_on(const Span& span) {
  if (span.track->kind != "thread") return span.track->kind;
  return span.stage == nullptr ? std::string_view() : std::string_view(span.stage->place);
}

// The cause that a span's own time is spent on. The time of a transfer over several links is spent
// on the link that is fullest in this step.
Cause cause_of(const Span& span, const LinkUse& use) {
  if (span.track->is_waiting()) return cause_named(*span.name).value_or(Cause::other);
  if (const std::optional<Cause> cause = cause_named(span.stage_cause())) return *cause;
  if (!span.track->links.empty()) {
    const std::optional<LinkLoad> fullest = use.fullest(*span.track);
    if (!fullest || !fullest->is_of_drive) return Cause::host_link;
    return span.track->direction == rundb::Direction::read ? Cause::read : Cause::write;
  }
  const std::string_view runs_on = ran_on(span);
  if (runs_on == "compute") return Cause::compute;
  if (runs_on == "device") return Cause::update_engine;
  return Cause::processor;
}

// A span with its end beside it, so that a sort by ends stays in its own memory.
struct Ended {
  TimeNs end_ts = 0;
  const Span* span = nullptr;
};

std::vector<Ended> by_end(const std::vector<Span>& spans) {
  std::vector<Ended> ended;
  ended.reserve(spans.size());
  for (const Span& span : spans) {
    if (span.dur > 0 && !span.track->is_beside_schedule()) ended.push_back({span.end_ts(), &span});
  }
  std::ranges::sort(ended, [](const Ended& a, const Ended& b) {
    return a.end_ts != b.end_ts ? a.end_ts < b.end_ts : a.span->id < b.span->id;
  });
  return ended;
}

// Which spans set off a span, by flows.
class Causes {
 public:
  explicit Causes(const StepData& step) {
    if (step.flows.empty()) return;
    std::vector<const Span*> by_id;
    for (const Span& span : step.spans) {
      if (span.dur > 0 && !span.track->is_beside_schedule()) by_id.push_back(&span);
    }
    const auto id = [](const Span* span) { return span->id; };
    if (!std::ranges::is_sorted(by_id, {}, id)) std::ranges::sort(by_id, {}, id);
    for (const rundb::FlowRow& flow : step.flows) {
      const auto from = std::ranges::lower_bound(by_id, flow.from_span, {}, id);
      if (from != by_id.end() && (*from)->id == flow.from_span)
        causes_.push_back({flow.to_span, *from});
    }
    std::ranges::stable_sort(causes_, {}, &Cause::effect_id);
  }

  struct Cause {
    std::int64_t effect_id = 0;
    const Span* span = nullptr;
  };
  auto of(const Span& effect) const {
    return std::ranges::equal_range(causes_, effect.id, {}, &Cause::effect_id);
  }

 private:
  std::vector<Cause> causes_;  // by effect
};

class Walk {
 public:
  explicit Walk(const StepData& step)
      : begin_ts_(step.row.ts),
        end_ts_(step.row.ts + step.row.dur),
        use_(step),
        by_end_(by_end(step.spans)),
        causes_(step) {}

  std::vector<PathPiece> path() {
    const Span* span = latest_ended(end_ts_, nullptr);
    TimeNs ts = end_ts_;
    while (ts > begin_ts_) {
      if (span == nullptr || span->end_ts() <= begin_ts_) {
        add(begin_ts_, ts, Cause::other, -1);
        break;
      }
      if (span->end_ts() < ts) {
        add(span->end_ts(), ts, Cause::other, -1);
        ts = span->end_ts();
      }
      const TimeNs from_ts = std::max(begin_ts_, span->ts);
      add_span(*span, from_ts, ts);
      ts = from_ts;
      effect_ = span;
      span = cause_before(*span);
    }
    std::ranges::reverse(pieces_);
    return std::move(pieces_);
  }

 private:
  // The last span of those that ended by `by_ts` and began before it. Among several that ended at
  // the same time, the span that has most to do with `effect`.
  const Span* latest_ended(TimeNs by_ts, const Span* effect) const {
    auto end = ended_by(by_ts);
    const Span* best = nullptr;
    TimeNs latest_ts = by_ts;
    while (end != by_end_.begin()) {
      const Span* span = (--end)->span;
      if (best != nullptr && span->end_ts() < latest_ts - kSameInstantNs) break;
      if (span == effect || span->ts >= by_ts) continue;
      if (best == nullptr) latest_ts = std::min(by_ts, span->end_ts());
      if (best == nullptr || relation(*span, effect) > relation(*best, effect)) best = span;
    }
    return best;
  }

  int relation(const Span& cause, const Span* effect) const {
    if (effect == nullptr) return 0;
    if (cause.track->is_waiting() && effect->layer_id == cause.layer_id) return 4;
    if (is_flow(cause, *effect)) return 3;
    if (cause.device_id >= 0 && cause.device_id == effect->device_id) return 2;
    return cause.track == effect->track ? 1 : 0;
  }

  bool is_flow(const Span& cause, const Span& effect) const {
    const auto causes = causes_.of(effect);
    return std::ranges::find(causes, &cause, &Causes::Cause::span) != causes.end();
  }

  const Span* cause_before(const Span& span) const {
    if (span.submit_ts < span.ts) {
      if (const Span* holder = queue_holder(span)) return holder;
    }
    const TimeNs asked_ts = std::min(span.submit_ts, span.ts);
    const Span* latest = latest_ended(asked_ts, &span);
    if (latest != nullptr && latest->track->is_waiting()) return latest;
    const Span* flow = latest_cause(span, asked_ts);
    if (flow == nullptr || latest == nullptr) return flow != nullptr ? flow : latest;
    // An operation asked for at its cause's end waited for that; asked for later, for another one.
    const TimeNs slack_ns = std::max<TimeNs>(kAtOnceNs, (asked_ts - latest->end_ts()) * 2);
    return asked_ts - flow->end_ts() <= slack_ns ? flow : latest;
  }

  // One track, or one link in one direction.
  static bool shares(const Span& a, const Span& b) {
    if (a.track == b.track) return true;
    return a.track->direction == b.track->direction &&
           std::ranges::find_first_of(a.track->links, b.track->links) != a.track->links.end();
  }

  // Behind the last that ended by then.
  std::vector<Ended>::const_iterator ended_by(TimeNs ts) const {
    return std::ranges::upper_bound(by_end_, ts + kSameInstantNs, {}, &Ended::end_ts);
  }

  // The span that used the same until this began, though this had been asked for.
  const Span* queue_holder(const Span& span) const {
    auto end = ended_by(span.ts);
    while (end != by_end_.begin()) {
      const Span* before = (--end)->span;
      if (before->end_ts() <= span.submit_ts) return nullptr;
      if (before != &span && shares(*before, span) && before->ts < span.ts) return before;
    }
    return nullptr;
  }

  const Span* latest_cause(const Span& span, TimeNs by_ts) const {
    const Span* best = nullptr;
    for (const auto& [effect_id, cause] : causes_.of(span)) {
      if (cause->end_ts() > by_ts + kSameInstantNs || cause->ts >= by_ts) continue;
      if (best == nullptr || cause->end_ts() > best->end_ts()) best = cause;
    }
    return best;
  }

  void add(TimeNs from_ts, TimeNs to_ts, Cause cause, std::int64_t span_id) {
    if (to_ts > from_ts) pieces_.push_back({from_ts, to_ts - from_ts, cause, span_id});
  }

  // A read that was asked for when this ended waited for the buffer that this held. Where nothing
  // else was read from the drive meanwhile, though it could have been, the buffer is the cause.
  void add_span(const Span& span, TimeNs from_ts, TimeNs to_ts) {
    const Cause cause = cause_of(span, use_);
    const bool gave_buffer = effect_ != nullptr && effect_->reads_drive() &&
                             effect_->device_id == span.device_id &&
                             effect_->subgroup_id != span.subgroup_id;
    if (!gave_buffer || cause == Cause::read || !use_.can_read_beside(span)) {
      add(from_ts, to_ts, cause, span.id);
      return;
    }
    TimeNs ts = to_ts;
    for (const auto& [busy_from, busy_to] : reads_backwards(span.device_id, from_ts, to_ts)) {
      add(busy_to, ts, Cause::buffers, span.id);
      add(busy_from, busy_to, cause, span.id);
      ts = busy_from;
    }
    add(from_ts, ts, Cause::buffers, span.id);
  }

  // When this device's drive was read, the last first.
  std::vector<Interval> reads_backwards(std::int64_t device, TimeNs from_ts, TimeNs to_ts) {
    const std::vector<Interval>& all = reads_of(device).merged();
    auto end = std::ranges::lower_bound(all, to_ts, {}, &Interval::first);
    std::vector<Interval> reads;
    while (end != all.begin() && (--end)->second > from_ts) {
      reads.emplace_back(std::max(from_ts, end->first), std::min(to_ts, end->second));
    }
    return reads;
  }

  // The reads of the whole step, made when they are first asked for: a path asks for many pieces.
  Intervals& reads_of(std::int64_t device) {
    const auto [reads, is_new] = reads_.try_emplace(device);
    if (!is_new) return reads->second;
    for (const Ended& ended : by_end_) {
      const Span& span = *ended.span;
      if (span.reads_drive() && span.device_id == device) reads->second.add(span.ts, span.end_ts());
    }
    return reads->second;
  }

  // A begin may lie a little before the end that it follows: times of other clocks are converted
  // and rounded, and runs recorded before the emulated clock ended late work at an instant of the
  // model have begins up to time_scale nanoseconds early.
  static constexpr TimeNs kSameInstantNs = 1'000;

  // Between the end of a cause and what it sets off lie wake-ups of threads.
  static constexpr TimeNs kAtOnceNs = 200'000;

  const TimeNs begin_ts_;
  const TimeNs end_ts_;
  const LinkUse use_;
  const std::vector<Ended> by_end_;
  const Causes causes_;
  std::unordered_map<std::int64_t, Intervals> reads_;  // by device
  const Span* effect_ = nullptr;                       // on the path, after what is added next
  std::vector<PathPiece> pieces_;
};

bool is_bound_by_processor(const PathPiece& piece) {
  return piece.cause == Cause::compute || piece.cause == Cause::processor;
}

std::vector<const Span*> recorder_spans(const StepData& step) {
  std::vector<const Span*> spans;
  for (const Span& span : step.spans) {
    if (span.track->kind == "recorder" && span.dur > 0) spans.push_back(&span);
  }
  std::ranges::sort(spans, {}, &Span::ts);
  return spans;
}

// The recorder's thread takes processor time from what runs beside it: its time there, shared among
// the processors, is its own. It stands on the path from where it began, so that the path's pieces
// sum to the shares.
std::vector<PathPiece> with_recorder(const StepData& step, std::vector<PathPiece> path) {
  const std::vector<const Span*> recorder = recorder_spans(step);
  if (recorder.empty()) return path;
  const double processors = std::max(1.0, step.info->processor_count());
  std::vector<PathPiece> pieces;
  for (const PathPiece& piece : path) {
    TimeNs ts = piece.ts;
    const TimeNs end_ts = piece.ts + piece.dur;
    const auto add_until = [&](TimeNs until_ts, Cause cause, std::int64_t span_id) {
      if (until_ts > ts) pieces.push_back({ts, until_ts - ts, cause, span_id});
      ts = std::max(ts, until_ts);
    };
    for (const Span* span : recorder) {
      if (!is_bound_by_processor(piece)) break;
      const TimeNs beside_ns = std::min(span->end_ts(), end_ts) - std::max(span->ts, piece.ts);
      if (beside_ns <= 0) continue;
      const auto taken_ns = static_cast<TimeNs>(static_cast<double>(beside_ns) / processors);
      add_until(std::min(span->ts, end_ts), piece.cause, piece.span_id);
      add_until(std::min(ts + taken_ns, end_ts), Cause::recorder, span->id);
    }
    add_until(end_ts, piece.cause, piece.span_id);
  }
  return pieces;
}

}  // namespace

StepVerdict verdict_of(const StepData& step) {
  StepVerdict verdict{
      .step = step.row.id, .ts = step.row.ts, .dur = step.row.dur, .share = {}, .path = {}};
  if (step.row.dur <= 0) return verdict;
  verdict.path = with_recorder(step, Walk(step).path());
  const auto dur = static_cast<double>(step.row.dur);
  for (const PathPiece& piece : verdict.path) {
    verdict.share[index_of(piece.cause)] += static_cast<double>(piece.dur) / dur;
  }
  return verdict;
}

}  // namespace sluice::analyze
