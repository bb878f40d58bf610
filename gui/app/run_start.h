#pragma once
// A run that is being begun (gui/data/new_run.h), by the thread that does not give way.
//
// Thread contract: the frame thread.

#include <functional>
#include <memory>
#include <optional>

#include "base/status.h"
#include "gui/app/spare_time.h"
#include "gui/data/new_run.h"
#include "gui/data/published.h"

namespace sluice::gui {

class RunStart {
 public:
  // `spare_time` lives longer.
  explicit RunStart(SpareTime& spare_time) : spare_time_(&spare_time) {}

  bool is_working() const { return beginning_ != nullptr; }
  // Does nothing while one is being begun.
  void begin(std::function<Result<StartedRun>()> start);
  // The outcome of the start, once.
  std::optional<Result<StartedRun>> take();
  // The start under way is not told of any more.
  void forget() { beginning_.reset(); }

 private:
  SpareTime* spare_time_;
  std::shared_ptr<Published<Result<StartedRun>>> beginning_;  // null: none
};

}  // namespace sluice::gui
