#include "core/tune/tuning.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <limits>

#include "base/check.h"
#include "core/plan/run_plan.h"
#include "core/settings/clipping.h"
#include "core/simulate/simulation.h"
#include "core/tune/layer_choices.h"

namespace sluice::tune {
namespace {

// A change that helps less is not worth the telling.
constexpr double kWorthwhileShare = 0.002;
constexpr std::int64_t kMoreDevicesMax = 6;  // tried one by one

class SettingSearch {
 public:
  SettingSearch(const std::vector<TuneKnob>& knobs, const TuneEvaluate& evaluate)
      : knobs_(knobs), evaluate_(evaluate) {}

  Result<double> seconds(const TuneSettings& settings) {
    const auto known = known_.find(settings);
    if (known != known_.end()) return known->second;
    ASSIGN_OR_RETURN(const double seconds, evaluate_(settings));
    known_.emplace(settings, seconds);
    return seconds;
  }

  Result<TuneSettings> best_from(const TuneSettings& start) {
    TuneSettings best = start;
    for (TuneSettings& settings : fork_starts(start)) {
      RETURN_IF_ERROR(descend(settings));
      RETURN_IF_ERROR(take_if_better(settings, best));
    }
    return best;
  }

  int evaluation_count() const { return static_cast<int>(known_.size()); }

 private:
  // A knob at a time until none helps, then the joint ones together, and again.
  Status descend(TuneSettings& settings) {
    TuneSettings before;
    do {
      RETURN_IF_ERROR(turn_all(settings));
      before = settings;
      RETURN_IF_ERROR(turn_jointly(settings));
    } while (settings != before);
    return ok_status();
  }

  Status turn_jointly(TuneSettings& settings) {
    bool better = true;
    while (better) {
      better = false;
      for (const TuneSettings& tried : joint_neighbours(settings)) {
        ASSIGN_OR_RETURN(const bool taken, take_if_better(tried, settings));
        better = better || taken;
      }
    }
    return ok_status();
  }

  Status turn_all(TuneSettings& settings) {
    std::size_t unchanged_count = 0;
    for (std::size_t k = 0; unchanged_count < knobs_.size(); k = (k + 1) % knobs_.size()) {
      const bool is_fork = knobs_[k].kind == TuneKnob::Kind::fork;
      ASSIGN_OR_RETURN(const bool changed, is_fork ? false : turn(knobs_[k], settings));
      unchanged_count = changed ? 1 : unchanged_count + 1;
    }
    return ok_status();
  }

  // To the knob's best value, if that helps.
  Result<bool> turn(const TuneKnob& knob, TuneSettings& settings) {
    bool changed = false;
    for (const TuneSettings& tried : with_each_value(knob, settings)) {
      ASSIGN_OR_RETURN(const bool better, take_if_better(tried, settings));
      changed = changed || better;
    }
    return changed;
  }

  Result<bool> take_if_better(const TuneSettings& tried, TuneSettings& best) {
    ASSIGN_OR_RETURN(const double least, seconds(best));
    ASSIGN_OR_RETURN(const double now, seconds(tried));
    if (now >= least * (1 - kWorthwhileShare)) return false;
    best = tried;
    return true;
  }

  static std::vector<TuneSettings> with_each_value(const TuneKnob& knob,
                                                   const TuneSettings& settings) {
    std::vector<TuneSettings> all;
    for (const std::string& value : knob.values) {
      all.push_back(settings);
      all.back()[knob.key] = value;
    }
    return all;
  }

  // `start`, and `start` with each value of a fork.
  std::vector<TuneSettings> fork_starts(const TuneSettings& start) const {
    std::vector<TuneSettings> starts = {start};
    for (const TuneKnob& knob : knobs_) {
      if (knob.kind != TuneKnob::Kind::fork) continue;
      for (TuneSettings& other : with_each_value(knob, start)) {
        if (other != start) starts.push_back(std::move(other));
      }
    }
    return starts;
  }

  // `settings` with each joint knob up, down or as it is, in all combinations.
  std::vector<TuneSettings> joint_neighbours(const TuneSettings& settings) const {
    std::vector<TuneSettings> all = {settings};
    for (const TuneKnob& knob : knobs_) {
      if (knob.kind != TuneKnob::Kind::joint) continue;
      const auto at = std::ranges::find(knob.values, settings.at(knob.key)) - knob.values.begin();
      std::vector<TuneSettings> wider;
      for (const TuneSettings& one : all) {
        wider.push_back(one);
        for (auto next = at - knob.reach; next <= at + knob.reach; ++next) {
          if (next == at || next < 0 || next >= std::ssize(knob.values)) continue;
          wider.push_back(one);
          wider.back()[knob.key] = knob.values[static_cast<std::size_t>(next)];
        }
      }
      all = std::move(wider);
    }
    return all;
  }

  const std::vector<TuneKnob>& knobs_;
  const TuneEvaluate& evaluate_;
  std::map<TuneSettings, double> known_;
};

// Parameters a second that a device's own links let through: 16 bytes read of each, 12 written.
double link_speed(const platform::Platform& platform, std::span<const platform::LinkId> route) {
  double slowest = 0;  // seconds a parameter
  for (const platform::LinkId id : route) {
    const platform::Link& link = platform.links[static_cast<std::size_t>(index_of(id))];
    const double read = 16 / link.read_bytes_per_s;
    const double write = 12 / link.write_bytes_per_s;
    const bool is_half = link.duplex == platform::Duplex::half;
    slowest = std::max(slowest, is_half ? read + write : std::max(read, write));
  }
  return 1 / slowest;
}

// With method=host, and with method=csd.
double drive_speed(const platform::Platform& platform, const platform::Device& device) {
  return link_speed(platform, std::span(device.host_route).last(1));
}
double csd_speed(const platform::Platform& platform, const platform::Device& device) {
  if (device.internal_route.empty()) return drive_speed(platform, device);
  const platform::Engine& engine =
      platform.engines[static_cast<std::size_t>(index_of(device.engine))];
  double speed = link_speed(platform, device.internal_route);
  const auto adamw = engine.rate.find("adamw");
  if (adamw != engine.rate.end()) {
    speed = std::min(speed, adamw->second * engine.compute_units);
  }
  return speed;
}

// The slowest has 1, the others two digits.
std::string shares_text(const std::vector<double>& speeds, double exponent) {
  const double slowest = *std::ranges::min_element(speeds);
  std::vector<std::string> shares;
  for (const double speed : speeds) {
    shares.push_back(fmt::format("{:.2g}", std::pow(speed / slowest, exponent)));
  }
  return fmt::format("{}", fmt::join(shares, ","));
}

}  // namespace

std::optional<TuneKnob> device_map_knob(const platform::Platform& platform) {
  TuneKnob knob{"device_map", {"even"}};
  for (const auto speed_of : {drive_speed, csd_speed}) {
    std::vector<double> speeds;
    for (const platform::Device& device : platform.devices) {
      speeds.push_back(speed_of(platform, device));
    }
    if (std::ranges::max(speeds) < 1.01 * std::ranges::min(speeds)) continue;
    for (const double exponent : {0.5, 0.75, 1.0, 1.25}) {
      const std::string shares = shares_text(speeds, exponent);
      if (std::ranges::find(knob.values, shares) == knob.values.end()) {
        knob.values.push_back(shares);
      }
    }
  }
  if (knob.values.size() == 1) return std::nullopt;
  return knob;
}

std::vector<TuneKnob> tune_knobs(const settings::RunConfig& config) {
  std::vector<TuneKnob> knobs = {
      {"method", {"csd", "host"}, TuneKnob::Kind::fork},
      {"pipeline", {"nbuffer", "handover", "serial"}},
      {"wire", {"native", "fp32"}},
      {"overlap", {"exact", "off"}},
      {"state_format", {"exact", "fp32"}},
      {"gradient_tier", {"storage", "memory"}},
      // Last, and together: a device's memory holds few large ones or many small ones.
      {"subgroup_elements",
       {"1000000", "2000000", "4000000", "8000000", "16000000", "40000000", "85000000"},
       TuneKnob::Kind::joint},
      {"buffers", {"1", "2", "3", "4", "6", "8", "12"}, TuneKnob::Kind::joint, 2}};
  // What changes numbers stays as it is asked for, and what it hangs on. A commit writes as much of
  // exact state as of fp32.
  const bool is_clipped = settings::is_clipped_by_subgroup(config);
  std::erase_if(knobs, [&](const TuneKnob& knob) {
    if (knob.key == "state_format") {
      return config.offload.commit_every == 1 || !settings::may_be_exact(config);
    }
    return is_clipped && (knob.key == "overlap" || knob.key == "subgroup_elements");
  });
  return knobs;
}

namespace {

// Numbers among `values` from the nearest to `now` on; words stay in their order.
void sort_nearest_first(std::vector<std::string>& values, const std::string& now) {
  const auto distance = [&](const std::string& value) {
    const double ratio = std::strtod(value.c_str(), nullptr) / std::strtod(now.c_str(), nullptr);
    return std::isfinite(ratio) && ratio > 0 ? std::abs(std::log(ratio)) : 0;
  };
  std::ranges::stable_sort(values, {}, distance);
}

// The next smaller and the next larger one.
std::vector<std::string> neighbours(const std::vector<std::string>& values, std::int64_t now) {
  std::vector<std::string> next;
  for (const std::string& value : values) {
    const std::int64_t number = std::stoll(value);
    if (number < now) next = {value};
    if (number <= now) continue;
    next.push_back(value);
    break;
  }
  return next;
}

std::vector<std::string> counts_above(std::int64_t now, std::int64_t most) {
  std::vector<std::string> counts;
  for (std::int64_t count = now + 1; count <= std::min(most, now + kMoreDevicesMax); ++count) {
    counts.push_back(fmt::format("{}", count));
  }
  return counts;
}

}  // namespace

std::vector<TuneKnob> single_changes(const plan::RunPlan& plan, std::int64_t device_count) {
  const settings::RunConfig& config = plan.config;
  std::vector<TuneKnob> all = tune_knobs(config);
  if (const auto device_map = device_map_knob(plan.platform)) all.push_back(*device_map);
  all.push_back({"prefetch", {"true", "false"}});
  all.push_back({"bounce_memory", {fmt::format("{}", 2 * config.offload.bounce_memory_bytes)}});
  all.push_back({"queue_depth", {fmt::format("{}", 2 * config.storage.queue_depth)}});
  all.push_back({"io_bytes", {fmt::format("{}", 2 * config.storage.io_bytes)}});
  all.push_back({"devices", counts_above(config.offload.devices, device_count)});
  if (config.offload.density > 0.01) all.push_back({"density", {"0.01"}});
  for (TuneKnob& knob : all) {
    const std::string now = settings::value_of(config, knob.key);
    std::erase(knob.values, now);
    if (knob.key == "subgroup_elements") {
      knob.values = neighbours(knob.values, config.offload.subgroup_elements);
    }
    sort_nearest_first(knob.values, now);
  }
  std::erase_if(all, [](const TuneKnob& knob) { return knob.values.empty(); });
  return all;
}

TuneKnob density_knob(double least) {
  TuneKnob knob{"density", {"1"}};
  for (const double density : {0.3, 0.1, 0.03, 0.01, 0.003, 0.001}) {
    if (density > least) knob.values.push_back(fmt::format("{}", density));
  }
  if (least < 1) knob.values.push_back(fmt::format("{}", least));
  return knob;
}

Result<TuneResult> tune(const std::vector<TuneKnob>& knobs, const TuneSettings& start,
                        const TuneEvaluate& evaluate) {
  for (const TuneKnob& knob : knobs) CHECK(start.contains(knob.key));
  SettingSearch search(knobs, evaluate);
  TuneResult result;
  ASSIGN_OR_RETURN(result.start_seconds, search.seconds(start));
  ASSIGN_OR_RETURN(result.best, search.best_from(start));
  ASSIGN_OR_RETURN(result.best_seconds, search.seconds(result.best));

  for (const TuneKnob& knob : knobs) {
    const std::string& from = start.at(knob.key);
    const std::string& to = result.best.at(knob.key);
    if (to == from) continue;
    TuneSettings without = result.best;
    without[knob.key] = from;
    ASSIGN_OR_RETURN(const double seconds, search.seconds(without));
    if (seconds > result.best_seconds * (1 + kWorthwhileShare)) {
      result.changes.push_back({knob.key, from, to, seconds - result.best_seconds});
    } else {
      result.best = without;  // it helped only on the way there
      result.best_seconds = seconds;
    }
  }
  result.evaluation_count = search.evaluation_count();
  return result;
}

Result<TuneResult> tune_simulated(const std::vector<TuneKnob>& knobs,
                                  const settings::RunConfig& start, const TunePlan& plan_of) {
  TuneSettings now;
  for (const TuneKnob& knob : knobs) now[knob.key] = settings::value_of(start, knob.key);
  return tune(knobs, now, [&plan_of](const TuneSettings& tried) -> Result<double> {
    const Result<plan::RunPlan> plan = plan_of(tried);
    if (!plan.ok()) return kForEver;
    const Result<simulate::SimulatedStep> step = simulate::simulate_step(*plan);
    return step.ok() ? step->total_seconds : kForEver;
  });
}

}  // namespace sluice::tune
