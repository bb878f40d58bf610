#include "core/platform/flow_network.h"

#include <algorithm>

#include "base/check.h"
#include "base/saturating.h"
#include "core/platform/chunk_curve.h"

namespace sluice::platform {

FlowNetwork::FlowNetwork(std::span<const Link> links)
    : links_(std::vector<Link>(links.begin(), links.end())),
      fair_share_(links),
      burst_credit_(links),
      ahead_{.fair_share = FairShare(links), .timeline = {}, .finished = {}} {}

FlowId FlowNetwork::start(const FlowRequest& request, TimeNs now_ns) {
  CHECK_GE(request.size_bytes, 0);
  CHECK_GE(request.chunk_bytes, 0);
  CHECK_GE(request.extra_latency_ns, 0);
  run_until(now_ns);

  const std::int32_t slot = acquire_slot();
  Slot& flow_slot = slots_[static_cast<std::size_t>(slot)];
  flow_slot.route.assign(request.route.begin(), request.route.end());
  flow_slot.direction = request.direction;
  std::vector<std::int32_t>& resources = flow_slot.resources;
  TimeNs latency_ns = request.extra_latency_ns;
  double cap = std::numeric_limits<double>::infinity();
  for (const LinkId id : request.route) {
    resources.push_back(fair_share_.resource_of(id, request.direction));
    const Link& link = links_[id];
    latency_ns = saturating_sum(latency_ns, link.latency_ns);
    if (request.chunk_bytes > 0)
      cap = std::min(cap, chunk_bandwidth(link, request.direction, request.chunk_bytes));
  }
  latency_ns = std::max<TimeNs>(0, latency_ns - request.waited_ns);
  if (request.size_bytes == 0) resources.clear();
  FairShare::Claim claim{resources, request.direction, cap};
  if (index_of(request.toll_link) >= 0) {
    claim.toll_resource = fair_share_.resource_of(request.toll_link, Direction::read);
    claim.toll = request.toll;
  }

  const FlowId flow{next_flow_++};
  timeline_.add({.join_ns = std::min(saturating_sum(now_ns, latency_ns), kLatest),
                 .flow = flow,
                 .slot = slot,
                 .size_bytes = burst_credit_.begin(request.route, request.direction,
                                                   request.size_bytes, now_ns),
                 .claim = claim});
  forget_ahead();
  run_until(now_ns);
  return flow;
}

TimeNs FlowNetwork::next_completion_ns() const {
  if (!finished_.empty()) return finished_.front().at_ns;
  if (next_completion_ns_) return *next_completion_ns_;
  if (timeline_.flow_count() == 0) return kNever;
  if (timeline_.next_event_finishes()) {
    next_completion_ns_ = timeline_.next_event_ns();
  } else {
    ahead_.timeline = timeline_;
    ahead_.finished.clear();
    while (ahead_.finished.empty())
      ahead_.timeline.step(ahead_.timeline.next_event_ns(), ahead_.fair_share, ahead_.finished);
    ahead_.is_valid = true;
    next_completion_ns_ = ahead_.finished.front().at_ns;
  }
  return *next_completion_ns_;
}

void FlowNetwork::advance(TimeNs now_ns, std::vector<Completion>& completed) {
  run_until(now_ns);
  // One step sorts its own; a flow that a change of rates finds empty finishes in a step after it,
  // at the same time.
  std::sort(finished_.begin(), finished_.end(), [](const auto& a, const auto& b) {
    return a.at_ns != b.at_ns ? a.at_ns < b.at_ns : a.flow < b.flow;
  });
  for (const FlowTimeline::Finished& finished : finished_)
    completed.push_back({finished.flow, finished.at_ns});
  finished_.clear();
}

void FlowNetwork::run_until(TimeNs now_ns) {
  CHECK_GE(now_ns, now_ns_);
  now_ns_ = now_ns;
  if (ahead_.is_valid && *next_completion_ns_ <= now_ns) take_ahead();
  while (timeline_.next_event_ns() <= now_ns) {
    const std::size_t finished_before = finished_.size();
    timeline_.step(timeline_.next_event_ns(), fair_share_, finished_);
    for (std::size_t i = finished_before; i < finished_.size(); ++i) on_finished(finished_[i]);
    if (finished_.size() > finished_before) forget_ahead();  // joins alone were foreseen
  }
}

void FlowNetwork::take_ahead() {
  std::swap(timeline_, ahead_.timeline);
  std::swap(fair_share_, ahead_.fair_share);
  for (const FlowTimeline::Finished& finished : ahead_.finished) {
    finished_.push_back(finished);
    on_finished(finished);
  }
  forget_ahead();
}

void FlowNetwork::on_finished(const FlowTimeline::Finished& finished) {
  const Slot& slot = slots_[static_cast<std::size_t>(finished.slot)];
  burst_credit_.end(slot.route, slot.direction, finished.at_ns);
  free_slots_.push_back(finished.slot);
}

void FlowNetwork::forget_ahead() {
  ahead_.is_valid = false;
  next_completion_ns_.reset();
}

std::int32_t FlowNetwork::acquire_slot() {
  if (free_slots_.empty()) {
    slots_.emplace_back();
    return static_cast<std::int32_t>(slots_.size() - 1);
  }
  const std::int32_t slot = free_slots_.back();
  free_slots_.pop_back();
  slots_[static_cast<std::size_t>(slot)].resources.clear();
  return slot;
}

std::size_t FlowNetwork::active_count() const { return timeline_.flow_count() + finished_.size(); }

double FlowNetwork::rate_bytes_per_s(FlowId flow) const { return timeline_.rate_bytes_per_s(flow); }

double FlowNetwork::utilisation(LinkId link, Direction direction) const {
  return fair_share_.utilisation(link, direction);
}

}  // namespace sluice::platform
