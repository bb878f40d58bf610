#pragma once
// Ctrl-C: the first finishes the step and commits; the second leaves at once, which the state on
// disk survives (its last commit is whole). SIGTERM is as Ctrl-C; a hang-up (SIGHUP, unless it is
// ignored already, as by nohup) and a limit on processor time (SIGXCPU) are as the first, however
// often they come. SIGUSR1 and SIGUSR2, which some batch systems send ahead of the end, are
// ignored: ask them for SIGTERM.
//
// Thread contract: install once, from main; the others from any thread.

namespace sluice::cli {

void install_interrupt_handler();
bool is_interrupted();
// From now on nothing is said of it here: another process of the run does.
void leave_interrupts_unsaid();

}  // namespace sluice::cli
