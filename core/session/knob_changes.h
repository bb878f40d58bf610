#pragma once
// Changes of knobs between two steps: those that were planned, and those that somebody asks for.
// However many ask for the same step, there is one plan, one commit and one new offload; who asked
// is told what became of it.
//
// Thread contract: the schedule's thread, between steps.

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "core/session/knob_schedule.h"
#include "core/session/run_observer.h"
#include "core/session/tunable.h"

namespace sluice::session {

class KnobChanges {
 public:
  // All of them outlive it; `config` is the run's, as the run's plan has it.
  KnobChanges(Tunable& run, const settings::RunConfig& config, const RunHooks& hooks,
              std::span<const PlannedChange> planned)
      : run_(run), config_(config), hooks_(hooks), schedule_(config, planned) {}

  // Around what a change moves, which belongs to no step.
  struct Around {
    std::function<void()> before;
    std::function<void()> after;
  };
  // Before step `step` (steps that are committed). A wrong wish is told to who asked and is no
  // error; a change that fails halfway is.
  Status before_step(std::int64_t step, const Around& around = {});
  // No step follows `step`.
  void refuse_the_rest(std::int64_t step);
  // Whether a change came into force after `first_step` steps.
  bool any_after(std::int64_t first_step) const { return last_changed_step_ > first_step; }

 private:
  struct Planned;
  Status change_as_planned();
  std::vector<AskedChange> take_asked();
  Status change_as_asked(std::span<const AskedChange> asked);
  Status change_as_far_as_possible(std::span<const AskedChange> asked);
  Result<Planned> plan_together(std::span<const AskedChange> asked);
  Status put_in_force(const Planned& planned, std::span<const AskedChange> asked);
  void tell_of(std::span<const settings::KnobChange> changes, std::span<const AskedChange> asked);
  void refuse(const AskedChange& asked, const Error& why);

  Tunable& run_;
  const settings::RunConfig& config_;  // in force
  const RunHooks& hooks_;
  KnobSchedule schedule_;
  const Around* around_ = nullptr;
  std::int64_t step_ = 0;
  std::int64_t last_changed_step_ = -1;
};

}  // namespace sluice::session
