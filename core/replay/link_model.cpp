// Why the fit can be trusted as far as it goes:
//
// 1. A transfer that had all its links to itself shows what one transfer reaches: no sharing is in
//    its time. These give each route its rate, and, by sizes that differ, its latency.
// 2. Where several were under way, each is taken to have moved its bytes evenly. As long as
//    together they moved what each would alone, no link between them was full, and none is fitted.
// 3. Where they moved less, a link was full, and what crossed it then is its rate. Which of a
//    route's links it was is not to be seen from this alone: a link whose declared rate was reached
//    is it, and its neighbours keep theirs.

#include "core/replay/link_model.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>

#include "base/saturating.h"
#include "core/replay/program_order.h"

namespace sluice::replay {
namespace {

using platform::Direction;

constexpr double kAloneShare = 0.9;       // of its time: then a transfer counts as alone
constexpr double kTogetherSlower = 0.95;  // below this share of what all would move alone: full
constexpr double kWorthShare = 0.05;      // of a link's busy time, for a rate to be fitted from
constexpr double kDoubtShare = 0.5;       // of it, for a declared rate to be doubted
constexpr double kReached = 0.9;          // of a declared rate
constexpr double kSizesDiffer = 4;        // largest to smallest, for a latency to be seen
constexpr double kOverlapsMax = 0.01;     // of the transfers, for a link to count as in order

Direction other(Direction direction) {
  return direction == Direction::read ? Direction::write : Direction::read;
}

struct Use {          // one direction of a link
  double all_s = 0;   // something moved
  double busy_s = 0;  // of it, without time shared with the other direction
  double full_s = 0;  // of that
  double full_bytes = 0;
  std::vector<std::pair<double, double>> rates;  // bytes a second, for so many seconds

  // 0: it was full in less than this part of its time.
  double fitted(double worth_share) const {
    return full_s > 0 && full_s >= worth_share * all_s ? full_bytes / full_s : 0;
  }
  // What went over it in the fastest part of the time that counts, at the least.
  double most_bytes_per_s = 0;
  void find_most() {
    std::ranges::sort(rates, std::greater<>());
    double seconds = 0;
    for (const auto& [bytes_per_s, of_seconds] : rates) {
      seconds += of_seconds;
      most_bytes_per_s = bytes_per_s;
      if (seconds >= kWorthShare * busy_s) break;
    }
    rates = {};
  }
};

class Fit {
 public:
  Fit(const analyze::RunInfo& info, double time_scale, std::span<const RecordedTransfer> transfers,
      LinkModel& model)
      : transfers_(transfers), model_(model), uses_(model.links.size()) {
    const auto declared = [&](double rate) {
      return std::isfinite(rate) && rate > 0 ? rate / time_scale : 0;
    };
    for (const rundb::LinkRow& row : info.links)
      declared_.push_back({declared(row.read_bytes_per_s), declared(row.write_bytes_per_s)});
  }

  void run() {
    find_queues();
    for (const RecordedTransfer& transfer : transfers_) moving_.push_back(moving_of(transfer));
    alone_s_.assign(transfers_.size(), 0);
    sweep([this](double seconds) { note_alone(seconds); });
    fit_routes();
    for (const Route& route : model_.routes) own_.push_back(own_of(route));
    fit_all(Pass::own_links);
    fit_all(Pass::shared_links);
    find_limits();
  }

 private:
  struct Moving {  // while bytes flow
    TimeNs begin_ns = 0;
    TimeNs end_ns = 0;
    double seconds = 0;
    double bytes_per_s = 0;
  };

  const Route& route_of(std::size_t transfer) const {
    return model_.routes[static_cast<std::size_t>(transfers_[transfer].route)];
  }
  ModelledLink& link(std::int32_t index) { return model_.links[static_cast<std::size_t>(index)]; }

  // What shared links could have been asked for is known when those behind them are.
  enum class Pass { own_links, shared_links };
  void fit_all(Pass pass) {
    uses_.assign(model_.links.size(), {});
    sweep([this](double seconds) { note_use(seconds); });
    for (auto& directions : uses_) {
      for (Use& use : directions) use.find_most();
    }
    for (std::size_t l = 0; l < model_.links.size(); ++l) {
      const bool is_own = std::ranges::count(own_, static_cast<std::int32_t>(l)) > 0;
      if (is_own == (pass == Pass::own_links)) fit_link(l);
    }
    for (std::size_t l = 0; l < model_.links.size(); ++l) heed_neighbours(l);
  }
  // The link of a route that the fewest other routes cross.
  std::int32_t own_of(const Route& route) const {
    return *std::ranges::min_element(route.links, {},
                                     [this](std::int32_t l) { return route_count(l); });
  }

  // Transfers of a link that wait until the one before has ended come in order.
  void find_queues() {
    struct Order {
      TimeNs end_ns = 0;
      std::int64_t count = 0, overlaps = 0, queued = 0;
    };
    std::vector<std::array<Order, 2>> orders(model_.links.size());
    for (std::size_t t = 0; t < transfers_.size(); ++t) {  // in order of begin
      const RecordedTransfer& transfer = transfers_[t];
      for (const std::int32_t l : route_of(t).links) {
        Order& order = orders[static_cast<std::size_t>(l)][side(route_of(t).direction)];
        order.count += 1;
        order.overlaps += transfer.begin_ns + kSameInstantNs < order.end_ns ? 1 : 0;
        order.queued += transfer.asked_ns + kSameInstantNs < order.end_ns ? 1 : 0;
        order.end_ns = std::max(order.end_ns, transfer.end_ns);
      }
    }
    for (std::size_t l = 0; l < orders.size(); ++l) {
      const auto overlaps = [](const Order& order) {
        return static_cast<double>(order.overlaps) >
               kOverlapsMax * static_cast<double>(order.count);
      };
      model_.links[l].is_in_order =
          std::ranges::none_of(orders[l], overlaps) &&
          std::ranges::any_of(orders[l], [](const Order& order) { return order.queued > 0; });
    }
  }

  Moving moving_of(const RecordedTransfer& transfer) const {
    const Route& route = model_.routes[static_cast<std::size_t>(transfer.route)];
    TimeNs latency_ns = 0;
    bool is_in_order = false;
    for (const std::int32_t l : route.links) {
      latency_ns = saturating_sum(latency_ns, model_.links[static_cast<std::size_t>(l)].latency_ns);
      is_in_order = is_in_order || model_.links[static_cast<std::size_t>(l)].is_in_order;
    }
    // In a queue the latency passes meanwhile.
    if (is_in_order) latency_ns -= std::min(latency_ns, transfer.begin_ns - transfer.asked_ns);
    const TimeNs dur_ns = transfer.end_ns - transfer.begin_ns;
    Moving moving{.begin_ns = transfer.begin_ns + std::min(latency_ns, dur_ns - 1),
                  .end_ns = transfer.end_ns};
    set_seconds(moving, transfer.size_bytes);
    return moving;
  }
  static void set_seconds(Moving& moving, double size_bytes) {
    moving.seconds = static_cast<double>(moving.end_ns - moving.begin_ns) / 1e9;
    moving.bytes_per_s = size_bytes / moving.seconds;
  }

  // Tells of each stretch of time in which the same transfers move.
  template <typename Note>
  void sweep(const Note& note) {
    struct Event {
      TimeNs at_ns;
      std::size_t transfer;
    };
    std::vector<Event> begins;
    std::vector<Event> ends;
    for (std::size_t t = 0; t < moving_.size(); ++t) {
      begins.push_back({moving_[t].begin_ns, t});
      ends.push_back({moving_[t].end_ns, t});
    }
    std::ranges::stable_sort(begins, {}, &Event::at_ns);
    std::ranges::stable_sort(ends, {}, &Event::at_ns);
    active_.clear();
    counts_.assign(model_.links.size(), {});
    TimeNs now_ns = 0;
    for (std::size_t b = 0, e = 0; e < ends.size();) {
      const bool begins_next = b < begins.size() && begins[b].at_ns < ends[e].at_ns;
      const Event& event = begins_next ? begins[b++] : ends[e++];
      if (!active_.empty() && event.at_ns > now_ns)
        note(static_cast<double>(event.at_ns - now_ns) / 1e9);
      now_ns = event.at_ns;
      change(event.transfer, begins_next);
    }
  }
  void change(std::size_t transfer, bool begins) {
    if (begins) {
      active_.push_back(transfer);
    } else {
      std::erase(active_, transfer);
    }
    const std::size_t to = side(route_of(transfer).direction);
    for (const std::int32_t l : route_of(transfer).links) {
      counts_[static_cast<std::size_t>(l)][to] += begins ? 1 : -1;
    }
  }

  std::int32_t count_on(std::int32_t l, Direction direction) const {
    const auto& counts = counts_[static_cast<std::size_t>(l)];
    const bool is_full_duplex = model_.links[static_cast<std::size_t>(l)].is_full_duplex;
    return counts[side(direction)] + (is_full_duplex ? 0 : counts[side(other(direction))]);
  }

  void note_alone(double seconds) {
    for (const std::size_t t : active_) {
      const Route& route = route_of(t);
      if (std::ranges::all_of(route.links,
                              [&](std::int32_t l) { return count_on(l, route.direction) == 1; }))
        alone_s_[t] += seconds;
    }
  }

  void fit_routes() {
    std::vector<std::vector<std::size_t>> alone(model_.routes.size());
    for (std::size_t t = 0; t < transfers_.size(); ++t) {
      if (alone_s_[t] >= kAloneShare * moving_[t].seconds)
        alone[static_cast<std::size_t>(transfers_[t].route)].push_back(t);
    }
    for (std::size_t r = 0; r < alone.size(); ++r) {
      Route& route = model_.routes[r];
      route.latency_ns = fitted_latency(alone[r]);
      double bytes = 0;
      double seconds = 0;
      for (const std::size_t t : alone[r]) {
        bytes += transfers_[t].size_bytes;
        seconds += moving_[t].seconds - static_cast<double>(route.latency_ns) / 1e9;
      }
      if (seconds > 0) route.bytes_per_s = bytes / seconds;
    }
    take_latencies();
    take_mean_at_least();
  }

  void take_latencies() {
    for (std::size_t t = 0; t < transfers_.size(); ++t) {
      Moving& moving = moving_[t];
      moving.begin_ns += std::min(route_of(t).latency_ns, moving.end_ns - moving.begin_ns - 1);
      set_seconds(moving, transfers_[t].size_bytes);
    }
  }

  // Alone, none is slower than beside others: where the few that were alone were, something else
  // held them up.
  void take_mean_at_least() {
    std::vector<std::pair<double, double>> sums(model_.routes.size());
    for (std::size_t t = 0; t < transfers_.size(); ++t) {
      auto& [bytes, seconds] = sums[static_cast<std::size_t>(transfers_[t].route)];
      bytes += transfers_[t].size_bytes;
      seconds += moving_[t].seconds;
    }
    for (std::size_t r = 0; r < sums.size(); ++r) {
      Route& route = model_.routes[r];
      if (route.bytes_per_s > 0)
        route.bytes_per_s = std::max(route.bytes_per_s, sums[r].first / sums[r].second);
    }
  }

  // What the times have left at no bytes: the line through the median times of classes of size
  // whose slope is the median of all pairs' (Theil and Sen), so that no single slow one counts.
  TimeNs fitted_latency(const std::vector<std::size_t>& alone) const {
    std::map<int, std::vector<std::pair<double, double>>> classes;  // seconds, bytes
    double shortest_s = std::numeric_limits<double>::infinity();
    for (const std::size_t t : alone) {
      const double bytes = transfers_[t].size_bytes;
      classes[static_cast<int>(std::log2(bytes + 1))].emplace_back(moving_[t].seconds, bytes);
      shortest_s = std::min(shortest_s, moving_[t].seconds);
    }
    std::vector<std::pair<double, double>> points;
    for (auto& [size, members] : classes) {
      const auto middle = members.begin() + static_cast<std::ptrdiff_t>(members.size() / 2);
      std::ranges::nth_element(members, middle);
      points.push_back(*middle);
    }
    if (points.size() < 2 || points.back().second < kSizesDiffer * points.front().second) return 0;
    std::vector<double> slopes;
    for (std::size_t a = 0; a < points.size(); ++a) {
      for (std::size_t b = a + 1; b < points.size(); ++b) {
        slopes.push_back((points[b].first - points[a].first) /
                         (points[b].second - points[a].second));
      }
    }
    const double slope = median(std::move(slopes));
    std::vector<double> rests;
    for (const auto& [seconds, bytes] : points) rests.push_back(seconds - slope * bytes);
    const double latency_s = std::clamp(median(std::move(rests)), 0.0, kAloneShare * shortest_s);
    return static_cast<TimeNs>(latency_s * 1e9);
  }
  static double median(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::ranges::nth_element(values, middle);
    return *middle;
  }

  struct Sum {
    double bytes_per_s = 0;
    std::size_t count = 0;
    bool shares_time = false;              // with the other direction, so that it says nothing
    std::map<std::int32_t, double> alone;  // what each would move alone, by its own link
  };

  // What a link could have been asked for: what its transfers would move alone, as far as their
  // own links let them.
  double demand(std::int32_t l, std::size_t to, const Sum& sum) const {
    double demand = 0;
    for (const auto& [own, alone] : sum.alone) {
      const double limit = model_.links[static_cast<std::size_t>(own)].bytes_per_s[to];
      demand += own != l && limit > 0 ? std::min(alone, limit) : alone;
    }
    return demand;
  }

  // A half-duplex link on the route has traffic both ways.
  bool shares_time(const Route& route) const {
    return std::ranges::any_of(route.links, [&](std::int32_t l) {
      return !model_.links[static_cast<std::size_t>(l)].is_full_duplex &&
             counts_[static_cast<std::size_t>(l)][side(other(route.direction))] > 0;
    });
  }

  void note_use(double seconds) {
    std::map<std::pair<std::int32_t, std::size_t>, Sum> sums;
    for (const std::size_t t : active_) {
      const Route& route = route_of(t);
      const std::int32_t own = own_[static_cast<std::size_t>(transfers_[t].route)];
      for (const std::int32_t l : route.links) {
        Sum& sum = sums[{l, side(route.direction)}];
        sum.bytes_per_s += moving_[t].bytes_per_s;
        sum.alone[own] +=
            route.bytes_per_s > 0 ? route.bytes_per_s : std::numeric_limits<double>::infinity();
        sum.count += 1;
        sum.shares_time = sum.shares_time || shares_time(route);
      }
    }
    for (const auto& [key, sum] : sums) {
      const auto& [l, to] = key;
      Use& use = uses_[static_cast<std::size_t>(l)][to];
      use.all_s += seconds;
      if (sum.shares_time) continue;
      use.busy_s += seconds;
      use.rates.emplace_back(sum.bytes_per_s, seconds);
      const double wanted = demand(l, to, sum);
      if (sum.count < 2 && std::isfinite(wanted)) continue;
      if (sum.bytes_per_s >= kTogetherSlower * wanted) continue;
      use.full_s += seconds;
      use.full_bytes += seconds * sum.bytes_per_s;
    }
  }

  std::size_t route_count(std::int32_t l) const {
    return static_cast<std::size_t>(std::ranges::count_if(model_.routes, [l](const Route& route) {
      return std::ranges::find(route.links, l) != route.links.end();
    }));
  }
  // The links of a route that the fewest other routes cross: what a transfer alone is limited by.
  bool is_own(const Route& route, std::int32_t l) const {
    return std::ranges::all_of(
        route.links, [&](std::int32_t beside) { return route_count(l) <= route_count(beside); });
  }

  void fit_link(std::size_t l) {
    ModelledLink& link = model_.links[l];
    for (const Direction direction : {Direction::read, Direction::write}) {
      const std::size_t to = side(direction);
      double alone = 0;
      bool is_limit = false;
      for (const Route& route : model_.routes) {
        if (route.direction != direction) continue;
        if (std::ranges::find(route.links, static_cast<std::int32_t>(l)) == route.links.end())
          continue;
        alone = std::max(alone, route.bytes_per_s);
        is_limit = is_limit || is_own(route, static_cast<std::int32_t>(l));
      }
      const double declared = declared_[l][to];
      double rate = uses_[l][to].fitted(declared > 0 ? kDoubtShare : kWorthShare);
      if (rate > 0 || (declared == 0 && is_limit))
        rate = std::max(rate, uses_[l][to].most_bytes_per_s);
      if (rate == 0 && declared == 0) continue;
      link.source[to] = rate > 0 ? RateSource::fitted : RateSource::declared;
      rate = rate > 0 ? std::max(rate, alone) : declared;
      link.bytes_per_s[to] = declared > 0 ? std::min(declared, rate) : rate;
    }
  }

  // Whether transfers of the route were as fast as this link declares to be.
  bool reached(const Route& route, std::int32_t l) const {
    const std::size_t to = side(route.direction);
    const double declared = declared_[static_cast<std::size_t>(l)][to];
    const double most =
        std::max(route.bytes_per_s, uses_[static_cast<std::size_t>(l)][to].most_bytes_per_s);
    return declared > 0 && most >= kReached * declared;
  }

  // A route none of whose transfers was alone: where no link of it was full, what each moved is
  // what one reaches.
  void find_limits() {
    std::vector<Slack> slacks(model_.routes.size());
    sweep([&](double seconds) { note_slack(seconds, slacks); });
    for (std::size_t r = 0; r < slacks.size(); ++r) {
      Route& route = model_.routes[r];
      if (route.bytes_per_s > 0 || slacks[r].free_s < kDoubtShare * slacks[r].all_s) continue;
      route.bytes_per_s = slacks[r].free_bytes / slacks[r].free_s;
    }
  }
  struct Slack {
    double all_s = 0;
    double free_s = 0;
    double free_bytes = 0;
  };
  void note_slack(double seconds, std::vector<Slack>& slacks) {
    std::vector<std::array<double, 2>> used(model_.links.size());  // of the rate
    for (const std::size_t t : active_) {
      const std::size_t to = side(route_of(t).direction);
      for (const std::int32_t l : route_of(t).links) {
        const double rate = link(l).bytes_per_s[to];
        if (rate > 0) used[static_cast<std::size_t>(l)][to] += moving_[t].bytes_per_s / rate;
      }
    }
    const auto is_full = [&](std::int32_t l, std::size_t to) {
      const auto& of = used[static_cast<std::size_t>(l)];
      return (link(l).is_full_duplex ? of[to] : of[0] + of[1]) >= kReached;
    };
    for (const std::size_t t : active_) {
      const Route& route = route_of(t);
      Slack& slack = slacks[static_cast<std::size_t>(transfers_[t].route)];
      slack.all_s += seconds;
      if (std::ranges::any_of(route.links,
                              [&](std::int32_t l) { return is_full(l, side(route.direction)); }))
        continue;
      slack.free_s += seconds;
      slack.free_bytes += seconds * moving_[t].bytes_per_s;
    }
  }

  // A link that seems slower than declared, while each of its routes has one that reached what it
  // declares, waited for those.
  void heed_neighbours(std::size_t l) {
    ModelledLink& link = model_.links[l];
    const auto self = static_cast<std::int32_t>(l);
    for (const Direction direction : {Direction::read, Direction::write}) {
      const std::size_t to = side(direction);
      if (declared_[l][to] == 0 || link.source[to] != RateSource::fitted) continue;
      if (link.bytes_per_s[to] >= kReached * declared_[l][to]) continue;
      const bool waited = std::ranges::all_of(model_.routes, [&](const Route& route) {
        const bool crosses = std::ranges::find(route.links, self) != route.links.end();
        if (route.direction != direction || !crosses) return true;
        const bool was_alone =
            route.bytes_per_s > 0 && route.bytes_per_s < kReached * declared_[l][to];
        return !was_alone && std::ranges::any_of(route.links, [&](std::int32_t beside) {
          return beside != self && reached(route, beside);
        });
      });
      if (!waited) continue;
      link.bytes_per_s[to] = declared_[l][to];
      link.source[to] = RateSource::declared;
    }
  }

  std::span<const RecordedTransfer> transfers_;
  LinkModel& model_;
  std::vector<std::array<double, 2>> declared_;
  std::vector<Moving> moving_;
  std::vector<double> alone_s_;
  std::vector<std::array<Use, 2>> uses_;
  std::vector<std::int32_t> own_;  // by route
  std::vector<std::size_t> active_;
  std::vector<std::array<std::int32_t, 2>> counts_;
};

}  // namespace

void fit_links(const analyze::RunInfo& info, double time_scale,
               std::span<const RecordedTransfer> transfers, LinkModel& model) {
  Fit(info, time_scale, transfers, model).run();
}

}  // namespace sluice::replay
