// A host access to device memory ends the process, as it should; first it says on stderr what was
// touched. Faults at other addresses go to whoever handled them before.

#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "soft/accelerator/accelerator.h"
#include "soft/accelerator/torch_parts.h"

namespace sluice::soft_accelerator {
namespace {

struct sigaction before;

void say_where(const void* address) {
  char where[256] = "memory that is not allocated, or in use just now";
  Accelerator::instance().try_describe(address, where, sizeof where);
  char text[400];
  const int length = std::snprintf(
      text, sizeof text, "software accelerator: the host touched device memory at %s\n", where);
  if (length > 0 && ::write(STDERR_FILENO, text, std::strlen(text)) < 0) return;
}

// The access is made again on return, and then meets the action that is set here.
void on_fault(int signal, siginfo_t* info, void* /*context*/) {
  if (Accelerator::instance().device_of(info->si_addr) >= 0) {
    say_where(info->si_addr);
    ::signal(signal, SIG_DFL);
  } else {
    ::sigaction(signal, &before, nullptr);
  }
}

}  // namespace

void catch_touches() {
  struct sigaction action = {};
  action.sa_sigaction = &on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGSEGV, &action, &before);
}

}  // namespace sluice::soft_accelerator
