// What the window costs on a large run: its first picture, the frames while someone zooms and pans
// with each view in front, how long the data of a new zoom take, memory.
//
//   bench_frames RUN.db [FRAMES]    on the display that DISPLAY names, 1920x1080
//   bench_frames                    memory alone, of a window without a run
//
// A frame is the processor's time of its thread from ImGui's NewFrame to its Render: our code and
// ImGui's, without the driver that turns it into pixels. What another guest of the machine takes
// counts in that, too, so each view's frames are gone through three times; beside the worst of all
// stands the worst of frames that were so dear each time.

#include <fmt/format.h>
#include <imgui_internal.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <random>
#include <thread>
#include <vector>

#include "gui/app/app.h"
#include "gui/app/shell.h"
#include "gui/app/top_bar.h"
#include "gui/data/run_snapshot.h"
#include "gui/data/span_scan.h"
#include "gui/data/timeline_window.h"
#include "gui/views/session.h"

namespace sluice::gui {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRounds = 3;
constexpr int kJumps = 150;
constexpr int kSettlingFrames = 12;  // a view that came to the front takes its size

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

double megabytes_of(const char* file, const std::string& key) {
  std::ifstream in(file);
  for (std::string word; in >> word;) {
    double kilobytes = 0;
    if (word == key && in >> kilobytes) return kilobytes / 1e3 * 1.024;
  }
  return 0;
}

void print_memory(const char* what) {
  fmt::print("{}: {:.0f} MB resident ({:.0f} MB at most), of it {:.0f} MB its own\n", what,
             megabytes_of("/proc/self/status", "VmRSS:"),
             megabytes_of("/proc/self/status", "VmHWM:"),
             megabytes_of("/proc/self/smaps_rollup", "Anonymous:"));
}

// One after the other: each is asked after a frame, moves something, and says when it is done.
class Script {
 public:
  Script(int frame_count, Clock::time_point begin) : frame_count_(frame_count), begin_(begin) {}

  void start(Shell& shell) {
    shell_ = &shell;
    for (const auto& view : shell.views()) titles_.emplace_back(view->title());
  }
  bool is_busy() const { return phase_ != Phase::settle; }
  void after_frame(const FrameCost& cost) {
    Session& session = shell_->session();
    switch (phase_) {
      case Phase::first_picture:
        return wait_for_picture(session);
      case Phase::frames:
        return take_frame(session, cost);
      case Phase::settle:
        return settle(session);
      case Phase::jumps:
        return jump(session);
    }
  }

 private:
  enum class Phase { first_picture, frames, settle, jumps };

  void wait_for_picture(Session& session) {
    if (!session.timeline.picture.is_there() || session.pieces.minimap == nullptr) return;
    fmt::print("first full picture {:.2f} s after the start\n\n", seconds_since(begin_));
    fmt::print("{:36} {:>8} {:>8} {:>8} {:>12} {:>9}\n", "ms of processor time a frame", "median",
               "p99", "worst", "worst thrice", "vertices");
    begin_view("Timeline");
  }

  void begin_view(const std::string& title) {
    phase_ = Phase::frames;
    title_ = title;
    frame_ = -kSettlingFrames;
    round_ = 0;
    vertices_ = 0;
    for (std::vector<double>& round : ms_) round.clear();
    shell_->session().foreground.bring(title);
    shell_->session().timeline.view.show_all();
  }

  void take_frame(Session& session, const FrameCost& cost) {
    if (frame_ > 0) {
      ms_[static_cast<std::size_t>(round_)].push_back(cost.last_ms);
      vertices_ = std::max(vertices_, cost.vertex_count);
    }
    if (frame_ >= 0) move(session);
    frame_ += 1;
    if (frame_ <= frame_count_) return;
    frame_ = 0;
    session.timeline.view.show_all();
    if (++round_ < kRounds) return;
    report();
    if (!is_read_) {
      phase_ = Phase::settle;
    } else if (++next_title_ < titles_.size()) {
      begin_view(titles_[next_title_]);
    } else {
      print_memory("\nmemory");
      shell_->quit();
    }
  }

  // From the whole run down to some thousandth of it and back, a little to the side each frame; the
  // wheel scrolls what the mouse is over.
  void move(Session& session) const {
    TimeView& view = session.timeline.view;
    view.zoom(std::sin(frame_ * 0.1) > 0 ? 0.75 : 1 / 0.75, view.middle());
    view.pan(view.range().width() / 60 * (frame_ % 60 < 30 ? 1 : -1));
    const ImGuiWindow* window = ImGui::FindWindowByName(title_.c_str());
    if (window == nullptr) return;
    const ImVec2 size = window->Size;
    const auto to_the_side = static_cast<float>(frame_ % 40) / 40;
    ImGui::GetIO().AddMousePosEvent(window->Pos.x + size.x * (0.2F + 0.7F * to_the_side),
                                    window->Pos.y + size.y * 0.6F);
    if (title_ != "Timeline") ImGui::GetIO().AddMouseWheelEvent(0, frame_ % 60 < 30 ? -1 : 1);
  }

  void report() const {
    std::vector<double> all;
    std::vector<double> least(ms_[0].size());
    for (std::size_t i = 0; i < least.size(); ++i)
      least[i] = std::min({ms_[0][i], ms_[1][i], ms_[2][i]});
    for (const std::vector<double>& round : ms_) all.insert(all.end(), round.begin(), round.end());
    fmt::print("{:36} {:8.2f} {:8.2f} {:8.2f} {:12.2f} {:9}\n",
               is_read_ ? title_ : title_ + ", while all is being read", quantile(all, 0.5),
               quantile(all, 0.99), quantile(all, 1), quantile(least, 1), vertices_);
    std::fflush(stdout);
  }

  void settle(Session& session) {
    if (session.pieces.statistics == nullptr || session.pieces.verdict == nullptr ||
        session.pieces.statistics->seen_count < session.pieces.run->span_count)
      return;
    is_read_ = true;
    fmt::print("{:36} {:8.1f} s after the start\n", "statistics of all", seconds_since(begin_));
    phase_ = Phase::jumps;
  }

  // To some stretch of some width: from the frame that asks until the data are there, which the
  // next frame shows.
  void jump(Session& session) {
    if (jumps_ > 0) {
      const auto asked = Clock::now();
      while (session.pieces.feed->timeline() == nullptr ||
             !(session.pieces.feed->timeline()->request == session.timeline.picture.asked()))
        std::this_thread::sleep_for(std::chrono::microseconds(200));
      latency_ms_.push_back(seconds_since(asked) * 1e3);
    }
    if (jumps_++ == kJumps) return finish();
    const auto all = static_cast<double>(session.pieces.run->end_ts - session.pieces.run->begin_ts);
    std::uniform_real_distribution<double> share(0, 1);
    const double width = all * std::pow(1e-7, share(chance_));
    const auto at =
        session.pieces.run->begin_ts + static_cast<TimeNs>((all - width) * share(chance_));
    session.timeline.view.set({at, at + static_cast<TimeNs>(width)});
  }

  void finish() {
    fmt::print(
        "{} jumps to some stretch of some width, until its data are there: median {:.0f} ms, "
        "p99 {:.0f} ms, longest {:.0f} ms\n\n",
        latency_ms_.size(), quantile(latency_ms_, 0.5), quantile(latency_ms_, 0.99),
        quantile(latency_ms_, 1));
    begin_view(titles_[0]);
  }

  int frame_count_;
  Clock::time_point begin_;
  Shell* shell_ = nullptr;
  std::vector<std::string> titles_;
  Phase phase_ = Phase::first_picture;
  std::string title_;
  std::size_t next_title_ = 0;
  int frame_ = 0;
  int round_ = 0;
  int vertices_ = 0;
  bool is_read_ = false;
  std::array<std::vector<double>, kRounds> ms_;
  int jumps_ = 0;
  std::vector<double> latency_ms_;
  std::mt19937_64 chance_{1};
};

int measure(const std::string& database, int frame_count) {
  AppOptions options;
  options.databases = {database};
  options.settings_path = "-";
  options.scale = 1;
  options.window.width = 1920;
  options.window.height = 1080;
  Script script(frame_count, Clock::now());
  Shell* shell = nullptr;
  int frames = 0;
  AppHooks hooks;
  hooks.started = [&](Shell& started) {
    shell = &started;
    script.start(started);
  };
  hooks.is_busy = [&] { return script.is_busy(); };
  hooks.drawn = [&](const FrameCost& cost) {
    if (!database.empty()) return script.after_frame(cost);
    if (++frames < 60) return;
    print_memory("memory of a window without a run");
    shell->quit();
  };
  const Status status = run_app(options, hooks);
  if (status.ok()) return 0;
  fmt::print(stderr, "{}\n", status.error().message());
  return 1;
}

}  // namespace
}  // namespace sluice::gui

int main(int argc, char** argv) {
  return sluice::gui::measure(argc > 1 ? argv[1] : "", argc > 2 ? std::atoi(argv[2]) : 64);
}
