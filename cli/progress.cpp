#include "cli/progress.h"

#include <cmath>
#include <cstdio>
#include <utility>

#include "base/clock.h"
#include "cli/interrupt.h"
#include "cli/terminal.h"

namespace sluice::cli {
namespace {

constexpr TimeNs kBarIntervalNs = 100'000'000;
constexpr TimeNs kLineIntervalNs = 5'000'000'000;
constexpr int kBarWidth = 30;

}  // namespace

void Progress::on_step(const session::StepReport& report) {
  const double seconds = static_cast<double>(report.total_ns) / 1e9;
  step_seconds_ = seen_count_ == 0 ? seconds : 0.9 * step_seconds_ + 0.1 * seconds;
  seen_count_ += 1;
  if (style_ == ProgressStyle::none) return;
  tell_lost_loss(report);
  const bool is_last = report.step == report.steps;
  if (is_due() || seen_count_ == 1 || is_last) draw(report);
}

bool Progress::is_due() {
  const TimeNs interval_ns = style_ == ProgressStyle::bar ? kBarIntervalNs : kLineIntervalNs;
  return monotonic_now_ns() - last_draw_ns_ >= interval_ns;
}

void Progress::on_work(const char* what, std::int64_t done, std::int64_t count) {
  if (style_ == ProgressStyle::none || !is_due()) return;
  last_draw_ns_ = monotonic_now_ns();
  const bool is_bar = style_ == ProgressStyle::bar;
  std::fprintf(stderr, "%s  %s %lld of %lld%s", is_bar ? "\r" : "", what,
               static_cast<long long>(done), static_cast<long long>(count),
               is_bar ? "\033[K" : "\n");
  std::fflush(stderr);
  work_is_drawn_ = is_bar;
}

// As soon as it is lost, since a run with a loss scale goes on for a while.
void Progress::tell_lost_loss(const session::StepReport& report) {
  const bool was_finite = std::exchange(loss_is_finite_, std::isfinite(report.loss));
  if (loss_is_finite_ || !was_finite) return;
  finish();
  std::fprintf(stderr, "  step %lld: the loss is no longer finite%s\n",
               static_cast<long long>(report.step),
               report.skipped ? "; its gradients were not applied" : "");
}

void Progress::draw(const session::StepReport& report) {
  last_draw_ns_ = monotonic_now_ns();
  work_is_drawn_ = false;
  const double tokens_per_s = static_cast<double>(report.tokens) / step_seconds_;
  const auto left_ns =
      static_cast<TimeNs>(step_seconds_ * static_cast<double>(report.steps - report.step) * 1e9);
  const std::string left =
      report.step < report.steps ? "   left " + format_duration(left_ns) : std::string();
  const std::string figures =
      fmt::format("step {}/{}   loss {:.3f}   {} tok/s{}{}", report.step, report.steps, report.loss,
                  format_count(tokens_per_s), left, report.skipped ? "   (skipped)" : "");
  if (style_ == ProgressStyle::lines) {
    std::fprintf(stderr, "  %s\n", figures.c_str());
    return;
  }
  const auto filled = static_cast<int>(kBarWidth * report.step / report.steps);
  std::fprintf(
      stderr, "\r  [%s%s] %s\033[K", std::string(static_cast<std::size_t>(filled), '#').c_str(),
      std::string(static_cast<std::size_t>(kBarWidth - filled), '-').c_str(), figures.c_str());
  std::fflush(stderr);
  bar_is_drawn_ = true;
}

void Progress::on_validation(const session::ValidationReport& report) {
  if (style_ == ProgressStyle::none) return;
  finish();
  const std::string said =
      report.accuracy ? fmt::format("nats a record, accuracy {:.1f} %", 100 * *report.accuracy)
                      : fmt::format("nats a token, perplexity {:.4g}", std::exp(report.loss));
  std::fprintf(stderr, "  step %lld: validation loss %.3f %s\n",
               static_cast<long long>(report.step), report.loss, said.c_str());
}

void Progress::on_knobs_changed(std::int64_t step, TimeNs /*ts*/,
                                std::span<const settings::KnobChange> changes,
                                const session::AskedChange* asked) {
  if (style_ == ProgressStyle::none || asked == nullptr) return;
  finish();
  std::string text = fmt::format("  step {}:", step);
  for (const settings::KnobChange& change : changes) {
    text += fmt::format("{} {}: {} -> {}", changes.data() == &change ? "" : ";", change.knob,
                        change.from, change.to);
  }
  text += "\n    " + asked->who + "\n";
  std::fprintf(stderr, "%s", fitted(text, terminal_columns()).c_str());
}

bool Progress::wants_stop() { return is_interrupted(); }

void Progress::finish() {
  if (work_is_drawn_) {
    std::fputs("\r\033[K", stderr);
  } else if (bar_is_drawn_) {
    std::fputc('\n', stderr);
  }
  bar_is_drawn_ = work_is_drawn_ = false;
}

}  // namespace sluice::cli
