#include "gui/data/advice.h"

#include <fmt/ranges.h>

#include "base/refusal.h"
#include "core/tune/fitted_run.h"
#include "core/tune/like_run.h"
#include "core/tune/machine_tuning.h"
#include "core/tune/predicted_changes.h"

namespace sluice::gui {
namespace {

// Without settings, every change by itself.
Result<analyze::PredictedChanges> prediction(const std::string& database,
                                             const std::vector<std::string>& settings,
                                             const Stops& stops) {
  RETURN_IF_ERROR(tune::check_predictable(settings));
  ASSIGN_OR_RETURN(const tune::Predictor predictor, tune::Predictor::open(database, stops));
  return settings.empty() ? tune::predicted_changes(predictor)
                          : tune::predicted_together(predictor, settings);
}

Result<analyze::PredictedChanges> proposal(const std::string& database,
                                           const std::vector<std::string>& held,
                                           const Stops& stops) {
  tune::TuneChoice choice;
  choice.held = held;
  choice.stops = stops;
  RETURN_IF_ERROR(tune::check_held(choice, "tune"));
  ASSIGN_OR_RETURN(tune::RecordedRun run, tune::open_recorded_run({database, "", ""}));
  ASSIGN_OR_RETURN(tune::FittedRun fitted, tune::fitted_to(std::move(run), stops));
  analyze::PredictedChanges predicted;
  predicted.fit_error = fitted.fit.step.error_after();
  predicted.caution = fmt::format("{}", fmt::join(fitted.run.caveats, " "));
  const tune::MachineTuning tuning(std::move(fitted), choice);
  ASSIGN_OR_RETURN(const tune::TunedMachine tuned, tuning.tuned());
  if (tuned.result.changes.empty()) return predicted;
  analyze::PredictedChange change;
  change.seconds = tuned.after.total_seconds * tuning.time_scale();
  change.change = tuned.after.total_seconds / tuned.before.total_seconds - 1;
  for (const tune::TuneChange& one : tuned.result.changes) {
    change.settings.push_back(one.key + "=" + one.to);
    change.from.push_back(one.key + "=" + one.from);
  }
  predicted.each.push_back(std::move(change));
  return predicted;
}

Result<Advice> answer(const std::string& database, Question question,
                      const std::vector<std::string>& settings, const Stops& stops) {
  Advice advice;
  switch (question) {
    case Question::suggest:
    case Question::what_if: {
      ASSIGN_OR_RETURN(advice.predicted, prediction(database, settings, stops));
      break;
    }
    case Question::tune: {
      ASSIGN_OR_RETURN(advice.predicted, proposal(database, settings, stops));
      break;
    }
    case Question::knobs: {
      ASSIGN_OR_RETURN(const settings::RunConfig config, tune::config_like(database, {}));
      advice.knobs = settings::knobs(config);
      break;
    }
    case Question::count_:
      break;
  }
  advice.problem = advice.predicted.unavailable;
  return advice;
}

}  // namespace

Advice advice_on(const std::string& database, Question question,
                 const std::vector<std::string>& settings, const Stops& stops) {
  Result<Advice> found =
      at_refusal_border([&] { return answer(database, question, settings, stops); });
  if (found.ok()) return *std::move(found);
  Advice none;
  none.problem = found.error().message();
  return none;
}

}  // namespace sluice::gui
