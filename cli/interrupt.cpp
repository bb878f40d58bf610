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

void say_stopping() {
  say("\nsluice: finishing this step, then committing; Ctrl-C again leaves at once\n");
}

void on_interrupt(int /*signal*/) {
  if (interrupt_count.fetch_add(1) == 0) return say_stopping();
  say("\nsluice: left at once; the last committed step is intact, go on with --resume\n");
  _exit(130);
}

// A terminal that closes is told by the kernel and by its shell, and a limit on processor time
// every second: what comes again asks for nothing more.
void on_repeated(int /*signal*/) {
  int none = 0;
  if (interrupt_count.compare_exchange_strong(none, 1)) say_stopping();
}

void handle(int signal, void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  sigaction(signal, &action, nullptr);
}

// nohup(1) and others have a program outlive its terminal.
bool is_ignored(int signal) {
  struct sigaction action = {};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

void install_interrupt_handler() {
  for (const int signal : {SIGINT, SIGTERM}) handle(signal, on_interrupt);
  for (const int signal : {SIGHUP, SIGXCPU}) {
    if (!is_ignored(signal)) handle(signal, on_repeated);
  }
  for (const int signal : {SIGUSR1, SIGUSR2}) handle(signal, SIG_IGN);
}

bool is_interrupted() { return interrupt_count.load() > 0; }

void leave_interrupts_unsaid() { is_unsaid.store(true); }

}  // namespace sluice::cli
