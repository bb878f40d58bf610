#pragma once
// The settings to turn next: those that were simulated, which of them are worth saying, and the
// words for them on the terminal, the page and in the window.
//
// Thread contract: plain data and free functions.

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::analyze {

// A step as it should be with other settings.
struct PredictedChange {
  std::vector<std::string> settings;  // "buffers=4", together
  std::vector<std::string> from;      // "buffers=2": the same keys as they are now
  double seconds = 0;                 // a step; as the recording has it
  double change = 0;                  // of a step's time; below 0: shorter
  std::string why = {};               // may be empty
  bool needs_new_run = false;         // no knob: fixed while the run is live

  // A step as it is, simulated: what `change` is a share of. What was recorded may differ by
  // fit_error.
  double seconds_before() const { return change > -1 ? seconds / (1 + change) : seconds; }
};

// The predictions of simulation for a run.
struct PredictedChanges {
  std::vector<PredictedChange> each = {};  // the best value of each setting, by itself
  std::optional<PredictedChange> together =
      {};                        // the best that was found for several knobs at once
  int simulated_count = 0;       // single changes that this machine can take
  double fit_error = 0;          // of the simulation without any change, beside what was recorded
  std::string unavailable = {};  // why nothing was predicted; empty: it was
  // A weakness of the fit besides the machine: the recording is not whole, or was late. Shown
  // wherever the predictions are; empty: nothing.
  std::string caution = {};
};

// A change is worth saying from this share of a step on. One that is shown already stays until it
// gains less than half of that, so that a list beside a live run does not flicker.
inline constexpr double kWorthSaying = 0.02;
inline constexpr double kWorthKeeping = kWorthSaying / 2;

// Whether it differs from nothing by no more than simulation does from the recording: then nobody
// knows what it does.
bool is_within_error(const PredictedChange& change, double fit_error);

struct TurnNext {
  // None that is within the simulation's error.
  std::vector<PredictedChange> now;          // the best first; what changes learning last
  std::vector<PredictedChange> another_run;  // the same, of what needs a new run
  std::optional<PredictedChange> together;   // only where it gains more than any by itself

  // The keys that are shown, for the next turn_next().
  std::set<std::string> shown() const;
};
// `shown`: what the list before this one showed; none: there was none.
TurnNext turn_next(const PredictedChanges& predicted, const std::set<std::string>& shown = {});

// "buffers 2 -> 4, wire fp32 -> native"
std::string change_words(const PredictedChange& change, std::string_view arrow);
// "3.20 s -> 3.01 s (-6 %)": both simulated, so that seconds and percent have one base.
std::string gain_words(const PredictedChange& change, std::string_view arrow);
// Where no single change is worth saying: how many were simulated.
std::string none_words(const PredictedChanges& predicted);
// The text beneath the list: how far the simulation is off, and what is left out for that.
std::string fit_words(const PredictedChanges& predicted);
// The effect of a setting for a step that has the value `from` now: "gradients and parameters then
// cross in 16 bits". Empty: nothing is known of it.
std::string why_words(const std::string& setting, const std::string& from);

}  // namespace sluice::analyze
