#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>

#include "base/refusal.h"
#include "cli/command_line.h"
#include "cli/output.h"
#include "cli/program.h"

namespace {

// The number of a standard descriptor that is closed would go to the first file that is opened, and
// what is printed into that file. /dev/null, opened the other way round, fails as a closed one
// does.
void keep_standard_descriptors() {
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(standard, F_GETFD) >= 0 || errno != EBADF) continue;
    if (open("/dev/null", standard == STDIN_FILENO ? O_WRONLY : O_RDONLY) != standard) return;
  }
}

}  // namespace

int main(int argc, char** argv) {
  keep_standard_descriptors();
  sluice::say_uncaught_refusals("sluice: error: ");
  sluice::cli::keep_program_name(argc > 0 ? argv[0] : nullptr);
  signal(SIGXFSZ, SIG_IGN);  // a write beyond `ulimit -f` fails and is named, as any other
  return sluice::cli::finish_output(sluice::cli::run_command_line(argc, argv));
}
