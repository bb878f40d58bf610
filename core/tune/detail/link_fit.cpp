#include "core/tune/detail/link_fit.h"

#include <algorithm>
#include <cmath>

#include "core/plan/run_plan.h"

namespace sluice::tune::detail {
namespace {

using platform::Direction;
using platform::LinkId;

// A link that has less to do with a stage's time, as the share of a change that arrives there.
constexpr double kNoDifference = 0.2;
// A stage whose time depends less than half on rates takes its time otherwise: in latencies.
constexpr double kDependsOnRates = 0.5;
// Pulls a rate that hardly matters towards what it was, against a weight of 1 for what is recorded.
constexpr double kKeep = 1e-2;
constexpr double kMostAtOnce = 1.1;  // e^1.1 = 3: the way further on looks different from there

// A link of each device, or one that they share, in one direction.
struct Kind {
  enum class Place : std::uint8_t { drive, internal, shared };
  Place place = Place::drive;
  LinkId shared{-1};
  Direction direction = Direction::read;
};

// -1: the device has none.
LinkId link_of(const Kind& kind, const platform::Device& device) {
  switch (kind.place) {
    case Kind::Place::drive:
      return device.host_route.back();
    case Kind::Place::internal:
      return device.internal_route.empty() ? LinkId{-1} : device.internal_route.back();
    case Kind::Place::shared:
      break;
  }
  return std::ranges::count(device.host_route, kind.shared) > 0 ? kind.shared : LinkId{-1};
}

std::vector<LinkId> shared_links(const platform::Platform& platform) {
  std::vector<LinkId> shared;
  for (const platform::Device& device : platform.devices) {
    for (std::size_t i = 0; i + 1 < device.host_route.size(); ++i) {
      if (std::ranges::count(shared, device.host_route[i]) == 0) {
        shared.push_back(device.host_route[i]);
      }
    }
  }
  return shared;
}

std::vector<Kind> kinds_of(const platform::Platform& platform, LinksFitted which) {
  std::vector<Kind> kinds;
  for (const Direction direction : {Direction::read, Direction::write}) {
    if (which != LinksFitted::shared) {
      kinds.push_back({Kind::Place::drive, LinkId{-1}, direction});
      kinds.push_back({Kind::Place::internal, LinkId{-1}, direction});
    }
    if (which != LinksFitted::of_devices) {
      for (const LinkId link : shared_links(platform)) {
        kinds.push_back({Kind::Place::shared, link, direction});
      }
    }
  }
  return kinds;
}

// x of A x = b, A symmetric and positive definite.
std::vector<double> solve(std::vector<std::vector<double>> a, std::vector<double> b) {
  const std::size_t count = b.size();
  for (std::size_t p = 0; p < count; ++p) {
    for (std::size_t row = p + 1; row < count; ++row) {
      const double share = a[row][p] / a[p][p];
      for (std::size_t k = p; k < count; ++k) a[row][k] -= share * a[p][k];
      b[row] -= share * b[p];
    }
  }
  for (std::size_t p = count; p-- > 0;) {
    for (std::size_t k = p + 1; k < count; ++k) b[p] -= a[p][k] * b[k];
    b[p] /= a[p][p];
  }
  return b;
}

// One stage's transfers of one device: what each kind has to do with their time, and by how much
// (as a logarithm) they should be faster.
struct Row {
  std::vector<double> share;
  double wanted = 0;
  double weight = 0;
};

class LinkFit {
 public:
  LinkFit(const plan::RunPlan& plan, const ChargedStep& charged, const RecordedSteps& recorded,
          LinksFitted which, double lower)
      : plan_(plan),
        kinds_(kinds_of(plan.platform, which)),
        simulated_(transfer_uses(charged.times)),
        recorded_(transfer_uses(recorded)),
        lower_(lower) {}

  Result<std::vector<RateFactor>> factors() {
    std::vector<std::map<TransferKey, double>> shares;
    for (const Kind& kind : kinds_) {
      ASSIGN_OR_RETURN(shares.emplace_back(), shares_of(kind));
    }
    for (std::size_t d = 0; d < plan_.platform.devices.size(); ++d) {
      const std::vector<Row> rows = rows_of(DeviceId{static_cast<std::int32_t>(d)}, shares);
      if (!rows.empty()) add_device(plan_.platform.devices[d], rows);
    }
    std::vector<RateFactor> factors;
    for (const auto& [of, sum] : sums_) {
      const double mean = std::clamp(sum.weighted / sum.weight, -kMostAtOnce, kMostAtOnce);
      factors.push_back({of.first, of.second, std::exp(mean)});
    }
    return factors;
  }

 private:
  struct Sum {
    double weighted = 0;
    double weight = 0;
  };

  // By transfers: 1 if they take as much longer as the links of this kind are slower, 0 if it is
  // all the same to them.
  Result<std::map<TransferKey, double>> shares_of(const Kind& kind) const {
    plan::RunPlan slower = plan_;
    std::vector<LinkId> done;
    for (const platform::Device& device : plan_.platform.devices) {
      const LinkId id = link_of(kind, device);
      if (platform::index_of(id) < 0 || std::ranges::count(done, id) > 0) continue;
      done.push_back(id);
      scale_link(slower.platform.links[static_cast<std::size_t>(platform::index_of(id))],
                 kind.direction, std::exp(-lower_));
    }
    std::map<TransferKey, double> shares;
    if (done.empty()) return shares;
    ASSIGN_OR_RETURN(const ChargedStep step, simulate_charged(slower));
    for (const auto& [key, use] : transfer_uses(step.times)) {
      const auto before = simulated_.find(key);
      if (before == simulated_.end()) continue;
      const double longer = use.seconds_per_byte() / before->second.seconds_per_byte();
      shares[key] = std::clamp(std::log(longer) / lower_, 0.0, 1.0);
    }
    return shares;
  }

  std::vector<Row> rows_of(DeviceId device,
                           const std::vector<std::map<TransferKey, double>>& shares) const {
    std::vector<Row> rows;
    double weight = 0;
    for (const auto& [key, use] : recorded_) {
      const auto simulated = simulated_.find(key);
      const DeviceId of = std::get<DeviceId>(key);
      if ((of != device && of != kNoDevice) || simulated == simulated_.end()) continue;
      Row row;
      double sum = 0;
      for (const auto& of_kind : shares) {
        const auto share = of_kind.find(key);
        row.share.push_back(share == of_kind.end() ? 0 : share->second);
        sum += row.share.back();
      }
      if (sum < kDependsOnRates) continue;
      row.wanted = std::log(simulated->second.seconds_per_byte() / use.seconds_per_byte());
      row.weight = use.busy_seconds;
      weight += row.weight;
      rows.push_back(std::move(row));
    }
    for (Row& row : rows) row.weight /= weight;
    return rows;
  }

  // Least squares, with a weak pull of every rate towards what it is.
  void add_device(const platform::Device& device, const std::vector<Row>& rows) {
    const std::size_t count = kinds_.size();
    std::vector<std::vector<double>> a(count, std::vector<double>(count, 0));
    std::vector<double> b(count, 0);
    for (std::size_t i = 0; i < count; ++i) {
      a[i][i] = kKeep;
      for (const Row& row : rows) {
        b[i] += row.weight * row.share[i] * row.wanted;
        for (std::size_t k = 0; k < count; ++k) {
          a[i][k] += row.weight * row.share[i] * row.share[k];
        }
      }
    }
    const std::vector<double> logarithm = solve(std::move(a), std::move(b));
    for (std::size_t i = 0; i < count; ++i) {
      double most = 0;
      for (const Row& row : rows) most = std::max(most, row.share[i]);
      if (most < kNoDifference) continue;
      const LinkId id = link_of(kinds_[i], device);
      if (platform::index_of(id) < 0) continue;
      const auto& link = plan_.platform.links[static_cast<std::size_t>(platform::index_of(id))];
      Sum& sum = sums_[{link.name, direction_key(kinds_[i].direction)}];
      sum.weighted += most * logarithm[i];
      sum.weight += most;
    }
  }

  const plan::RunPlan& plan_;
  const std::vector<Kind> kinds_;
  const std::map<TransferKey, TransferUse> simulated_;
  const std::map<TransferKey, TransferUse> recorded_;
  const double lower_;
  std::map<std::pair<std::string, std::string>, Sum> sums_;  // by link and direction
};

}  // namespace

Result<std::vector<RateFactor>> link_factors(const plan::RunPlan& plan, const ChargedStep& charged,
                                             const RecordedSteps& recorded, LinksFitted which,
                                             double lower) {
  return LinkFit(plan, charged, recorded, which, lower).factors();
}

double transfer_mismatch(const RecordedSteps& simulated, const RecordedSteps& recorded) {
  const std::map<TransferKey, TransferUse> simulated_uses = transfer_uses(simulated);
  double sum = 0;
  double weight = 0;
  for (const auto& [key, use] : transfer_uses(recorded)) {
    const auto other = simulated_uses.find(key);
    if (other == simulated_uses.end()) continue;
    const double wanted = std::log(other->second.seconds_per_byte() / use.seconds_per_byte());
    sum += use.busy_seconds * wanted * wanted;
    weight += use.busy_seconds;
  }
  return weight > 0 ? sum / weight : 0;
}

}  // namespace sluice::tune::detail
