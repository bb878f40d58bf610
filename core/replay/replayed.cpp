#include "core/replay/replayed.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <limits>
#include <queue>
#include <unordered_map>

#include "base/saturating.h"
#include "core/runtime/cost_model.h"

namespace sluice::replay {
namespace {

using platform::Direction;
using platform::FlowNetwork;

constexpr double kNoLimit = 1e18;  // bytes a second: of a link whose rate nobody knows
constexpr std::int64_t kBytesMax = std::int64_t{1} << 60;  // as in a row of a run database
constexpr std::int32_t kUnitsMax = 64;  // of CostModel; with more, operations do not wait

platform::Link network_link(const ModelledLink& link) {
  const auto rate = [&link](Direction direction) {
    const double known = link.bytes_per_s[side(direction)];
    return known > 0 ? known : kNoLimit;
  };
  return {.name = link.name,
          .read_bytes_per_s = rate(Direction::read),
          .write_bytes_per_s = rate(Direction::write),
          .latency_ns = link.latency_ns,
          .duplex = link.is_full_duplex ? platform::Duplex::full : platform::Duplex::half,
          .sharing = link.is_in_order ? platform::Sharing::in_order : platform::Sharing::fair};
}

// A link of each route besides, which limits one transfer and not all together.
platform::Link limit_of(const Route& route) {
  const double rate = route.bytes_per_s > 0 ? route.bytes_per_s : kNoLimit;
  return {.name = "one transfer",
          .read_bytes_per_s = kNoLimit,
          .write_bytes_per_s = kNoLimit,
          .chunk_curve = {{.chunk_bytes = 1, .read_bytes_per_s = rate, .write_bytes_per_s = rate}}};
}

// Every kernel track is an engine; the first stands for the host, which the model wants.
platform::Platform machine_of(const OperationGraph& graph) {
  platform::Platform machine;
  for (const ModelledLink& link : graph.links.links) machine.links.push_back(network_link(link));
  for (const Route& route : graph.links.routes) machine.links.push_back(limit_of(route));
  machine.engines.push_back({.name = "host"});
  machine.host_engine = platform::EngineId{0};
  for (const Engine& engine : graph.engines) {
    machine.engines.push_back(
        {.name = engine.name, .compute_units = std::min(engine.units, kUnitsMax)});
  }
  return machine;
}

class Run {
 public:
  explicit Run(const OperationGraph& graph)
      : graph_(graph), machine_(machine_of(graph)), cost_(machine_), progress_(graph.nodes.size()) {
    for (const Route& route : graph.links.routes) {
      std::vector<platform::LinkId>& ids = routes_.emplace_back();
      for (const std::int32_t link : route.links) ids.push_back(platform::LinkId{link});
      const std::size_t own = graph.links.links.size() + routes_.size() - 1;
      ids.push_back(platform::LinkId{static_cast<std::int32_t>(own)});
    }
    list_effects();
  }

  Replayed result() {
    const auto count = static_cast<std::int32_t>(graph_.nodes.size());
    for (std::int32_t n = 0; n < count; ++n) {
      const Node& node = graph_.nodes[index(n)];
      progress_[index(n)].waits_for = node.edge_count;
      for (std::int32_t e = node.first_edge; e < node.first_edge + node.edge_count; ++e) {
        const Edge& edge = graph_.edges[index(e)];
        if (edge.from < 0) meet(n, edge.delay_ns);
      }
    }
    while (true) {
      const TimeNs due_ns = due_.empty() ? FlowNetwork::kNever : due_.top().first;
      const TimeNs next_ns = std::min(due_ns, cost_.next_completion_ns());
      if (next_ns == FlowNetwork::kNever) break;
      take_completed(next_ns);
      while (!due_.empty() && due_.top().first <= next_ns) start_due(next_ns);
    }
    return outcome();
  }

 private:
  struct Progress {
    std::int32_t waits_for = 0;  // edges
    TimeNs ready_ns = 0;         // as far as its edges are met
    TimeNs begin_ns = 0;
    TimeNs end_ns = 0;
  };
  struct Effect {
    std::int32_t node;
    TimeNs delay_ns;
    bool from_begin;
  };
  struct Slot {
    runtime::OperationState state;
    std::int32_t node = -1;
  };
  using Due = std::pair<TimeNs, std::int32_t>;

  static std::size_t index(std::int32_t i) { return static_cast<std::size_t>(i); }

  TimeNs work_ns(const Node& node) const {
    const double speed = node.engine < 0 ? 1 : graph_.engines[index(node.engine)].speed;
    return saturating_whole(static_cast<double>(node.dur_ns()) / speed);
  }

  bool comes_in_order(const Route& route) const {
    return std::ranges::any_of(route.links, [this](std::int32_t link) {
      return graph_.links.links[index(link)].is_in_order;
    });
  }

  // Edges by where they come from.
  void list_effects() {
    first_effect_.assign(graph_.nodes.size() + 1, 0);
    for (const Edge& edge : graph_.edges) {
      if (edge.from >= 0) first_effect_[index(edge.from) + 1] += 1;
    }
    for (std::size_t n = 1; n < first_effect_.size(); ++n) first_effect_[n] += first_effect_[n - 1];
    effects_.resize(first_effect_.back());
    std::vector<std::size_t> place(first_effect_.begin(), first_effect_.end() - 1);
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      const Node& node = graph_.nodes[n];
      for (std::int32_t e = node.first_edge; e < node.first_edge + node.edge_count; ++e) {
        const Edge& edge = graph_.edges[index(e)];
        if (edge.from < 0) continue;
        effects_[place[index(edge.from)]++] = {static_cast<std::int32_t>(n), edge.delay_ns,
                                               edge.from_begin};
      }
    }
  }

  void meet(std::int32_t node, TimeNs at_ns) {
    Progress& progress = progress_[index(node)];
    progress.ready_ns = std::max(progress.ready_ns, at_ns);
    if (--progress.waits_for > 0) return;
    due_.emplace(saturating_sum(progress.ready_ns, graph_.nodes[index(node)].delay_ns), node);
  }
  void tell_effects(std::int32_t node, TimeNs at_ns, bool of_begin) {
    for (std::size_t e = first_effect_[index(node)]; e < first_effect_[index(node) + 1]; ++e) {
      const Effect& effect = effects_[e];
      if (effect.from_begin == of_begin) meet(effect.node, saturating_sum(at_ns, effect.delay_ns));
    }
  }

  void start_due(TimeNs now_ns) {
    const std::int32_t n = due_.top().second;
    due_.pop();
    const Node& node = graph_.nodes[index(n)];
    if (free_.empty()) free_.push_back(&slots_.emplace_back());
    Slot& slot = *free_.back();
    free_.pop_back();
    slot.node = n;
    runtime::Operation operation;
    TimeNs extra_ns = 0;
    if (node.route >= 0) {
      const Route& route = graph_.links.routes[index(node.route)];
      const double latency_s = static_cast<double>(route.latency_ns) / 1e9;
      // A fitted latency is also that of transfers that waited in a queue: it holds the link.
      const double held_bytes = comes_in_order(route) ? latency_s * route.bytes_per_s : 0;
      if (held_bytes == 0) extra_ns = route.latency_ns;
      operation.label.size_bytes =
          std::clamp<std::int64_t>(saturating_whole(node.size_bytes + held_bytes), 1, kBytesMax);
      operation.cost.route = routes_[index(node.route)];
      operation.cost.direction = route.direction;
      operation.cost.inflight_bytes = operation.label.size_bytes;
    } else if (node.engine >= 0 && !graph_.engines[index(node.engine)].is_thread &&
               graph_.engines[index(node.engine)].units <= kUnitsMax) {
      operation.cost.engine = platform::EngineId{node.engine + 1};
      operation.cost.engine_dur_ns = work_ns(node);
    } else {
      extra_ns = work_ns(node);
    }
    slot.state.operation = operation;
    by_state_[&slot.state] = &slot;
    cost_.start(&slot.state, now_ns, extra_ns);
    progress_[index(n)].begin_ns = now_ns;
    tell_effects(n, now_ns, true);
  }

  void take_completed(TimeNs now_ns) {
    completed_.clear();
    cost_.advance(now_ns, completed_);
    for (const runtime::CostModel::Completion& completion : completed_) {
      Slot* slot = by_state_.at(completion.state);
      progress_[index(slot->node)].end_ns = completion.at_ns;
      tell_effects(slot->node, completion.at_ns, false);
      free_.push_back(slot);
    }
  }

  Replayed outcome() const {
    Replayed replayed;
    for (const Edge& edge : graph_.end) {
      TimeNs from_ns = 0;
      if (edge.from >= 0) from_ns = progress_[index(edge.from)].end_ns;
      replayed.dur_ns = std::max(replayed.dur_ns, saturating_sum(from_ns, edge.delay_ns));
    }
    add_busy(replayed);
    return replayed;
  }

  void add_busy(Replayed& replayed) const {
    std::vector<std::array<double, 2>> link_s(graph_.links.links.size());
    std::vector<double> engine_s(graph_.engines.size(), 0);
    for (const Node& node : graph_.nodes) {
      if (node.route >= 0) {
        const Route& route = graph_.links.routes[index(node.route)];
        for (const std::int32_t link : route.links) {
          const double rate = graph_.links.links[index(link)].bytes_per_s[side(route.direction)];
          if (rate > 0) link_s[index(link)][side(route.direction)] += node.size_bytes / rate;
        }
      } else if (node.engine >= 0) {
        engine_s[index(node.engine)] +=
            static_cast<double>(work_ns(node)) / 1e9 / graph_.engines[index(node.engine)].units;
      }
    }
    const double dur_s = static_cast<double>(replayed.dur_ns) / 1e9;
    const auto add = [&](const std::string& name, double seconds) {
      if (seconds > 0 && dur_s > 0) replayed.busy.push_back({name, seconds / dur_s});
    };
    for (std::size_t l = 0; l < link_s.size(); ++l) {
      const ModelledLink& link = graph_.links.links[l];
      if (link.is_full_duplex) {
        add(link.name + " (read)", link_s[l][0]);
        add(link.name + " (write)", link_s[l][1]);
      } else {
        add(link.name, link_s[l][0] + link_s[l][1]);
      }
    }
    for (std::size_t e = 0; e < engine_s.size(); ++e) add(graph_.engines[e].name, engine_s[e]);
    std::ranges::stable_sort(replayed.busy, std::greater<>(), &Busy::share);
  }

  const OperationGraph& graph_;
  const platform::Platform machine_;
  runtime::CostModel cost_;
  std::vector<std::vector<platform::LinkId>> routes_;
  std::vector<Progress> progress_;
  std::vector<std::size_t> first_effect_;
  std::vector<Effect> effects_;
  std::priority_queue<Due, std::vector<Due>, std::greater<>> due_;
  std::deque<Slot> slots_;
  std::vector<Slot*> free_;
  std::unordered_map<const runtime::OperationState*, Slot*> by_state_;
  std::vector<runtime::CostModel::Completion> completed_;
};

}  // namespace

Replayed replay(const OperationGraph& graph) { return Run(graph).result(); }

}  // namespace sluice::replay
