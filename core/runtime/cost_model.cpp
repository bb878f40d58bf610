#include "core/runtime/cost_model.h"

#include <algorithm>
#include <functional>

#include "base/check.h"

namespace sluice::runtime {

CostModel::CostModel(const platform::Platform& platform)
    : network_(platform.links), engine_free_ns_(platform.engines.size(), 0) {
  for (std::size_t i = 0; i < platform.engines.size(); ++i) {
    const std::int32_t processor = platform::index_of(platform.engines[i].processor);
    processor_.push_back(processor >= 0 ? static_cast<std::size_t>(processor) : i);
  }
  for (const platform::Link& link : platform.links) {
    const bool is_in_order = link.sharing == platform::Sharing::in_order;
    first_queue_.push_back(is_in_order ? queues_.size() : kNoQueue);
    if (is_in_order) queues_.resize(queues_.size() + 2);
  }
  for (Queue& queue : queues_) queue.waiting.reserve(64);
  pending_.reserve(256);
  flows_.reserve(256);
  finished_flows_.reserve(256);
  sorted_.reserve(256);
}

void CostModel::start(OperationState* state, TimeNs now_ns, TimeNs extra_ns) {
  const Cost& cost = state->operation.cost;
  const std::int64_t order = next_order_++;
  if (!cost.route.empty()) {
    const Transfer transfer{state, order, now_ns, extra_ns, queue_of(cost)};
    if (transfer.queue != kNoQueue && queues_[transfer.queue].is_busy) {
      queues_[transfer.queue].waiting.push_back(transfer);
    } else {
      start_flow(transfer, now_ns);
    }
    return;
  }
  TimeNs end_ns = now_ns + extra_ns;
  if (index_of(cost.engine) >= 0) {
    TimeNs& free_ns = engine_free_ns_[processor_[static_cast<std::size_t>(index_of(cost.engine))]];
    end_ns = std::max(end_ns, free_ns) + cost.engine_dur_ns;
    free_ns = end_ns;
  }
  pending_.push_back({end_ns, order, state});
  std::push_heap(pending_.begin(), pending_.end(), std::greater<>());
}

std::size_t CostModel::queue_of(const Cost& cost) const {
  for (const platform::LinkId link : cost.route) {
    const std::size_t first = first_queue_[static_cast<std::size_t>(index_of(link))];
    if (first != kNoQueue) return first + static_cast<std::size_t>(cost.direction);
  }
  return kNoQueue;
}

// A transfer that is asked for as a whole leaves room for those behind it, which the drive then has
// in its queue as well.
std::int64_t CostModel::inflight_bytes(const Transfer& transfer) const {
  const Operation& operation = transfer.state->operation;
  std::int64_t size_bytes = operation.cost.chunk_bytes;
  if (transfer.queue == kNoQueue || size_bytes < operation.label.size_bytes) return size_bytes;
  for (const Transfer& next : queues_[transfer.queue].waiting) {
    size_bytes += next.state->operation.cost.chunk_bytes;
  }
  return size_bytes;
}

void CostModel::start_flow(const Transfer& transfer, TimeNs now_ns) {
  const OperationLabel& label = transfer.state->operation.label;
  const Cost& cost = transfer.state->operation.cost;
  if (transfer.queue != kNoQueue) queues_[transfer.queue].is_busy = true;
  platform::FlowRequest request;
  request.route = cost.route;
  request.direction = cost.direction;
  request.size_bytes = label.size_bytes + label.padding_bytes;
  request.chunk_bytes = inflight_bytes(transfer);
  request.extra_latency_ns = transfer.extra_ns;
  request.waited_ns = now_ns - transfer.asked_ns;
  flows_.push_back({network_.start(request, now_ns), transfer});
}

void CostModel::start_next(std::size_t queue, TimeNs now_ns) {
  if (queue == kNoQueue) return;
  Queue& of = queues_[queue];
  of.is_busy = false;
  if (of.waiting.empty()) return;
  const Transfer next = of.waiting.front();
  of.waiting.erase(of.waiting.begin());
  start_flow(next, now_ns);
}

TimeNs CostModel::next_completion_ns() const {
  const TimeNs flow_ns = network_.next_completion_ns();
  return pending_.empty() ? flow_ns : std::min(flow_ns, pending_.front().at_ns);
}

void CostModel::advance(TimeNs now_ns, std::vector<Completion>& completed) {
  sorted_.clear();
  finished_flows_.clear();
  network_.advance(now_ns, finished_flows_);
  for (const auto& finished : finished_flows_) {
    const auto flow = std::find_if(flows_.begin(), flows_.end(),
                                   [&](const Flow& f) { return f.id == finished.flow; });
    CHECK(flow != flows_.end());
    const Transfer done = flow->transfer;
    sorted_.push_back({finished.at_ns, done.order, done.state});
    *flow = flows_.back();
    flows_.pop_back();
    start_next(done.queue, now_ns);
  }
  while (!pending_.empty() && pending_.front().at_ns <= now_ns) {
    sorted_.push_back(pending_.front());
    std::pop_heap(pending_.begin(), pending_.end(), std::greater<>());
    pending_.pop_back();
  }
  std::sort(sorted_.begin(), sorted_.end(),
            [](const Pending& a, const Pending& b) { return b > a; });
  for (const Pending& done : sorted_) completed.push_back({done.state, done.at_ns});
}

}  // namespace sluice::runtime
