#include "core/session/knob_changes.h"

#include <algorithm>
#include <iterator>

#include "base/setting_text.h"
#include "core/control/messages.h"
#include "core/control/superseded.h"
#include "core/plan/knob_change.h"

namespace sluice::session {

struct KnobChanges::Planned {
  KnobSchedule::Wanted wanted;
  plan::PlannedKnobs knobs;
};

Status KnobChanges::before_step(std::int64_t step, const Around& around) {
  step_ = step;
  around_ = &around;
  RETURN_IF_ERROR(change_as_planned());
  const std::vector<AskedChange> asked = take_asked();
  return asked.empty() ? ok_status() : change_as_asked(asked);
}

void KnobChanges::refuse_the_rest(std::int64_t step) {
  step_ = step;
  for (const AskedChange& asked : take_asked()) {
    refuse(asked, Error(ErrorCode::cancelled, control::kEndedBeforeNextStep));
  }
}

// Each knob in one of them at most: of those that several turn the last one counts.
std::vector<AskedChange> KnobChanges::take_asked() {
  std::vector<AskedChange> asked;
  for (RunRequests* requests : hooks_.requests) {
    for (AskedChange& later : requests->take_changes()) {
      for (AskedChange& earlier : asked) {
        AskedChange left = earlier;
        control::drop_superseded(left.settings, later.settings);
        if (left.settings.empty()) {
          for (RunObserver* observer : hooks_.observers) {
            observer->on_change_superseded(earlier, later);
          }
        }
        earlier = std::move(left);
      }
      std::erase_if(asked, [](const AskedChange& change) { return change.settings.empty(); });
      asked.push_back(std::move(later));
    }
  }
  return asked;
}

// The changes planned for this step, and the warm-up's density.
Status KnobChanges::change_as_planned() {
  ASSIGN_OR_RETURN(const std::optional<KnobSchedule::Wanted> wanted, schedule_.planned(step_));
  if (!wanted) return ok_status();
  ASSIGN_OR_RETURN(const plan::PlannedKnobs planned,
                   plan::plan_knobs(run_.live_plan(), wanted->now));
  return put_in_force({*wanted, planned}, {});
}

Status KnobChanges::change_as_asked(std::span<const AskedChange> asked) {
  RETURN_IF_ERROR(run_.commit());
  const Result<Planned> planned = plan_together(asked);
  if (planned.ok()) return put_in_force(*planned, asked);
  if (asked.size() > 1) return change_as_far_as_possible(asked);
  refuse(asked.front(), planned.error());
  return ok_status();
}

// They cannot be together: each is planned with those before it that can, and these are put in
// force. There are no more of them than knobs.
Status KnobChanges::change_as_far_as_possible(std::span<const AskedChange> asked) {
  std::vector<AskedChange> taken;
  std::optional<Planned> planned;
  for (const AskedChange& change : asked) {
    taken.push_back(change);
    Result<Planned> with = plan_together(taken);
    if (with.ok()) {
      planned = *std::move(with);
      continue;
    }
    taken.pop_back();
    refuse(change, with.error());
  }
  return planned ? put_in_force(*planned, taken) : ok_status();
}

// The committed settings are in force until this is.
Result<KnobChanges::Planned> KnobChanges::plan_together(std::span<const AskedChange> asked) {
  std::vector<std::string> settings;
  for (const AskedChange& change : asked) {
    settings.insert(settings.end(), change.settings.begin(), change.settings.end());
  }
  ASSIGN_OR_RETURN(const KnobSchedule::Wanted wanted, schedule_.asked(step_, settings));
  const Result<plan::PlannedKnobs> planned = plan::plan_knobs(run_.live_plan(), wanted.now);
  RETURN_IF_ERROR(run_.agreed(planned.ok() ? ok_status() : Status(planned.error())));
  RETURN_IF_ERROR(run_.agreed(run_.make_room(*planned)));
  return Planned{wanted, *planned};
}

Status KnobChanges::put_in_force(const Planned& planned, std::span<const AskedChange> asked) {
  const std::vector<settings::KnobChange> changes =
      settings::knob_changes(config_, planned.wanted.now);
  if (!changes.empty()) {
    RETURN_IF_ERROR(run_.commit());
    if (around_->before) around_->before();
    RETURN_IF_ERROR(run_.apply(planned.knobs));
    if (around_->after) around_->after();
    last_changed_step_ = step_;
  }
  schedule_.accept(planned.wanted);
  RETURN_IF_ERROR(run_.keep_recipe(planned.wanted.after_warmup));
  tell_of(changes, asked);
  return ok_status();
}

// A change belongs to whoever turned its knob.
void KnobChanges::tell_of(std::span<const settings::KnobChange> changes,
                          std::span<const AskedChange> asked) {
  const TimeNs now_ns = run_.now_ns();
  const auto tell = [&](std::span<const settings::KnobChange> of_one, const AskedChange* who) {
    for (RunObserver* observer : hooks_.observers) {
      observer->on_knobs_changed(step_, now_ns, of_one, who);
    }
  };
  if (asked.size() == 1) return tell(changes, &asked.front());
  if (asked.empty() && !changes.empty()) return tell(changes, nullptr);
  for (const AskedChange& change : asked) {
    std::vector<settings::KnobChange> of_one;
    std::ranges::copy_if(changes, std::back_inserter(of_one), [&](const auto& changed) {
      return std::ranges::any_of(change.settings, [&](const std::string& setting) {
        return key_of(setting) == changed.knob;
      });
    });
    tell(of_one, &change);
  }
}

void KnobChanges::refuse(const AskedChange& asked, const Error& why) {
  const TimeNs now_ns = run_.now_ns();
  for (RunObserver* observer : hooks_.observers) {
    observer->on_change_refused(step_, now_ns, asked, why);
  }
}

}  // namespace sluice::session
