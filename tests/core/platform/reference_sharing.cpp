#include "tests/core/platform/reference_sharing.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace sluice::platform::reference {
namespace {

struct LinkRates {
  long double read = 0;
  long double write = 0;
};

std::vector<LinkRates> sum_rates(std::size_t link_count, const std::vector<Transfer>& all,
                                 const std::map<int, long double>& rates) {
  std::vector<LinkRates> sums(link_count);
  for (const auto& [i, rate] : rates) {
    const Transfer& transfer = all.at(static_cast<std::size_t>(i));
    for (const int l : transfer.route) {
      LinkRates& sum = sums.at(static_cast<std::size_t>(l));
      (transfer.direction == Direction::read ? sum.read : sum.write) += rate;
    }
    if (transfer.toll_link >= 0) {
      sums.at(static_cast<std::size_t>(transfer.toll_link)).read += rate * transfer.toll;
    }
  }
  return sums;
}

}  // namespace

long double load(const Link& link, Direction direction, long double read_rate,
                 long double write_rate) {
  const long double read = read_rate / link.read_bytes_per_s;
  const long double write = write_rate / link.write_bytes_per_s;
  if (link.duplex == Duplex::half) return read + write;
  return direction == Direction::read ? read : write;
}

std::map<int, long double> rates_of(const std::vector<Link>& links,
                                    const std::vector<Transfer>& all,
                                    const std::vector<int>& moving) {
  std::map<int, long double> rates;
  for (const int i : moving) rates[i] = 0;
  std::set<int> rising(moving.begin(), moving.end());
  const auto transfer = [&](int i) { return all.at(static_cast<std::size_t>(i)); };
  while (!rising.empty()) {
    std::map<int, long double> unit;
    for (const int i : rising) unit[i] = 1;
    const auto sums = sum_rates(links.size(), all, rates);
    const auto slopes = sum_rates(links.size(), all, unit);
    // How far all may rise before this one has to stop.
    const auto room = [&](int i) {
      long double step = transfer(i).cap - rates[i];
      for (const int l : transfer(i).route) {
        const auto at = static_cast<std::size_t>(l);
        const Direction direction = transfer(i).direction;
        const long double used = load(links[at], direction, sums[at].read, sums[at].write);
        const long double slope = load(links[at], direction, slopes[at].read, slopes[at].write);
        step = std::min(step, (1 - used) / slope);
      }
      if (transfer(i).toll_link >= 0) {
        const auto at = static_cast<std::size_t>(transfer(i).toll_link);
        const long double used = load(links[at], Direction::read, sums[at].read, sums[at].write);
        const long double slope =
            load(links[at], Direction::read, slopes[at].read, slopes[at].write);
        step = std::min(step, (1 - used) / slope);
      }
      return step;
    };
    std::map<int, long double> rooms;
    long double step = std::numeric_limits<long double>::infinity();
    for (const int i : rising) step = std::min(step, rooms[i] = room(i));
    for (const int i : rising) rates[i] += step;
    for (const auto& [i, own_room] : rooms)
      if (own_room <= step + 1e-12L * rates[i]) rising.erase(i);
  }
  return rates;
}

std::vector<TimeNs> completion_times(const std::vector<Link>& links,
                                     const std::vector<Transfer>& all) {
  std::vector<TimeNs> done(all.size(), -1);
  std::vector<long double> left;
  for (const Transfer& transfer : all) left.push_back(transfer.bytes);
  TimeNs now_ns = 0;
  while (std::count(done.begin(), done.end(), -1) > 0) {
    std::vector<int> moving;
    long double event_ns = std::numeric_limits<long double>::infinity();
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (done[i] >= 0) continue;
      if (all[i].join_ns > now_ns) {
        event_ns = std::min(event_ns, static_cast<long double>(all[i].join_ns));
      } else if (all[i].route.empty() || left[i] <= 0) {
        done[i] = now_ns;
      } else {
        moving.push_back(static_cast<int>(i));
      }
    }
    const auto rates = rates_of(links, all, moving);
    std::map<int, long double> ends_ns;
    for (const auto& [i, rate] : rates) {
      const long double dur_ns = left[static_cast<std::size_t>(i)] / rate * 1e9L;
      ends_ns[i] = static_cast<long double>(now_ns) + std::ceil(dur_ns - 1e-3L);
      event_ns = std::min(event_ns, ends_ns[i]);
    }
    if (std::isinf(event_ns)) continue;
    const auto next_ns = static_cast<TimeNs>(event_ns);
    for (const auto& [i, rate] : rates) {
      const auto at = static_cast<std::size_t>(i);
      left[at] -= rate * static_cast<long double>(next_ns - now_ns) * 1e-9L;
      if (ends_ns[i] <= event_ns) done[at] = next_ns;
    }
    now_ns = next_ns;
  }
  return done;
}

}  // namespace sluice::platform::reference
