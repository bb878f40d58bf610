#pragma once
// Which layers keep what their backward needs, which compute it again and which let it leave
// memory, so that a step is shortest under a cap of memory.
//
// The search begins at plans of known shapes: one choice for all layers, the last layers kept, and
// the rest shared between leaving and computing again. From the best it goes to better neighbours:
// another choice of a layer or of a run of layers, a border moved, two layers exchanged. Models
// with few layers are searched in full after that, as far as the simulations last. What a lower
// bound says cannot win is never simulated.
//
// Thread contract: one call on one thread; deterministic if `seconds` is.

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "base/status.h"
#include "core/model/activations.h"

namespace sluice::tune {

// Seconds of a step with what does not fit.
inline constexpr double kForEver = std::numeric_limits<double>::infinity();

using LayerChoices = std::vector<model::Activations>;  // by LayerId: embedding, blocks, head

// As the setting `activations` says it, in few words.
std::string layers_text(const LayerChoices& choices);
LayerChoices layer_choices(const model::LayerActivations& activations, std::int32_t layer_count);

inline constexpr std::size_t kChoiceCount = 4;  // of model::Activations

// The facts of a layer that are known before anything is simulated, of all micro-batches of a step.
struct LayerWorth {
  std::vector<model::Activations> allowed = {model::Activations::keep};  // keep is among them
  std::array<double, kChoiceCount> compute_seconds{};                    // forward and backward
  std::array<std::int64_t, kChoiceCount> moved_bytes{};                  // that leave
  std::int64_t kept_bytes = 0;  // in memory, if nothing of it leaves and nothing is recomputed

  double compute_with(model::Activations choice) const {
    return compute_seconds[static_cast<std::size_t>(choice)];
  }
  std::int64_t moved_with(model::Activations choice) const {
    return moved_bytes[static_cast<std::size_t>(choice)];
  }
  // Seconds of computing that a byte in memory saves: what LoHan ranks layers by.
  double benefit() const;
};

// A link or an engine, and what it does in a step besides computing layers.
struct StepLoad {
  std::string what;
  double base_seconds = 0;            // busy, if no activation moves
  double seconds_per_moved_byte = 0;  // out and back
};

struct LayerProblem {
  std::vector<LayerWorth> layers;
  std::vector<StepLoad> loads;
  std::int64_t spare_bytes = 0;                   // of what shall leave, so much may not have to
  std::function<bool(const LayerChoices&)> fits;  // under the cap
  std::function<Result<double>(const LayerChoices&)> seconds;  // a step; of plans that fit
  std::function<bool()> stops = {};  // the search ends early with what it has; may be empty
};

// A gain of less than this of a step is not worth another layer that is named, nor bytes that move.
inline constexpr double kWorthwhile = 0.002;

// No plan that begins with these choices takes a shorter step; the other layers have any.
double least_seconds(const LayerProblem& problem, const LayerChoices& first_layers);

struct LayerSearch {
  LayerChoices best;
  // Within kWorthwhile of it, the one that names the fewest runs of layers, and then moves least.
  LayerChoices simplest;
  double simplest_seconds = 0;
  double seconds = 0;  // infinite: none that was tried fits
  int simulated_count = 0;
  bool is_exhaustive = false;  // nothing is shorter: the rest was simulated or excluded
};

// Errors: those of `seconds`. `start` is tried first.
Result<LayerSearch> choose_layers(const LayerProblem& problem, const LayerChoices& start,
                                  int simulations_max);

}  // namespace sluice::tune
