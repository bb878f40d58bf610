#pragma once
// The published ways to choose layers, as special cases beside a searched plan.
//
// Thread contract: plain data and free functions.

#include <vector>

#include "core/tune/layer_choices.h"

namespace sluice::plan {
struct RunPlan;
}

namespace sluice::tune {

// SSDTrain's adaptive cut (its public source): layers leave up to the first whose bytes would need
// more than `bytes_per_s`; it and all after it stay. The first layer n with
//
//   (bytes that left before + 2 x bytes of n) / (3 x forward - 2 x forward before n) > bytes_per_s
//
// since n must be away and back while forward and that part of a backward of twice the time last.
LayerChoices adaptive_cut(const std::vector<LayerWorth>& layers,
                          const std::vector<double>& forward_seconds, double bytes_per_s);

// Fuyou's step, with A of the activations' bytes leaving and all others computed again:
//
//   max(forward, links of forward + A x seconds out)
//   + max(backward + recomputing, links of backward + A x seconds back)
//
// Layers leave in the order of the benefit of not recomputing them, so what is left to recompute is
// convex in A, and so is the step: its least is where it stops falling.
struct SwapCosts {
  double forward_seconds = 0;
  double backward_seconds = 0;       // nothing recomputed
  double forward_link_seconds = 0;   // of the busiest link, without activations
  double backward_link_seconds = 0;  // the same, of backward and the update
  double out_seconds_per_byte = 0;
  double back_seconds_per_byte = 0;
};

// The layers that may leave, those first that cost most to compute again for a byte.
std::vector<std::size_t> swap_order(const std::vector<LayerWorth>& layers);
// With the first 0, 1, ... of them leaving.
std::vector<double> swapped_seconds(const std::vector<LayerWorth>& layers, const SwapCosts& costs);
// At the least of these.
LayerChoices swapped_amount(const std::vector<LayerWorth>& layers, const SwapCosts& costs);

// The costs of a run that swaps. `kept`: with all layers kept; the problem's loads are known.
SwapCosts swap_costs(const plan::RunPlan& kept, const LayerProblem& problem);
// Bytes of activations a second that the machine moves, in its slower direction.
double moving_rate(const plan::RunPlan& run);

}  // namespace sluice::tune
