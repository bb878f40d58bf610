#include "cli/calibrate_progress.h"

#include <unistd.h>

#include <cstdio>

#include "base/units.h"
#include "cli/output.h"

namespace sluice::cli {

void CalibrateProgress::show(std::string_view what, double share, double left_seconds) {
  const auto left_ns = static_cast<TimeNs>(left_seconds * 1e9);
  const bool draws = isatty(STDERR_FILENO) == 1;
  print_lines(fmt::format("{:>3.0f} %  about {} left  {}{}", share * 100, format_duration(left_ns),
                          what, draws ? "" : "\n"),
              stderr);
  std::fputs(draws ? "\033[K\r" : "", stderr);
  std::fflush(stderr);
  drawn_ = draws;
}

void CalibrateProgress::finish() {
  if (drawn_) std::fputs("\r\033[K", stderr);
  drawn_ = false;
}

}  // namespace sluice::cli
