#include "core/tune/replanner.h"

#include <chrono>
#include <optional>

#include "base/log.h"
#include "base/units.h"
#include "core/tune/replan.h"

namespace sluice::tune {
namespace {

// A drive that was busy for less of a window says nothing of its rate.
constexpr double kBusyShare = 0.05;
// No asker's own: those of the control socket count from 1.
constexpr std::int64_t kReplanId = -1;

std::string reason(const Replan& plan, double factor) {
  return fmt::format("replan: drives do {:.0f} % of what they did; predicted {} a step, not {}",
                     factor * 100, format_seconds(plan.seconds),
                     format_seconds(plan.seconds_before));
}

}  // namespace

Replanner::Replanner(std::int32_t device_count, RunNow run_now, std::function<TimeNs()> now_ns)
    : watch_(device_count), run_now_(std::move(run_now)), now_ns_(std::move(now_ns)) {}

Replanner::~Replanner() { stops_ = true; }

void Replanner::on_step(const session::StepReport& /*report*/) {
  if (++window_steps_ < kWindowSteps) return;
  const TimeNs now_ns = now_ns_();
  const DriveWatch::Use use = watch_.take(now_ns);
  const auto window_ns = static_cast<double>(now_ns - window_ns_);
  begin_window();
  if (search_ != nullptr || static_cast<double>(use.busy_ns) < kBusyShare * window_ns) return;
  const std::optional<double> factor = rule_.on_window(use.bytes_per_s());
  if (factor) begin_search(*factor);
}

// Rates under other settings are no drift.
void Replanner::on_knobs_changed(std::int64_t /*step*/, TimeNs /*ts*/,
                                 std::span<const settings::KnobChange> /*changes*/,
                                 const session::AskedChange* /*asked*/) {
  rule_.restart();
  watch_.take(now_ns_());
  begin_window();
}

void Replanner::begin_window() {
  window_steps_ = 0;
  window_ns_ = now_ns_();
}

void Replanner::begin_search(double factor) {
  drive_factor_ *= factor;
  last_factor_ = factor;
  rule_.restart();
  ReplanRequest request = run_now_();
  request.drive_factor = drive_factor_;
  request.stops = [this] { return stops_.load(); };
  search_ = std::make_unique<std::future<Result<Replan>>>(
      std::async(std::launch::async, [request = std::move(request)] { return replan(request); }));
}

std::vector<session::AskedChange> Replanner::take_changes() {
  if (search_ == nullptr ||
      search_->wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
    return {};
  }
  const Result<Replan> found = search_->get();
  search_.reset();
  if (!found.ok()) {
    log_warning("the drives have changed, and no other plan was found: " + found.error().message());
    return {};
  }
  if (found->settings.empty()) return {};
  return {{kReplanId, found->settings, reason(*found, last_factor_)}};
}

void Replanner::wait() const {
  if (search_ != nullptr) search_->wait();
}

}  // namespace sluice::tune
