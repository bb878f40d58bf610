#include "gui/app/run_start.h"

#include <utility>

#include "gui/app/window.h"

namespace sluice::gui {

void RunStart::begin(std::function<Result<StartedRun>()> start) {
  if (is_working()) return;
  beginning_ = std::make_shared<Published<Result<StartedRun>>>();
  spare_time_->do_ordinarily([into = beginning_, start = std::move(start)] {
    into->publish(std::make_shared<const Result<StartedRun>>(start()));
    Window::wake();
  });
}

std::optional<Result<StartedRun>> RunStart::take() {
  if (beginning_ == nullptr) return std::nullopt;
  const std::shared_ptr<const Result<StartedRun>> started = beginning_->latest();
  if (started == nullptr) return std::nullopt;
  beginning_.reset();
  return *started;
}

}  // namespace sluice::gui
