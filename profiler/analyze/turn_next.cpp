#include "profiler/analyze/turn_next.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <functional>

#include "base/setting_text.h"
#include "base/units.h"

namespace sluice::analyze {
namespace {

constexpr std::string_view kTogetherKey = "several together";

struct Why {
  std::string_view key;
  std::string_view value;  // empty: any; of buffers, which way
  std::string_view words;
};

constexpr std::array kWhy = std::to_array<Why>({
    {"method", "csd", "state then stays behind each device's own link"},
    {"method", "host", "the host's processor then updates, and state crosses the host link"},
    {"pipeline", "nbuffer", "reads, updates and writes then overlap"},
    {"pipeline", "handover", "one subgroup's writes then overlap the next one's reads"},
    {"pipeline", "serial", "reads and writes then do not share a drive"},
    {"buffers", "more", "reads then need not wait for buffers"},
    {"buffers", "fewer", "fewer subgroups then share each drive"},
    {"wire", "native", "gradients and parameters then cross in 16 bits"},
    {"wire", "fp32", "the host then converts nothing"},
    {"gradient_tier", "memory", "gradients then wait in host memory, not on drives"},
    {"gradient_tier", "storage", "gradients then wait on the drives"},
    {"prefetch", "true", "the first reads then run during backward"},
    {"prefetch", "false", "the first reads then do not disturb backward"},
    {"bounce_memory", "", "more gradients then wait for their drives"},
    {"queue_depth", "", "more requests are then in flight"},
    {"io_bytes", "", "requests are then larger"},
    {"device_map", "", "each device then has the share that suits its speed"},
    {"subgroup_elements", "", "subgroups of another size then move; a state keeps its own"},
    {"devices", "", "each device then has less to move"},
    {"record", "", "fewer records are then written"},
    {"density", "", "fewer gradient elements cross the host link; what the model learns changes"},
});

long long number_of(const std::string& text) { return std::strtoll(text.c_str(), nullptr, 10); }

bool changes_learning(const PredictedChange& change) {
  return std::ranges::any_of(change.settings,
                             [](const std::string& s) { return key_of(s) == "density"; });
}

bool is_worth_saying(const PredictedChange& change, double fit_error, bool is_shown) {
  return change.change <= -(is_shown ? kWorthKeeping : kWorthSaying) &&
         !is_within_error(change, fit_error);
}

// How many changes would be said, were simulation exact.
std::ptrdiff_t count_within_error(const PredictedChanges& predicted) {
  return std::ranges::count_if(predicted.each, [&](const PredictedChange& one) {
    return one.change <= -kWorthSaying && is_within_error(one, predicted.fit_error);
  });
}

std::string error_text(double fit_error) {
  return fmt::format("{:.1f} %", std::abs(fit_error) * 100);
}

void sort_best_first(std::vector<PredictedChange>& changes) {
  std::ranges::stable_sort(changes, {}, &PredictedChange::change);
  std::ranges::stable_partition(changes, std::not_fn(changes_learning));
}

// Several together have to gain more than the best by itself, and not by a hair.
bool is_better_together(const PredictedChanges& predicted, bool is_shown) {
  if (!predicted.together || predicted.together->settings.size() < 2) return false;
  if (!is_worth_saying(*predicted.together, predicted.fit_error, is_shown)) return false;
  double best = 0;
  for (const PredictedChange& one : predicted.each) {
    if (!one.needs_new_run && !changes_learning(one)) best = std::min(best, one.change);
  }
  const double more = best - predicted.together->change;
  return more >= (is_shown ? kWorthKeeping / 2 : kWorthKeeping);
}

}  // namespace

bool is_within_error(const PredictedChange& change, double fit_error) {
  return std::abs(change.change) <= std::abs(fit_error);
}

TurnNext turn_next(const PredictedChanges& predicted, const std::set<std::string>& shown) {
  TurnNext next;
  for (const PredictedChange& one : predicted.each) {
    const bool is_shown = shown.contains(key_of(one.settings.front()));
    if (!is_worth_saying(one, predicted.fit_error, is_shown)) continue;
    (one.needs_new_run ? next.another_run : next.now).push_back(one);
  }
  sort_best_first(next.now);
  sort_best_first(next.another_run);
  if (is_better_together(predicted, shown.contains(std::string(kTogetherKey)))) {
    next.together = predicted.together;
  }
  return next;
}

std::set<std::string> TurnNext::shown() const {
  std::set<std::string> keys;
  for (const auto* list : {&now, &another_run}) {
    for (const PredictedChange& one : *list) keys.insert(key_of(one.settings.front()));
  }
  if (together) keys.emplace(kTogetherKey);
  return keys;
}

std::string change_words(const PredictedChange& change, std::string_view arrow) {
  std::string text;
  for (std::size_t i = 0; i < change.settings.size(); ++i) {
    if (i > 0) text += ", ";
    text += i < change.from.size()
                ? fmt::format("{} {} {} {}", key_of(change.settings[i]), value_of(change.from[i]),
                              arrow, value_of(change.settings[i]))
                : change.settings[i];
  }
  return text;
}

std::string gain_words(const PredictedChange& change, std::string_view arrow) {
  return fmt::format("{} {} {} ({:+.0f} %)", format_seconds(change.seconds_before()), arrow,
                     format_seconds(change.seconds), change.change * 100);
}

std::string none_words(const PredictedChanges& predicted) {
  if (count_within_error(predicted) > 0) {
    return fmt::format("No single change gains more than simulation is off: {} ({} simulated).",
                       error_text(predicted.fit_error), predicted.simulated_count);
  }
  return fmt::format("No single change gains {:.0f} % ({} simulated).", kWorthSaying * 100,
                     predicted.simulated_count);
}

std::string fit_words(const PredictedChanges& predicted) {
  const std::ptrdiff_t left_out = count_within_error(predicted);
  return fmt::format(
      "Predicted: simulated on the platform fitted to this run; without a change, simulation is "
      "{} off what was recorded{}.",
      error_text(predicted.fit_error),
      left_out == 0 ? ""
                    : fmt::format("; {} that gain{} less than that {} left out",
                                  left_out == 1 ? "a change" : fmt::format("{} changes", left_out),
                                  left_out == 1 ? "s" : "", left_out == 1 ? "is" : "are"));
}

std::string why_words(const std::string& setting, const std::string& from) {
  const std::string key = key_of(setting);
  std::string value = value_of(setting);
  if (key == "buffers") value = number_of(value) > number_of(from) ? "more" : "fewer";
  const auto why = std::ranges::find_if(kWhy, [&](const Why& one) {
    return one.key == key && (one.value.empty() || one.value == value);
  });
  return why == kWhy.end() ? "" : std::string(why->words);
}

}  // namespace sluice::analyze
