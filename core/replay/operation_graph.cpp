// Why the graph, run as it is, gives the recorded times again: each node has one edge that was
// binding, from what ended last before it was asked for (or what flows say), with the time that
// the program took from there. All other edges only say what must have ended by then. So a change
// of one operation moves what waited for it, and leaves what did not until it is overtaken.

#include "core/replay/operation_graph.h"

#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>

#include "base/saturating.h"
#include "core/replay/program_order.h"
#include "core/replay/wakes.h"
#include "profiler/analyze/intervals.h"
#include "profiler/analyze/track_order.h"

namespace sluice::replay {
namespace {

using analyze::Span;
using analyze::StepData;
using analyze::TrackInfo;

// As in profiler/analyze/critical_path.cpp.
constexpr TimeNs kAtOnceNs = 200'000;
// A thread that took this much of a gap behind another's end worked, and did not wait for it.
constexpr TimeNs kWorkedPart = 4;
// Operations of no length between a cause and its effect.
constexpr int kFlowsAcrossMax = 8;
constexpr int kCausesMax = 10'000;  // looked at for one operation: a damaged file may have any

// What a node came from, until the edges are made.
struct Origin {
  std::size_t span = 0;
  std::int32_t thread = -1;  // of its own pieces
  std::int32_t before = -1;  // the piece of that thread before it, a node
  bool is_first = true;      // of its span
};

class Builder {
 public:
  explicit Builder(const RecordedWindow& window)
      : info_(window.info), step_(window.data), begin_ts_(step_.row.ts) {
    graph_.dur_ns = step_.row.dur;
    graph_.step_count = window.step_count();
    // A file that anybody wrote may have any number.
    const double scale = info_.time_scale();
    graph_.time_scale = scale > 1e-9 && scale < 1e9 ? scale : 1;
    // A clock that computes its ends has no wake-ups between a cause and its effect.
    const std::string clock = info_.meta_value("clock");
    at_once_ns_ = clock == "simulated" || clock == "emulated" ? kSameInstantNs : kAtOnceNs;
  }

  OperationGraph build() {
    list_links();
    orders_ = thread_orders(step_);
    add_nodes();
    sort_nodes();
    count_units();
    add_edges();
    fit();
    list_drives();
    graph_.busy_share = busy_share();
    return std::move(graph_);
  }

 private:
  static std::size_t index(std::int32_t i) { return static_cast<std::size_t>(i); }
  const Span& span_of(std::int32_t node) const { return step_.spans[origins_[index(node)].span]; }
  const Node& node(std::int32_t n) const { return graph_.nodes[index(n)]; }

  void list_links() {
    for (const rundb::LinkRow& row : info_.links) {
      ModelledLink link;
      link.name = row.name;
      link.latency_ns = saturating_whole(static_cast<double>(row.latency_ns) * graph_.time_scale);
      link.is_full_duplex = row.full_duplex;
      link_of_[row.id] = static_cast<std::int32_t>(graph_.links.links.size());
      graph_.links.links.push_back(std::move(link));
    }
  }

  // -1: its track has no link that has a row.
  std::int32_t route_of(const TrackInfo& track) {
    const auto [known, is_new] = route_of_.try_emplace(track.id, -1);
    if (!is_new) return known->second;
    Route route{.track_id = track.id,
                .links = {},
                .direction = track.direction == rundb::Direction::read
                                 ? platform::Direction::read
                                 : platform::Direction::write};
    for (const std::int64_t id : track.links) {
      const auto link = link_of_.find(id);
      if (link != link_of_.end()) route.links.push_back(link->second);
    }
    if (route.links.empty()) return -1;
    known->second = static_cast<std::int32_t>(graph_.links.routes.size());
    graph_.links.routes.push_back(std::move(route));
    return known->second;
  }

  std::int32_t engine_of(const TrackInfo& track, bool is_thread) {
    const auto next = static_cast<std::int32_t>(graph_.engines.size());
    const auto [known, is_new] = engine_of_.try_emplace({track.id, is_thread}, next);
    if (is_new) {
      const TrackInfo& root = analyze::root_of(info_, track);
      graph_.engines.push_back({.name = track.label,
                                .device = root.kind == "device" ? root.name : "",
                                .is_thread = is_thread});
    }
    return known->second;
  }

  std::int32_t name_of(const Span& span) {
    const auto next = static_cast<std::int32_t>(graph_.names.size());
    const auto [known, is_new] = name_of_.try_emplace(*span.name, next);
    if (is_new) {
      graph_.names.push_back({*span.name, span.stage == nullptr ? "" : span.stage->drive_file});
    }
    return known->second;
  }

  void add_node(std::size_t s, TimeNs begin_ts, TimeNs end_ts, std::int32_t thread) {
    const Span& span = step_.spans[s];
    const TimeNs begin_ns = std::max<TimeNs>(0, begin_ts - begin_ts_);
    const TimeNs end_ns = std::min(graph_.dur_ns, end_ts - begin_ts_);
    if (end_ns <= begin_ns) return;
    Node node;
    node.span_id = span.id;
    node.name = name_of(span);
    node.device = static_cast<std::int32_t>(span.device_id);
    node.begin_ns = begin_ns;
    node.end_ns = end_ns;
    node.asked_ns =
        thread >= 0 ? begin_ns : std::clamp<TimeNs>(span.submit_ts - begin_ts_, 0, begin_ns);
    const double part = static_cast<double>(end_ns - begin_ns) / static_cast<double>(span.dur);
    node.size_bytes = part * static_cast<double>(span.bytes + span.padding_bytes);
    if (node.size_bytes > 0) node.route = route_of(*span.track);
    if (node.route < 0) {
      node.engine =
          thread >= 0 ? engine_of(*thread_track(thread), true) : engine_of(*span.track, false);
    }
    graph_.nodes.push_back(node);
    origins_.push_back({.span = s, .thread = thread});
  }
  const TrackInfo* thread_track(std::int32_t thread) const {
    return &info_.tracks.at(orders_[index(thread)].track_id);
  }

  void add_nodes() {
    std::vector<bool> is_of_thread(step_.spans.size(), false);
    for (std::size_t t = 0; t < orders_.size(); ++t) {
      for (const Piece& piece : orders_[t].pieces) {
        is_of_thread[piece.span] = true;
        add_node(piece.span, piece.begin_ts, piece.end_ts, static_cast<std::int32_t>(t));
      }
    }
    for (std::size_t s = 0; s < step_.spans.size(); ++s) {
      const Span& span = step_.spans[s];
      if (is_of_thread[s] || span.dur <= 0) continue;
      if (span.track->is_waiting() || span.track->is_beside_schedule()) continue;
      add_node(s, span.ts, span.end_ts(), -1);
    }
  }

  void sort_nodes() {
    std::vector<std::int32_t> order(graph_.nodes.size());
    for (std::size_t n = 0; n < order.size(); ++n) order[n] = static_cast<std::int32_t>(n);
    std::ranges::stable_sort(order, [this](std::int32_t a, std::int32_t b) {
      const Node& one = node(a);
      const Node& two = node(b);
      if (one.begin_ns != two.begin_ns) return one.begin_ns < two.begin_ns;
      return one.end_ns != two.end_ns ? one.end_ns < two.end_ns : one.span_id < two.span_id;
    });
    std::vector<Node> nodes;
    std::vector<Origin> origins;
    for (const std::int32_t n : order) {
      nodes.push_back(node(n));
      origins.push_back(origins_[index(n)]);
    }
    graph_.nodes = std::move(nodes);
    origins_ = std::move(origins);
    link_pieces();
    for (std::int32_t n = 0; n < static_cast<std::int32_t>(graph_.nodes.size()); ++n)
      by_end_.push_back(n);
    std::ranges::stable_sort(by_end_, {}, [this](std::int32_t n) { return node(n).end_ns; });
  }

  void link_pieces() {
    std::vector<std::int32_t> last(orders_.size(), -1);
    pieces_.resize(orders_.size());
    for (std::size_t n = 0; n < origins_.size(); ++n) {
      const auto id = static_cast<std::int32_t>(n);
      Origin& origin = origins_[n];
      const std::int64_t span_id = step_.spans[origin.span].id;
      origin.is_first = first_node_.try_emplace(span_id, id).second;
      last_node_[span_id] = id;
      if (origin.thread < 0) continue;
      origin.before = last[index(origin.thread)];
      last[index(origin.thread)] = id;
      pieces_[index(origin.thread)].push_back(id);
    }
    for (std::size_t t = 0; t < orders_.size(); ++t)
      thread_of_track_[orders_[t].track_id] = static_cast<std::int32_t>(t);
  }

  // As many units as worked at the same time.
  void count_units() {
    std::vector<std::vector<TimeNs>> ends(graph_.engines.size());
    for (const Node& node : graph_.nodes) {
      if (node.engine < 0) continue;
      std::vector<TimeNs>& running = ends[index(node.engine)];
      std::erase_if(running, [&](TimeNs end) { return end <= node.begin_ns + kSameInstantNs; });
      running.push_back(node.end_ns);
      Engine& engine = graph_.engines[index(node.engine)];
      engine.units = std::max(engine.units, static_cast<std::int32_t>(running.size()));
    }
  }

  // Edges ------------------------------------------------------------------------------------

  void list_flows() {
    std::unordered_map<std::int64_t, std::vector<std::int64_t>> causes;
    for (const rundb::FlowRow& flow : step_.flows) causes[flow.to_span].push_back(flow.from_span);
    for (const auto& [span_id, first] : first_node_) {
      std::vector<std::int32_t>& found = causes_[first];
      int budget = kCausesMax;
      add_causes(causes, span_id, kFlowsAcrossMax, found, budget);
      std::ranges::sort(found);
      const auto rest = std::ranges::unique(found);
      found.erase(rest.begin(), rest.end());
    }
  }
  void add_causes(const std::unordered_map<std::int64_t, std::vector<std::int64_t>>& causes,
                  std::int64_t span_id, int across, std::vector<std::int32_t>& found,
                  int& budget) const {
    const auto of = causes.find(span_id);
    if (of == causes.end() || across == 0) return;
    for (const std::int64_t cause : of->second) {
      if (--budget < 0) return;
      const auto last = last_node_.find(cause);
      if (last != last_node_.end()) {
        found.push_back(last->second);
      } else {
        add_causes(causes, cause, across - 1, found, budget);
      }
    }
  }

  bool precedes(std::int32_t cause, std::int32_t effect) const {
    return node(cause).begin_ns < node(effect).begin_ns;
  }

  int relation(std::int32_t cause, std::int32_t effect) const {
    const auto causes = causes_.find(effect);
    if (causes != causes_.end() && std::ranges::count(causes->second, cause) > 0) return 3;
    const Span& a = span_of(cause);
    const Span& b = span_of(effect);
    if (a.device_id >= 0 && a.device_id == b.device_id) return 2;
    return a.track == b.track ? 1 : 0;
  }

  // The node that ended last by then, and began before this one; of several, the one that has most
  // to do with it. -1: none.
  // `after_ns`: nothing that ended by then is looked at, since a thread's own pieces may be all
  // there is.
  std::int32_t latest_ended(TimeNs by_ns, std::int32_t effect, std::int32_t but_thread = -1,
                            TimeNs after_ns = -1) {
    auto end = std::ranges::upper_bound(by_end_, by_ns + kSameInstantNs, {},
                                        [this](std::int32_t n) { return node(n).end_ns; });
    std::int32_t best = -1;
    TimeNs latest_ns = by_ns;
    while (end != by_end_.begin()) {
      const std::int32_t n = *--end;
      if (node(n).end_ns <= after_ns) break;
      if (best >= 0 && node(n).end_ns < latest_ns - kSameInstantNs) break;
      if (!precedes(n, effect) || node(n).begin_ns >= by_ns) continue;
      if (but_thread >= 0 && origins_[index(n)].thread == but_thread) continue;
      if (best < 0) latest_ns = std::min(by_ns, node(n).end_ns);
      if (best < 0 || relation(n, effect) > relation(best, effect)) best = n;
    }
    return best;
  }

  std::int32_t latest_flow(std::int32_t effect, TimeNs by_ns) {
    std::int32_t best = -1;
    for (const std::int32_t cause : causes_[effect]) {
      if (!precedes(cause, effect) || node(cause).end_ns > by_ns + kSameInstantNs) continue;
      if (best < 0 || node(cause).end_ns > node(best).end_ns) best = cause;
    }
    return best;
  }

  void add_edge(std::int32_t from, TimeNs delay_ns, bool from_begin = false) {
    graph_.edges.push_back({from, from_begin, std::max<TimeNs>(0, delay_ns)});
  }
  // -1: the stretch's begin.
  void bind(std::int32_t to, std::int32_t cause, TimeNs asked_ns) {
    add_edge(cause, cause < 0 ? asked_ns : asked_ns - node(cause).end_ns);
    bound_[index(to)] = cause;
  }

  void add_edges() {
    list_flows();
    list_wakes();
    bound_.assign(graph_.nodes.size(), -1);
    for (std::int32_t n = 0; n < static_cast<std::int32_t>(graph_.nodes.size()); ++n) {
      graph_.nodes[index(n)].first_edge = static_cast<std::int32_t>(graph_.edges.size());
      if (origins_[index(n)].thread >= 0) {
        add_edges_of_piece(n);
      } else {
        add_edges_of_asked(n);
      }
      add_flow_edges(n);
      graph_.nodes[index(n)].edge_count =
          static_cast<std::int32_t>(graph_.edges.size()) - node(n).first_edge;
    }
    add_end();
  }

  // A thread goes on at once, or after its own work, or when what it waited for has ended.
  void add_edges_of_piece(std::int32_t n) {
    const Origin& origin = origins_[index(n)];
    const TimeNs begin_ns = node(n).begin_ns;
    const TimeNs before_ns = origin.before < 0 ? 0 : node(origin.before).end_ns;
    const TimeNs gap_ns = begin_ns - before_ns;
    const std::int32_t waker = gap_ns <= kSameInstantNs ? -1 : waker_of(n, before_ns, gap_ns);
    if (waker < 0) {
      bind(n, origin.before, begin_ns);
      return;
    }
    bind(n, waker, begin_ns);
    if (origin.before >= 0) add_edge(origin.before, 0);
  }

  std::int32_t waker_of(std::int32_t n, TimeNs before_ns, TimeNs gap_ns) {
    const TimeNs begin_ns = node(n).begin_ns;
    const std::int32_t flow = latest_flow(n, begin_ns);
    if (flow >= 0 && node(flow).end_ns > before_ns + kSameInstantNs) return flow;
    const std::int32_t latest = ended_in_gap(n, before_ns);
    if (latest < 0) return -1;
    const TimeNs after_ns = begin_ns - node(latest).end_ns;
    const bool is_wake = wakes_[index(n)] || after_ns <= std::min(kAtOnceNs, gap_ns / kWorkedPart);
    return is_wake ? latest : -1;
  }

  // What ended last in the gap of a thread before this piece. -1: nothing of another thread.
  std::int32_t ended_in_gap(std::int32_t n, TimeNs before_ns) {
    return latest_ended(node(n).begin_ns, n, origins_[index(n)].thread, before_ns + kSameInstantNs);
  }

  void list_wakes() {
    using Kind = std::array<std::int32_t, 4>;
    std::map<Kind, std::int32_t> kinds;
    std::vector<Pause> pauses;
    std::vector<std::int32_t> pieces;
    for (std::int32_t n = 0; n < static_cast<std::int32_t>(graph_.nodes.size()); ++n) {
      const Origin& origin = origins_[index(n)];
      if (origin.thread < 0 || origin.before < 0) continue;
      const TimeNs before_ns = node(origin.before).end_ns;
      const std::int32_t latest =
          node(n).begin_ns <= before_ns + kSameInstantNs ? -1 : ended_in_gap(n, before_ns);
      if (latest < 0) continue;
      const Kind kind{origin.thread, node(n).name, origins_[index(latest)].thread,
                      node(latest).name};
      const auto next = static_cast<std::int32_t>(kinds.size());
      pauses.push_back({kinds.try_emplace(kind, next).first->second, node(n).begin_ns - before_ns,
                        node(n).begin_ns - node(latest).end_ns});
      pieces.push_back(n);
    }
    const std::vector<bool> are = are_wakes(pauses);
    wakes_.assign(graph_.nodes.size(), false);
    for (std::size_t p = 0; p < pieces.size(); ++p)
      wakes_[index(pieces[p])] = are[index(pauses[p].kind)];
  }

  void add_edges_of_asked(std::int32_t n) {
    Node& of = graph_.nodes[index(n)];
    // A cause that ended while it waited is what it waited for.
    const std::int32_t late = latest_flow(n, of.begin_ns);
    if (late >= 0 && node(late).end_ns > of.asked_ns) {
      of.asked_ns = std::min(of.begin_ns, node(late).end_ns);
    }
    if (!was_held(n)) of.delay_ns = of.begin_ns - of.asked_ns;
    if (of.asked_ns == 0) {
      bind(n, -1, 0);
      return;
    }
    const std::int32_t latest = latest_ended(of.asked_ns, n);
    const std::int32_t flow = latest_flow(n, of.asked_ns);
    const TimeNs slack_ns =
        latest < 0 ? at_once_ns_ : std::max(at_once_ns_, (of.asked_ns - node(latest).end_ns) * 2);
    if (flow >= 0 && (latest < 0 || of.asked_ns - node(flow).end_ns <= slack_ns)) {
      bind(n, flow, of.asked_ns);
    } else if (!asked_by_thread(n)) {
      bind(n, latest, of.asked_ns);
    }
  }

  // Asked for from within the thread that its track stands under, or between two of its pieces.
  bool asked_by_thread(std::int32_t n) {
    const TrackInfo& root = analyze::root_of(info_, *span_of(n).track);
    const auto thread = thread_of_track_.find(root.id);
    if (thread == thread_of_track_.end()) return false;
    const std::vector<std::int32_t>& pieces = pieces_[index(thread->second)];
    const TimeNs asked_ns = node(n).asked_ns;
    auto next = std::ranges::upper_bound(pieces, asked_ns, {},
                                         [this](std::int32_t p) { return node(p).begin_ns; });
    while (next != pieces.begin() && !precedes(*(next - 1), n)) --next;
    if (next == pieces.begin()) return false;
    const std::int32_t piece = *(next - 1);
    if (node(piece).end_ns <= asked_ns) {
      bind(n, piece, asked_ns);
    } else {
      add_edge(piece, asked_ns - node(piece).begin_ns, true);
    }
    return true;
  }

  static bool shares(const Span& a, const Span& b) {
    if (a.track == b.track) return true;
    return a.track->direction == b.track->direction &&
           std::ranges::find_first_of(a.track->links, b.track->links) != a.track->links.end();
  }

  // Whether something used its link or engine until it began, and after it was asked for.
  bool was_held(std::int32_t n) {
    const Node& of = node(n);
    auto end = std::ranges::upper_bound(by_end_, of.begin_ns + kSameInstantNs, {},
                                        [this](std::int32_t p) { return node(p).end_ns; });
    while (end != by_end_.begin()) {
      const std::int32_t before = *--end;
      if (node(before).end_ns < of.begin_ns - kSameInstantNs) return false;
      if (node(before).end_ns <= of.asked_ns) return false;
      if (before != n && shares(span_of(before), span_of(n))) return true;
    }
    return false;
  }

  void add_flow_edges(std::int32_t n) {
    if (!origins_[index(n)].is_first) return;
    for (const std::int32_t cause : causes_[n]) {
      if (cause == bound_[index(n)] || !precedes(cause, n)) continue;
      if (node(cause).end_ns <= node(n).asked_ns + kSameInstantNs) {
        add_edge(cause, 0);
      } else if (node(cause).end_ns > node(n).begin_ns) {
        add_edge(cause, node(n).begin_ns - node(cause).begin_ns, true);
      }
    }
  }

  // All that ended last, and by when.
  void add_end() {
    TimeNs latest_ns = -1;
    for (auto last = by_end_.rbegin(); last != by_end_.rend(); ++last) {
      const TimeNs end_ns = node(*last).end_ns;
      if (latest_ns < 0) latest_ns = end_ns;
      if (end_ns < latest_ns - kSameInstantNs) break;
      graph_.end.push_back({*last, false, graph_.dur_ns - end_ns});
    }
    if (graph_.end.empty()) graph_.end.push_back({-1, false, graph_.dur_ns});
  }

  void fit() {
    std::vector<RecordedTransfer> transfers;
    for (const Node& node : graph_.nodes) {
      if (node.route < 0) continue;
      transfers.push_back(
          {node.route, node.asked_ns + node.delay_ns, node.begin_ns, node.end_ns, node.size_bytes});
    }
    fit_links(info_, graph_.time_scale, transfers, graph_.links);
  }

  void list_drives() {
    for (const rundb::DeviceRow& device : info_.devices) {
      const bool is_used = std::ranges::any_of(graph_.links.routes, [&](const Route& route) {
        return std::ranges::any_of(route.links, [&](std::int32_t link) {
          return graph_.links.links[index(link)].name.starts_with(device.name + ".");
        });
      });
      if (is_used) graph_.drives.push_back(device.name);
    }
  }

  double busy_share() const {
    analyze::Intervals busy;
    for (const Node& node : graph_.nodes) busy.add(node.begin_ns, node.end_ns);
    return graph_.dur_ns == 0
               ? 0
               : static_cast<double>(busy.sum_ns()) / static_cast<double>(graph_.dur_ns);
  }

  const analyze::RunInfo& info_;
  const StepData& step_;
  const TimeNs begin_ts_;
  TimeNs at_once_ns_ = 0;
  OperationGraph graph_;
  std::vector<ThreadOrder> orders_;
  std::vector<Origin> origins_;       // by node
  std::vector<std::int32_t> by_end_;  // nodes
  std::vector<bool> wakes_;          // by node: a piece whose thread waited for another's operation
  std::vector<std::int32_t> bound_;  // by node: what its binding edge is from
  std::vector<std::vector<std::int32_t>> pieces_;  // nodes, by thread
  std::unordered_map<std::int64_t, std::int32_t> thread_of_track_;
  std::unordered_map<std::int64_t, std::int32_t> link_of_;   // by id of the row
  std::unordered_map<std::int64_t, std::int32_t> route_of_;  // by track
  std::map<std::pair<std::int64_t, bool>, std::int32_t> engine_of_;
  std::map<std::string, std::int32_t> name_of_;
  std::unordered_map<std::int64_t, std::int32_t> first_node_;  // by span
  std::unordered_map<std::int64_t, std::int32_t> last_node_;
  std::unordered_map<std::int32_t, std::vector<std::int32_t>> causes_;  // by node
};

}  // namespace

OperationGraph build_graph(const RecordedWindow& window) { return Builder(window).build(); }

}  // namespace sluice::replay
