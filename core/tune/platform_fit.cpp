// Why the search ends, and where:
//
// 1. Kernels first. What a kernel is charged does not depend on when it runs, so its rate follows
// from
//    its recorded times without a search.
// 2. Links by descent. The mismatch is the mean square of the logarithms of simulated over recorded
//    transfer times. A round asks by which factors rates would explain the recording
//    (detail/link_fit.h) and goes all the way there, or half, a quarter, an eighth of it. It is
//    kept only if at most kWorthwhile of the mismatch is left, so the mismatch falls geometrically,
//    and kRounds bounds the rest.
// 3. The simplest fit wins. A factor of its own for each of several alike devices must leave
// clearly
//    less (kClearlyLess). Links of devices, links that they share, and both are fitted apart; the
//    first of these that is within kClearly of the best is taken. In the end each rate returns to
//    the file's value where that costs next to nothing (kAsWell). So noise does not become a
//    finding.

#include "core/tune/platform_fit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "core/plan/run_plan.h"
#include "core/simulate/simulation.h"
#include "core/tune/detail/kernel_fit.h"
#include "core/tune/detail/link_fit.h"
#include "core/tune/recorded_run.h"

namespace sluice::tune {
namespace {

using detail::RateFactor;
using platform::Direction;

constexpr int kRounds = 12;
constexpr double kSettled = 0.002;    // a change of a rate that is none
constexpr double kWorthwhile = 0.98;  // of the mismatch, what a round must leave at most
constexpr double kClearlyLess = 0.9;  // of the mismatch: worth a factor for each device
constexpr double kAsWell = 1.02;      // times the mismatch: explains the recording as well
constexpr double kClearly = 1.5;      // times the mismatch: clearly worse
// Logarithms by which rates are lowered to see what depends on them. A little shows what bounds
// transfers now; where that leads nowhere, far shows what would bound them on the way.
constexpr double kALittle = 0.05;
constexpr double kFar = 0.5;
// A mismatch of a percent, squared: nearer than recordings repeat themselves.
constexpr double kNothing = 1e-4;

using RateName = std::pair<std::string, std::string>;  // owner, key

std::map<RateName, double> rates_of(const platform::Platform& platform) {
  std::map<RateName, double> rates;
  for (const platform::Link& link : platform.links) {
    rates[{link.name, "read"}] = link.read_bytes_per_s;
    rates[{link.name, "write"}] = link.write_bytes_per_s;
  }
  for (const platform::Engine& engine : platform.engines) {
    for (const auto& [key, rate] : engine.rate) rates[{engine.name, key}] = rate;
  }
  return rates;
}

// A link and an engine may have the same name, but no kernel is called as a direction is.
void scale(platform::Platform& platform, const RateFactor& factor) {
  for (const Direction direction : {Direction::read, Direction::write}) {
    if (factor.key != detail::direction_key(direction)) continue;
    for (platform::Link& link : platform.links) {
      if (link.name == factor.owner) detail::scale_link(link, direction, factor.factor);
    }
    return;
  }
  for (platform::Engine& engine : platform.engines) {
    if (engine.name == factor.owner) engine.rate.at(factor.key) *= factor.factor;
  }
}

// Seconds below which the share `part` of `values` lies, between two of them by interpolation.
double quantile(std::vector<double> values, double part) {
  std::ranges::sort(values);
  const double at = part * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (at - static_cast<double>(below)) * (values[above] - values[below]);
}

PhaseFit phase_fit(const std::vector<double>& recorded, double before, double after) {
  return {quantile(recorded, 0.5), quantile(recorded, 0.1), quantile(recorded, 0.9), before, after};
}

class Fit {
 public:
  Fit(const settings::RunConfig& config, const RecordedModel& model,
      const platform::Platform& platform, RecordedSteps recorded, const Stops& stops)
      : config_(config),
        model_(model),
        file_(platform),
        platform_(platform),
        all_(std::move(recorded)),
        stops_(stops) {
    keep_those_of_steps(all_);
    recorded_ = middle_half(all_);
  }

  Result<PlatformFit> fit() {
    if (recorded_.steps.empty() || recorded_.operations.empty()) {
      return make_error(ErrorCode::config, "no operations of any step are recorded");
    }
    ASSIGN_OR_RETURN(const plan::RunPlan before, model_.plan(config_, file_));
    ASSIGN_OR_RETURN(const simulate::SimulatedStep step_before, simulate::simulate_step(before));
    RETURN_IF_ERROR(fit_kernels());
    RETURN_IF_ERROR(fit_links());
    ASSIGN_OR_RETURN(const plan::RunPlan after, model_.plan(config_, platform_));
    ASSIGN_OR_RETURN(const simulate::SimulatedStep step_after, simulate::simulate_step(after));
    PlatformFit fit;
    fit.step_count = static_cast<int>(all_.steps.size());
    compare(step_before, step_after, fit);
    fit.rates = rates(after.platform);
    scale_unused(after.platform);
    fit.platform = std::move(platform_);
    return fit;
  }

 private:
  Result<plan::RunPlan> plan_on(const platform::Platform& platform) const {
    RETURN_IF_ERROR(unless_stopped(stops_, "fitting the platform"));
    return model_.plan(config_, platform);
  }

  // The charge of kernels does not depend on when they run. Further rounds are there only because
  // an update that decompresses goes by the slower of two rates.
  Status fit_kernels() {
    double largest = 1;
    for (int round = 0; round < kRounds && largest > kSettled; ++round) {
      ASSIGN_OR_RETURN(const plan::RunPlan plan, plan_on(platform_));
      ASSIGN_OR_RETURN(const detail::ChargedStep charged, detail::simulate_charged(plan));
      largest = 0;
      for (const RateFactor& factor : detail::kernel_factors(plan, charged, recorded_)) {
        scale(platform_, factor);
        fitted_.insert({factor.owner, factor.key});
        largest = std::max(largest, std::abs(std::log(factor.factor)));
      }
    }
    return ok_status();
  }

  struct LinkState {
    platform::Platform platform;
    std::set<RateName> fitted;
    double mismatch = 0;
  };

  // While drives are still thought too fast, a link that they share looks too slow, and then stays
  // so; and drives do while that link is thought too fast. So each sort is fitted alone first, and
  // both are doubted only if that leaves clearly more unexplained.
  Status fit_links() {
    const LinkState start{platform_, {}, 0};
    std::vector<LinkState> states;
    double least = std::numeric_limits<double>::infinity();
    for (const auto which :
         {detail::LinksFitted::of_devices, detail::LinksFitted::shared, detail::LinksFitted::all}) {
      ASSIGN_OR_RETURN(states.emplace_back(), fitted_links(start, which));
      least = std::min(least, states.back().mismatch);
    }
    const auto simplest = std::ranges::find_if(states, [&](const LinkState& state) {
      return state.mismatch <= least * kClearly + kNothing;
    });
    ASSIGN_OR_RETURN(const LinkState best, put_back_links(*simplest));
    platform_ = best.platform;
    fitted_.insert(best.fitted.begin(), best.fitted.end());
    return ok_status();
  }

  Result<LinkState> fitted_links(LinkState state, detail::LinksFitted which) const {
    for (int round = 0; round < kRounds; ++round) {
      ASSIGN_OR_RETURN(const plan::RunPlan plan, plan_on(state.platform));
      ASSIGN_OR_RETURN(const detail::ChargedStep charged, detail::simulate_charged(plan));
      state.mismatch = detail::transfer_mismatch(charged.times, recorded_);
      if (state.mismatch < kNothing) break;
      ASSIGN_OR_RETURN(const bool better, improve(plan, charged, which, state));
      if (!better) break;
    }
    return state;
  }

  // Devices that are alike in the file change alike as long as that helps; then each on its own, if
  // it explains clearly more. All rates at once first; where that leads nowhere, one kind alone.
  Result<bool> improve(const plan::RunPlan& plan, const detail::ChargedStep& charged,
                       detail::LinksFitted which, LinkState& state) const {
    std::vector<std::vector<RateFactor>> of_each;
    for (const double lower : {kALittle, kFar}) {
      ASSIGN_OR_RETURN(of_each.emplace_back(),
                       detail::link_factors(plan, charged, recorded_, which, lower));
      const std::vector<RateFactor> alike = of_likes(of_each.back());
      ASSIGN_OR_RETURN(const bool better, step_towards(alike, kWorthwhile, state));
      if (better) return true;
      for (const std::vector<RateFactor>& kind : by_kind(alike)) {
        ASSIGN_OR_RETURN(const bool alone, step_towards(kind, kWorthwhile, state));
        if (alone) return true;
      }
    }
    for (const std::vector<RateFactor>& factors : of_each) {
      ASSIGN_OR_RETURN(const bool better, step_towards(factors, kClearlyLess, state));
      if (better) return true;
    }
    return false;
  }

  // The same factor, their mean, for all that have the same rate in the file.
  std::vector<RateFactor> of_likes(std::vector<RateFactor> factors) const {
    struct Sum {
      double logarithm = 0;
      int count = 0;
    };
    const std::map<RateName, double> file = rates_of(file_);
    std::map<std::tuple<std::string, std::string, double>, Sum> sums;
    const auto likes = [&](const RateFactor& factor) -> Sum& {
      const std::string kind = platform::kind_of(file_, factor.owner);
      return sums[{kind, factor.key, file.at({factor.owner, factor.key})}];
    };
    for (const RateFactor& factor : factors) {
      likes(factor).logarithm += std::log(factor.factor);
      likes(factor).count += 1;
    }
    for (RateFactor& factor : factors) {
      factor.factor = std::exp(likes(factor).logarithm / likes(factor).count);
    }
    return factors;
  }

  std::vector<std::vector<RateFactor>> by_kind(const std::vector<RateFactor>& factors) const {
    std::map<RateName, std::vector<RateFactor>> kinds;
    for (const RateFactor& factor : factors) {
      kinds[{platform::kind_of(file_, factor.owner), factor.key}].push_back(factor);
    }
    std::vector<std::vector<RateFactor>> list;
    for (auto& [kind, of_kind] : kinds) list.push_back(std::move(of_kind));
    return list;
  }

  // All the way if that brings simulation nearer to what was recorded, else half of it, and so on:
  // what holds for small changes is carried too far where another link becomes the bound.
  Result<bool> step_towards(const std::vector<RateFactor>& factors, double at_most,
                            LinkState& state) const {
    for (const double part : {1.0, 0.5, 0.25, 0.125}) {
      platform::Platform tried = state.platform;
      for (const RateFactor& factor : factors) {
        scale(tried, {factor.owner, factor.key, std::pow(factor.factor, part)});
      }
      ASSIGN_OR_RETURN(const double now, mismatch_on(tried));
      if (now >= state.mismatch * at_most) continue;
      state.platform = std::move(tried);
      state.mismatch = now;
      for (const RateFactor& factor : factors) state.fitted.insert({factor.owner, factor.key});
      return true;
    }
    return false;
  }

  // A rate that the recording can be explained without is no finding: the file's stands again.
  Result<LinkState> put_back_links(LinkState state) const {
    std::map<std::tuple<int, std::string, std::string>, std::vector<RateFactor>> groups;
    const std::map<RateName, double> file = rates_of(file_);
    const std::map<RateName, double> fitted = rates_of(state.platform);
    for (const RateName& name : state.fitted) {
      const std::string kind = platform::kind_of(file_, name.first);
      const int turn = kind == name.first ? 0 : kind == "internal" ? 1 : 2;
      groups[{turn, kind, name.second}].push_back(
          {name.first, name.second, file.at(name) / fitted.at(name)});
    }
    for (const auto& [group, factors] : groups) {
      platform::Platform tried = state.platform;
      for (const RateFactor& factor : factors) scale(tried, factor);
      ASSIGN_OR_RETURN(const double now, mismatch_on(tried));
      if (now > state.mismatch * kAsWell + kNothing) continue;
      state.platform = std::move(tried);
      for (const RateFactor& factor : factors) state.fitted.erase({factor.owner, factor.key});
    }
    return state;
  }

  Result<double> mismatch_on(const platform::Platform& platform) const {
    ASSIGN_OR_RETURN(const plan::RunPlan plan, plan_on(platform));
    ASSIGN_OR_RETURN(const detail::ChargedStep charged, detail::simulate_charged(plan));
    return detail::transfer_mismatch(charged.times, recorded_);
  }

  void compare(const simulate::SimulatedStep& before, const simulate::SimulatedStep& after,
               PlatformFit& fit) const {
    const std::vector<simulate::ByPhase> by_step = phase_seconds(all_);
    std::vector<double> seconds;
    for (std::size_t phase = 0; phase < simulate::kPhaseCount; ++phase) {
      seconds.clear();
      for (const simulate::ByPhase& of : by_step) seconds.push_back(of[phase]);
      fit.phases[phase] = phase_fit(seconds, before.seconds[phase], after.seconds[phase]);
    }
    seconds.clear();
    for (const simulate::StepTimes& step : all_.steps) {
      seconds.push_back(static_cast<double>(step.end_ns - step.start_ns) / 1e9);
    }
    fit.step = phase_fit(seconds, before.total_seconds, after.total_seconds);
  }

  std::vector<FittedRate> rates(const platform::Platform& used) const {
    const std::map<RateName, double> before = rates_of(file_);
    std::vector<FittedRate> rates;
    for (const auto& [name, after] : rates_of(used)) {
      rates.push_back({name.first, name.second, before.at(name), after, fitted_.contains(name)});
    }
    return rates;
  }

  // A device that the run did not use is taken to differ from its file as those do, in the mean,
  // that have the same rate in the file.
  void scale_unused(const platform::Platform& used) {
    struct Sum {
      double logarithm = 0;
      int count = 0;
    };
    const std::map<RateName, double> file = rates_of(file_);
    const std::map<RateName, double> fitted = rates_of(used);
    std::map<std::tuple<std::string, std::string, double>, Sum> sums;  // by kind, key, file's rate
    for (const RateName& name : fitted_) {
      Sum& sum = sums[{platform::kind_of(file_, name.first), name.second, file.at(name)}];
      sum.logarithm += std::log(fitted.at(name) / file.at(name));
      sum.count += 1;
    }
    for (const auto& [name, rate] : file) {
      const auto sum = sums.find({platform::kind_of(file_, name.first), name.second, rate});
      if (fitted.contains(name) || sum == sums.end()) continue;
      scale(platform_,
            {name.first, name.second, std::exp(sum->second.logarithm / sum->second.count)});
    }
  }

  const settings::RunConfig& config_;
  const RecordedModel& model_;
  const platform::Platform& file_;
  platform::Platform platform_;
  RecordedSteps all_;
  RecordedSteps recorded_;  // of them, those that are fitted to
  const Stops& stops_;
  std::set<RateName> fitted_;
};

}  // namespace

Result<PlatformFit> fit_platform(const settings::RunConfig& config, const RecordedModel& model,
                                 const platform::Platform& platform, RecordedSteps recorded,
                                 const Stops& stops) {
  return Fit(config, model, platform, std::move(recorded), stops).fit();
}

bool PlatformFit::is_good() const {
  constexpr double kGood = 0.1;  // of a step
  return std::abs(step.error_after()) <= kGood;
}

std::size_t PlatformFit::worst_phase() const {
  const auto seconds = [](const PhaseFit& phase) { return std::abs(phase.after - phase.recorded); };
  return static_cast<std::size_t>(std::ranges::max_element(phases, {}, seconds) - phases.begin());
}

}  // namespace sluice::tune
