#pragma once
// A run's layers as a problem to search (layer_choices.h): what each choice costs, moves and keeps.
//
// Thread contract: plain data and free functions.

#include <cstdint>
#include <string>
#include <vector>

#include "core/tune/layer_choices.h"
#include "core/tune/tier_memory.h"

namespace sluice::tune {

// The same run with these choices. Errors: plan_run()'s.
Result<plan::RunPlan> with_layers(const plan::RunPlan& run, const LayerChoices& choices);

// The facts of a run's layers that are known before anything is simulated; `base` has any choices.
// The problem's loads are those of lower_bound.h's step_loads(), and its functions the caller's.
Result<LayerProblem> layer_problem(const plan::RunPlan& base, const MemoryModel& memory);

// Layers of which nothing is known but what they may do.
std::vector<LayerWorth> unknown_layers(std::int32_t layer_count);
// Each layer has this choice, or else the nearest that it may have.
LayerChoices all_layers(const std::vector<LayerWorth>& layers, model::Activations choice);
// As layers_text(), without a word for the embedding, which keeps nothing whatever it is told.
std::string setting_text(LayerChoices choices);

// Forward of each layer, all micro-batches.
std::vector<double> forward_seconds(const plan::RunPlan& run);

}  // namespace sluice::tune
