// Why one network is enough for links, drives and processors:
//
// 1. Everything that is shared is a link. A processor's time is a link whose bytes are parts of a
//    nanosecond, and a kernel that shares its processor is a flow of as many parts as it takes
//    alone. A transfer that costs processor time holds both links at once. So max-min fairness
//    settles who slows whom, and there is no second rule for processors.
// 2. What cannot be shared waits before it flows: a transfer of an in_order link, or a kernel of an
//    engine whose compute units are all busy, is in a queue and has no flow. When a flow ends, its
//    queue starts the next one at that same instant, so an instant's completions are handled in
//    the order of their starts.
// 3. A kernel that shares with nobody needs no flow: its end is known when it starts, and waits in
//    a heap. So do operations that cost nothing.
//
// advance() merges both sources by time, then by order of start. Nothing else depends on when it is
// called, so both clocks get the same times from the same calls.

#include "core/runtime/cost_model.h"

#include <algorithm>
#include <bit>
#include <functional>

#include "base/check.h"
#include "base/saturating.h"

namespace sluice::runtime {

namespace {

// A processor's time is a link whose bytes are parts of a nanosecond. Rates of flows rise together
// until something is full, so with parts this small what transfers take of it is settled before
// compute kernels have filled it (docs/decisions.md, 49). A power of two, so that times are to the
// bit what they are in nanoseconds.
constexpr TimeNs kTimeParts = 1024;
constexpr double kTimePartsPerS = 1e9 * static_cast<double>(kTimeParts);

std::size_t processor_of(const platform::Platform& platform, std::size_t engine) {
  const std::int32_t processor = index_of(platform.engines[engine].processor);
  return processor >= 0 ? static_cast<std::size_t>(processor) : engine;
}

bool pays_toll(const platform::Link& link) { return link.processor_bytes_per_s > 0; }

// Its kernels do not simply follow one another.
bool shares_or_wakes(const platform::Platform& platform, std::size_t engine) {
  const auto is_of = [engine](const platform::Engine& other) {
    return index_of(other.processor) == static_cast<std::int32_t>(engine);
  };
  const auto host = static_cast<std::size_t>(index_of(platform.host_engine));
  const bool has_tolls = processor_of(platform, engine) == processor_of(platform, host) &&
                         std::ranges::any_of(platform.links, pays_toll);
  return index_of(platform.engines[engine].processor) >= 0 ||
         platform.engines[engine].wake_ns > 0 || has_tolls ||
         std::ranges::any_of(platform.engines, is_of);
}

std::int64_t asked_at_once(const Operation& operation) {
  return std::min(operation.cost.inflight_bytes, operation.label.size_bytes);
}

}  // namespace

// Behind the links stand two for each engine: the time of its processor, which engines may share,
// and its own, which says whether it is awake.
std::vector<platform::Link> CostModel::links_and_processors(const platform::Platform& platform) {
  std::vector<platform::Link> links = platform.links;
  for (const platform::Engine& engine : platform.engines) {
    platform::Link time{.name = engine.name,
                        .read_bytes_per_s = kTimePartsPerS,
                        .write_bytes_per_s = kTimePartsPerS};
    links.push_back(time);
    if (engine.wake_ns > 0) {
      time.read_burst = {engine.wake_ns * kTimeParts,
                         kTimePartsPerS * static_cast<double>(engine.wake_ns) /
                             static_cast<double>(engine.wake_takes_ns)};
    }
    links.push_back(std::move(time));
  }
  return links;
}

CostModel::CostModel(const platform::Platform& platform)
    : network_(links_and_processors(platform)), engines_(platform.engines.size()) {
  for (const platform::Link& link : platform.links) {
    const bool is_in_order = link.sharing == platform::Sharing::in_order;
    first_queue_.push_back(is_in_order ? queues_.size() : kNoQueue);
    if (is_in_order) queues_.resize(queues_.size() + 2);
    toll_.push_back(kTimePartsPerS * link.toll_per_byte());
  }
  add_engines(platform);
  for (Queue& queue : queues_) {
    queue.waiting.reserve(64);
    for (Lane& lane : queue.lanes) lane.waiting.reserve(64);
  }
  pending_.reserve(256);
  flows_.reserve(256);
  finished_flows_.reserve(256);
  sorted_.reserve(256);
}

void CostModel::add_engines(const platform::Platform& platform) {
  const auto own_links = [&](std::size_t engine) {
    const auto first = static_cast<std::int32_t>(platform.links.size() + 2 * engine);
    return std::pair{platform::LinkId{first}, platform::LinkId{first + 1}};
  };
  const auto time_of = [&](std::size_t engine) {
    return own_links(processor_of(platform, engine)).first;
  };
  host_time_ = time_of(static_cast<std::size_t>(index_of(platform.host_engine)));
  for (std::size_t e = 0; e < engines_.size(); ++e) {
    const std::int32_t units = platform.engines[e].compute_units;
    CHECK(units >= 1 && units <= 64);  // what Queue::free_units has bits for
    engines_[e].free_ns.resize(static_cast<std::size_t>(units));
    if (!shares_or_wakes(platform, e)) continue;
    engines_[e].time = {time_of(e)};
    if (platform.engines[e].wake_ns > 0) engines_[e].time.push_back(own_links(e).second);
    engines_[e].queue = queues_.size();
    queues_.emplace_back().free_units = ~std::uint64_t{0} >> (64 - units);
  }
}

// The first that is free, or else will be.
std::int32_t CostModel::first_free(const std::vector<TimeNs>& free_ns, TimeNs now_ns) {
  auto unit = std::ranges::find_if(free_ns, [now_ns](TimeNs free) { return free <= now_ns; });
  if (unit == free_ns.end()) unit = std::ranges::min_element(free_ns);
  return static_cast<std::int32_t>(unit - free_ns.begin());
}

void CostModel::start(OperationState* state, TimeNs now_ns, TimeNs extra_ns) {
  const Cost& cost = state->operation.cost;
  const std::int64_t order = next_order_++;
  const bool is_kernel = cost.route.empty() && index_of(cost.engine) >= 0;
  const std::size_t queue = queue_of(state->operation);
  if (!cost.route.empty() || queue != kNoQueue) {
    const Sharer sharer{state, order, now_ns, extra_ns, queue};
    if (queue == kNoQueue) {
      start_flow(sharer, now_ns);
      return;
    }
    lane_of(queues_[queue], sharer).waiting.push_back(sharer);
    let_in(queues_[queue]);
    start_next(queue, now_ns);
    return;
  }
  TimeNs begin_ns = std::min(saturating_sum(now_ns, extra_ns), platform::FlowNetwork::kLatest);
  TimeNs end_ns = begin_ns;
  std::int32_t unit = 0;
  if (is_kernel) {
    std::vector<TimeNs>& free_ns =
        engines_[static_cast<std::size_t>(index_of(cost.engine))].free_ns;
    unit = first_free(free_ns, begin_ns);
    TimeNs& unit_free_ns = free_ns[static_cast<std::size_t>(unit)];
    begin_ns = std::max(begin_ns, unit_free_ns);
    end_ns = std::min(saturating_sum(begin_ns, cost.engine_dur_ns), platform::FlowNetwork::kLatest);
    unit_free_ns = end_ns;
  }
  pending_.push_back({begin_ns, end_ns, order, state, unit});
  std::push_heap(pending_.begin(), pending_.end(), std::greater<>());
}

CostModel::Lane& CostModel::lane_of(Queue& queue, const Sharer& sharer) {
  return queue.lanes[static_cast<std::size_t>(sharer.state->operation.cost.file)];
}

std::size_t CostModel::queue_of(const Operation& operation) const {
  const Cost& cost = operation.cost;
  for (const platform::LinkId link : cost.route) {
    const std::size_t first = first_queue_[static_cast<std::size_t>(index_of(link))];
    if (first != kNoQueue) return first + static_cast<std::size_t>(cost.direction);
  }
  if (!cost.route.empty() || index_of(cost.engine) < 0) return kNoQueue;
  return engine_of(cost).queue;
}

// A transfer that is asked for as a whole leaves room for those behind it, which the drive then has
// in its queue as well.
std::int64_t CostModel::inflight_bytes(const Sharer& transfer) const {
  const Operation& operation = transfer.state->operation;
  std::int64_t size_bytes = asked_at_once(operation);
  if (transfer.queue == kNoQueue || size_bytes < operation.label.size_bytes) return size_bytes;
  for (const Sharer& next : queues_[transfer.queue].waiting) {
    size_bytes += asked_at_once(next.state->operation);
  }
  return size_bytes;
}

void CostModel::start_flow(Sharer sharer, TimeNs now_ns) {
  const OperationLabel& label = sharer.state->operation.label;
  const Cost& cost = sharer.state->operation.cost;
  if (sharer.queue != kNoQueue) {
    std::uint64_t& free_units = queues_[sharer.queue].free_units;
    sharer.unit = std::countr_zero(free_units);
    free_units &= free_units - 1;
  }
  platform::FlowRequest request;
  request.extra_latency_ns = sharer.extra_ns;
  request.waited_ns = now_ns - sharer.asked_ns;
  if (cost.route.empty()) {
    request.route = engine_of(cost).time;
    request.size_bytes = cost.engine_dur_ns * kTimeParts;
  } else {
    request.route = cost.route;
    request.direction = cost.direction;
    request.size_bytes = label.size_bytes + label.padding_bytes;
    request.chunk_bytes = inflight_bytes(sharer);
    for (const platform::LinkId link : cost.route) {
      request.toll += toll_[static_cast<std::size_t>(index_of(link))];
    }
    if (request.toll > 0) request.toll_link = host_time_;
  }
  sharer.begin_ns = now_ns;
  flows_.push_back({network_.start(request, now_ns), sharer});
}

// As many of each lane as have room, and one however large it is.
void CostModel::let_in(Queue& queue) {
  for (Lane& lane : queue.lanes) {
    std::size_t count = 0;
    for (const Sharer& next : lane.waiting) {
      const Operation& operation = next.state->operation;
      const std::int64_t with_it = lane.queued_bytes + operation.label.size_bytes;
      const std::int64_t room = operation.cost.inflight_bytes;
      if (room > 0 && lane.queued_bytes > 0 && with_it > room) break;
      lane.queued_bytes = with_it;
      queue.waiting.push_back(next);
      count += 1;
    }
    lane.waiting.erase(lane.waiting.begin(),
                       lane.waiting.begin() + static_cast<std::ptrdiff_t>(count));
  }
}

void CostModel::start_next(std::size_t queue, TimeNs now_ns) {
  Queue& of = queues_[queue];
  if (of.free_units == 0 || of.waiting.empty()) return;
  const Sharer next = of.waiting.front();
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
    const Sharer done = flow->sharer;
    sorted_.push_back({done.begin_ns, finished.at_ns, done.order, done.state, done.unit});
    *flow = flows_.back();
    flows_.pop_back();
    if (done.queue == kNoQueue) continue;
    queues_[done.queue].free_units |= std::uint64_t{1} << done.unit;
    lane_of(queues_[done.queue], done).queued_bytes -= done.state->operation.label.size_bytes;
    let_in(queues_[done.queue]);
    start_next(done.queue, now_ns);
  }
  while (!pending_.empty() && pending_.front().at_ns <= now_ns) {
    sorted_.push_back(pending_.front());
    std::pop_heap(pending_.begin(), pending_.end(), std::greater<>());
    pending_.pop_back();
  }
  std::sort(sorted_.begin(), sorted_.end(),
            [](const Pending& a, const Pending& b) { return b > a; });
  for (const Pending& done : sorted_) {
    completed.push_back({done.state, done.begin_ns, done.at_ns, done.unit});
    // Where work elsewhere has said on which unit it ran, that stands.
    const Cost& cost = done.state->operation.cost;
    const bool is_kernel = cost.route.empty() && index_of(cost.engine) >= 0;
    if (is_kernel && engine_of(cost).free_ns.size() > 1 && done.state->unit < 0) {
      done.state->unit = done.unit;
    }
  }
}

}  // namespace sluice::runtime
