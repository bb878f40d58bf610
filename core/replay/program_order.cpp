#include "core/replay/program_order.h"

#include <algorithm>
#include <map>
#include <set>

#include "profiler/analyze/track_order.h"

namespace sluice::replay {
namespace {

using analyze::Span;
using analyze::StepData;
using analyze::TrackInfo;

// Tracks below one thread that overlap. With more, it is no thread.
constexpr int kRoundsMax = 64;

using Tracks = std::set<const TrackInfo*>;

class Thread {
 public:
  // `spans` in order of begin, the longer first.
  Thread(const StepData& step, const std::vector<std::size_t>& spans)
      : step_(step), spans_(spans) {}

  ThreadOrder order() {
    find_queued();
    for (int round = 0; const TrackInfo* beside = find_overlap(); ++round) {
      beside_.insert(beside);
      if (round == kRoundsMax) put_all_beside();
    }
    ThreadOrder order;
    cut(order);
    return order;
  }

 private:
  const Span& span(std::size_t i) const { return step_.spans[i]; }

  // What was asked for while its own track was busy waited in a queue, not in a thread.
  void find_queued() {
    std::map<const TrackInfo*, TimeNs> ends;
    for (const std::size_t i : spans_) {
      TimeNs& end_ts = ends[span(i).track];
      if (span(i).submit_ts + kSameInstantNs < std::min(end_ts, span(i).ts))
        beside_.insert(span(i).track);
      end_ts = std::max(end_ts, span(i).end_ts());
    }
  }

  void put_all_beside() {
    for (const std::size_t i : spans_) beside_.insert(span(i).track);
  }

  // The track of a span that neither follows nor lies within one before it; rather a transfer's.
  const TrackInfo* find_overlap() const {
    std::vector<const Span*> open;
    for (const std::size_t i : spans_) {
      const Span& next = span(i);
      if (beside_.contains(next.track)) continue;
      while (!open.empty() && open.back()->end_ts() <= next.ts + kSameInstantNs) open.pop_back();
      if (!open.empty() && next.end_ts() > open.back()->end_ts() + kSameInstantNs) {
        const bool moves = !next.track->links.empty() || open.back()->track->links.empty();
        return moves ? next.track : open.back()->track;
      }
      open.push_back(&next);
    }
    return nullptr;
  }

  void cut(ThreadOrder& order) const {
    std::vector<std::size_t> open;
    TimeNs now_ts = 0;
    const auto run_until = [&](TimeNs ts) {
      if (!open.empty() && ts > now_ts) order.pieces.push_back({open.back(), now_ts, ts});
      now_ts = std::max(now_ts, ts);
    };
    const auto close_until = [&](TimeNs ts) {
      while (!open.empty() && span(open.back()).end_ts() <= ts + kSameInstantNs) {
        run_until(span(open.back()).end_ts());
        open.pop_back();
      }
    };
    for (const std::size_t i : spans_) {
      if (beside_.contains(span(i).track)) {
        order.beside.push_back(i);
        continue;
      }
      close_until(span(i).ts);
      run_until(span(i).ts);
      now_ts = std::max(now_ts, span(i).ts);
      open.push_back(i);
    }
    while (!open.empty()) {
      run_until(span(open.back()).end_ts());
      open.pop_back();
    }
  }

  const StepData& step_;
  const std::vector<std::size_t>& spans_;
  Tracks beside_;
};

}  // namespace

std::vector<ThreadOrder> thread_orders(const StepData& step) {
  std::map<std::int64_t, std::vector<std::size_t>> by_thread;
  for (std::size_t i = 0; i < step.spans.size(); ++i) {
    const Span& span = step.spans[i];
    if (span.dur <= 0 || span.track->is_waiting() || span.track->is_beside_schedule()) continue;
    const TrackInfo& root = analyze::root_of(*step.info, *span.track);
    if (root.kind == "thread") by_thread[root.id].push_back(i);
  }
  std::vector<ThreadOrder> orders;
  for (auto& [track_id, spans] : by_thread) {
    std::ranges::sort(spans, [&step](std::size_t a, std::size_t b) {
      const Span& one = step.spans[a];
      const Span& two = step.spans[b];
      if (one.ts != two.ts) return one.ts < two.ts;
      return one.dur != two.dur ? one.dur > two.dur : one.id < two.id;
    });
    orders.push_back(Thread(step, spans).order());
    orders.back().track_id = track_id;
  }
  return orders;
}

}  // namespace sluice::replay
