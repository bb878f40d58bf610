#pragma once
// How long threads take that compute in lock step, as those of a kernel do: each for a while, and
// then all wait for the last.
//
// Nothing is computed but readings of the clock. The time between two that follow at once counts;
// a longer gap is an interruption or another thread in this one's place, and does not. So it takes
// longer where something else uses the processors, as the method of "selfish detours" counts it
// (Beckman et al., "Benchmarking the effects of operating system interference on extreme-scale
// parallel machines", Cluster Computing 2008), and not where a processor changes its pace.
//
// Thread contract: one call at a time.

namespace sluice::calibrate {

// Seconds that pass until each thread has computed for `seconds`, a millisecond at a time.
double lock_step_seconds(int thread_count, double seconds);

}  // namespace sluice::calibrate
