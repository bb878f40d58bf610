// How far the picture of a live run is behind: a window that follows it, as sluice-gui does, for
// SECONDS seconds.
//
//   bench_follow RUN.db [SECONDS]    on the display that DISPLAY names, 1920x1080
//
// One JSON object: at each frame that shows newer spans, milliseconds from the end of the newest
// span drawn before until now (so old was what could be seen, at its oldest) and from the newest
// drawn now (so old is a picture when it appears); frames a second; processors that the frame
// thread's own work (without OpenGL), threads that rasterise (llvmpipe), and the whole process
// take. bench/gui/following.py runs it.

#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "base/clock.h"
#include "gui/app/app.h"
#include "gui/app/shell.h"
#include "gui/app/top_bar.h"
#include "gui/data/timeline_window.h"
#include "gui/views/session.h"

namespace sluice::gui {
namespace {

constexpr TimeNs kWarmUpNs = 3'000'000'000;  // windows take their places, the whole run is read

double quantile(std::vector<double> values, double share) {
  if (values.empty()) return -1;
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

double cpu_seconds(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

// Processor seconds of the threads that draw in software; 0 where a graphics card draws.
double rasteriser_seconds() {
  double ticks = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream file(task.path() / "stat");
    std::string line;
    std::getline(file, line);
    const std::size_t name_end = line.rfind(')');
    if (line.find("(llvmpipe") == std::string::npos || name_end == std::string::npos) continue;
    std::istringstream rest(line.substr(name_end + 1));
    std::string field;
    for (int i = 3; i <= 13; ++i) rest >> field;  // proc(5): utime is the 14th
    double user = 0;
    double system = 0;
    if (rest >> user >> system) ticks += user + system;
  }
  return ticks / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

// A bin's end lies behind what it holds, so no more than what was read counts.
TimeNs newest_drawn(const Session& session) {
  TimeNs newest = 0;
  if (session.pieces.timeline == nullptr || session.pieces.run == nullptr) return newest;
  for (const TrackBoxes& track : session.pieces.timeline->tracks) {
    for (auto box = track.boxes.rbegin(); box != track.boxes.rend(); ++box) {
      newest = std::max(newest, box->end_ts);
      if (box->ts + track.longest_ns < newest) break;
    }
  }
  return std::min(newest, session.pieces.run->end_ts);
}

class Watch {
 public:
  explicit Watch(TimeNs dur_ns) : dur_ns_(dur_ns) {}

  void started(Shell& shell) { shell_ = &shell; }
  void drawn(const FrameCost& cost) { own_ms_ += cost.last_ms; }
  void shown() {
    const TimeNs now_ns = monotonic_now_ns();
    const Session& session = shell_->session();
    if (begin_ns_ == 0 && session.pieces.run != nullptr && session.pieces.timeline != nullptr)
      begin_ns_ = now_ns + kWarmUpNs;
    if (begin_ns_ == 0 || now_ns < begin_ns_) return;
    if (frames_++ == 0) {
      cpu_before_ = cpu_seconds(CLOCK_PROCESS_CPUTIME_ID);
      rasteriser_before_ = rasteriser_seconds();
      own_ms_ = 0;
      first_ns_ = now_ns;
    }
    const TimeNs newest = newest_drawn(session);
    if (newest > newest_) {
      if (newest_ > 0) {
        oldest_ms_.push_back(static_cast<double>(now_ns - newest_) / 1e6);
        youngest_ms_.push_back(static_cast<double>(now_ns - newest) / 1e6);
      }
      newest_ = newest;
    }
    if (now_ns < begin_ns_ + dur_ns_ && session.pieces.run->is_live) return;
    print(static_cast<double>(now_ns - first_ns_) / 1e9);
    shell_->quit();
  }

 private:
  void print(double seconds) const {
    const auto figures = [](const std::vector<double>& ms) {
      return fmt::format(R"({{"median": {:.0f}, "p99": {:.0f}, "worst": {:.0f}}})",
                         quantile(ms, 0.5), quantile(ms, 0.99), quantile(ms, 1));
    };
    fmt::print(R"({{"pictures": {}, "behind_before_ms": {}, "behind_when_shown_ms": {}, )"
               R"("frames_a_second": {:.1f}, "processors": )"
               R"({{"frames": {:.4f}, "rasteriser": {:.4f}, "process": {:.4f}}}}})"
               "\n",
               oldest_ms_.size(), figures(oldest_ms_), figures(youngest_ms_),
               static_cast<double>(frames_) / seconds, own_ms_ / 1e3 / seconds,
               (rasteriser_seconds() - rasteriser_before_) / seconds,
               (cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu_before_) / seconds);
  }

  TimeNs dur_ns_;
  Shell* shell_ = nullptr;
  TimeNs begin_ns_ = 0;
  TimeNs first_ns_ = 0;
  TimeNs newest_ = 0;
  int frames_ = 0;
  double own_ms_ = 0;
  double cpu_before_ = 0;
  double rasteriser_before_ = 0;
  std::vector<double> oldest_ms_;
  std::vector<double> youngest_ms_;
};

int follow(const std::string& database, double seconds) {
  AppOptions options;
  options.databases = {database};
  options.settings_path = "-";
  options.scale = 1;
  options.window.width = 1920;
  options.window.height = 1080;
  Watch watch(static_cast<TimeNs>(seconds * 1e9));
  AppHooks hooks;
  hooks.started = [&](Shell& shell) { watch.started(shell); };
  hooks.drawn = [&](const FrameCost& cost) { watch.drawn(cost); };
  hooks.after_show = [&] { watch.shown(); };
  const Status status = run_app(options, hooks);
  if (status.ok()) return 0;
  fmt::print(stderr, "{}\n", status.error().message());
  return 1;
}

}  // namespace
}  // namespace sluice::gui

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: bench_follow RUN.db [SECONDS]\n");
    return 2;
  }
  return sluice::gui::follow(argv[1], argc > 2 ? std::atof(argv[2]) : 20);
}
