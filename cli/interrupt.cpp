#include "cli/interrupt.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <string_view>

namespace sluice::cli {
namespace {

std::atomic<int> interrupt_count{0};
std::atomic<bool> is_unsaid{false};
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free,
              "a signal handler may not take a lock");

void say(std::string_view text) {
  if (is_unsaid.load()) return;
  // Nothing can be done about a terminal that does not take it.
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
}

void on_interrupt(int /*signal*/) {
  if (interrupt_count.fetch_add(1) == 0) {
    say("\nsluice: finishing this step, then committing; Ctrl-C again leaves at once\n");
    return;
  }
  say("\nsluice: left at once; the last committed step is intact, go on with --resume\n");
  _exit(130);
}

}  // namespace

void install_interrupt_handler() {
  struct sigaction action = {};
  action.sa_handler = on_interrupt;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

bool is_interrupted() { return interrupt_count.load() > 0; }

void leave_interrupts_unsaid() { is_unsaid.store(true); }

}  // namespace sluice::cli
