#include "core/platform/flow_timeline.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace sluice::platform {
namespace {

// A finish this little after a whole nanosecond is rounding, not time.
constexpr double kRoundingNs = 1e-3;

bool joins_later(const FlowTimeline::Joining& a, const FlowTimeline::Joining& b) {
  return a.join_ns != b.join_ns ? a.join_ns > b.join_ns : a.flow > b.flow;
}

TimeNs finish_after(TimeNs now_ns, double bytes, double bytes_per_s) {
  const double dur_ns = std::ceil(bytes * 1e9 / bytes_per_s - kRoundingNs);
  const auto most_ns = static_cast<double>(FlowTimeline::kNever - 1 - now_ns) * 0.999;
  return now_ns + static_cast<TimeNs>(std::clamp(dur_ns, 0.0, most_ns));
}

}  // namespace

void FlowTimeline::add(const Joining& joining) {
  waiting_.push_back(joining);
  std::push_heap(waiting_.begin(), waiting_.end(), joins_later);
}

TimeNs FlowTimeline::next_event_ns() const {
  return waiting_.empty() ? next_finish_ns_ : std::min(next_finish_ns_, waiting_.front().join_ns);
}

bool FlowTimeline::next_event_finishes() const {
  if (waiting_.empty()) return !moving_.empty();
  const Joining& next = waiting_.front();
  return next_finish_ns_ <= next.join_ns || next.claim.resources.empty();
}

void FlowTimeline::step(TimeNs at_ns, FairShare& fair_share, std::vector<Finished>& finished) {
  const auto finished_before = static_cast<std::ptrdiff_t>(finished.size());
  const std::size_t moving_before = moving_.size();
  if (next_finish_ns_ == at_ns) remove_finished(at_ns, finished);
  bool changed = moving_.size() != moving_before;
  while (!waiting_.empty() && waiting_.front().join_ns == at_ns) {
    std::pop_heap(waiting_.begin(), waiting_.end(), joins_later);
    const Joining joining = waiting_.back();
    waiting_.pop_back();
    if (joining.claim.resources.empty()) {
      finished.push_back({at_ns, joining.flow, joining.slot});
    } else {
      join(joining);
      changed = true;
    }
  }
  if (changed) share(at_ns, fair_share);
  std::sort(finished.begin() + finished_before, finished.end(),
            [](const Finished& a, const Finished& b) { return a.flow < b.flow; });
}

void FlowTimeline::remove_finished(TimeNs at_ns, std::vector<Finished>& finished) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < moving_.size(); ++i) {
    if (moving_[i].finish_ns == at_ns) {
      finished.push_back({at_ns, moving_[i].flow, moving_[i].slot});
      continue;
    }
    moving_[kept] = moving_[i];
    claims_[kept] = claims_[i];
    ++kept;
  }
  moving_.resize(kept);
  claims_.resize(kept);
}

void FlowTimeline::join(const Joining& joining) {
  const auto place = std::upper_bound(
      claims_.begin(), claims_.end(), joining.claim.cap_bytes_per_s,
      [](double cap, const FairShare::Claim& claim) { return cap < claim.cap_bytes_per_s; });
  const auto index = place - claims_.begin();
  claims_.insert(place, joining.claim);
  moving_.insert(moving_.begin() + index, {.flow = joining.flow,
                                           .slot = joining.slot,
                                           .left_bytes = joining.size_bytes,
                                           .rate_bytes_per_s = 0,
                                           .since_ns = joining.join_ns,
                                           .finish_ns = kNever});
}

void FlowTimeline::share(TimeNs at_ns, FairShare& fair_share) {
  fair_share.assign(claims_, rates_);
  next_finish_ns_ = kNever;
  for (std::size_t i = 0; i < moving_.size(); ++i) {
    Moving& moving = moving_[i];
    if (moving.rate_bytes_per_s != rates_[i]) {
      const double moved =
          moving.rate_bytes_per_s * static_cast<double>(at_ns - moving.since_ns) * 1e-9;
      moving.left_bytes = std::max(0.0, moving.left_bytes - moved);
      moving.rate_bytes_per_s = rates_[i];
      moving.since_ns = at_ns;
      moving.finish_ns = finish_after(at_ns, moving.left_bytes, moving.rate_bytes_per_s);
    }
    next_finish_ns_ = std::min(next_finish_ns_, moving.finish_ns);
  }
}

double FlowTimeline::rate_bytes_per_s(FlowId flow) const {
  const auto found = std::find_if(moving_.begin(), moving_.end(),
                                  [flow](const Moving& moving) { return moving.flow == flow; });
  return found == moving_.end() ? 0 : found->rate_bytes_per_s;
}

}  // namespace sluice::platform
