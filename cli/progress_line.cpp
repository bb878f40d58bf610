#include "cli/progress_line.h"

#include <unistd.h>

#include "base/clock.h"
#include "cli/output.h"

namespace sluice::cli {
namespace {

constexpr TimeNs kPatienceNs = 1'000'000'000;
constexpr TimeNs kIntervalNs = 200'000'000;

}  // namespace

ProgressLine::ProgressLine() : draws_(isatty(STDERR_FILENO) == 1), begin_ts_(monotonic_now_ns()) {}

bool ProgressLine::is_due() {
  const TimeNs now = monotonic_now_ns();
  if (!draws_ || now - begin_ts_ < kPatienceNs || now - shown_ts_ < kIntervalNs) return false;
  shown_ts_ = now;
  return true;
}

void ProgressLine::show(double share, std::string_view what) {
  if (share <= 0 || !is_due()) return;
  const double left_ns = static_cast<double>(shown_ts_ - begin_ts_) * (1 - share) / share;
  draw(fmt::format("{:>3.0f} %  about {} left", share * 100,
                   format_duration(static_cast<TimeNs>(left_ns))),
       what);
}

void ProgressLine::show_elapsed(std::string_view what) {
  if (is_due()) draw(format_duration(shown_ts_ - begin_ts_), what);
}

void ProgressLine::draw(std::string_view how_far, std::string_view what) {
  std::fputc('\r', stderr);
  print_lines(fmt::format("{}{}{}", how_far, what.empty() ? "" : "  ", what), stderr);
  std::fputs("\033[K", stderr);
  std::fflush(stderr);
}

void ProgressLine::finish() {
  if (shown_ts_ > 0) std::fputs("\r\033[K", stderr);
  shown_ts_ = 0;
}

}  // namespace sluice::cli
