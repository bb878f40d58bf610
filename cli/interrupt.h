#pragma once
// Ctrl-C: the first finishes the step and commits; the second leaves at once, which the state on
// disk survives (its last commit is whole).
//
// Thread contract: install once, from main; the others from any thread.

namespace sluice::cli {

void install_interrupt_handler();
bool is_interrupted();
// From now on nothing is said of it here: another process of the run does.
void leave_interrupts_unsaid();

}  // namespace sluice::cli
