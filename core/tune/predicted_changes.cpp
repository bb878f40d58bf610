#include "core/tune/predicted_changes.h"

#include "base/setting_text.h"

namespace sluice::tune {
namespace {

std::string why(const Prediction& prediction) {
  const std::string& setting = prediction.settings.front();
  std::string words = analyze::why_words(setting, value_of(prediction.from.front()));
  if (prediction.rests_on_file) {
    words += fmt::format(
        "; {} was not run in these steps, so its own figures are the platform file's", setting);
  }
  return words;
}

std::string caution_of(const Predictor& predictor) {
  return fmt::format("{}", fmt::join(predictor.caveats(), " "));
}

analyze::PredictedChange predicted_change(const Prediction& prediction) {
  return {.settings = prediction.settings,
          .from = prediction.from,
          .seconds = prediction.seconds,
          .change = prediction.change,
          .needs_new_run = prediction.needs_new_run};
}

}  // namespace

analyze::PredictedChanges predicted_changes(const Predictor& predictor) {
  analyze::PredictedChanges changes;
  changes.fit_error = predictor.fit_error();
  changes.caution = caution_of(predictor);
  const Result<Predictions> all = predictor.all();
  if (!all.ok()) {
    changes.unavailable = all.error().message();
    return changes;
  }
  changes.simulated_count = all->simulated_count;
  for (const Prediction& prediction : all->each) {
    changes.each.push_back(predicted_change(prediction));
    changes.each.back().why = why(prediction);
  }
  if (all->together) changes.together = predicted_change(*all->together);
  return changes;
}

Result<analyze::PredictedChanges> predicted_together(const Predictor& predictor,
                                                     const std::vector<std::string>& settings) {
  ASSIGN_OR_RETURN(const Prediction prediction, predictor.with(settings));
  analyze::PredictedChanges changes;
  changes.fit_error = predictor.fit_error();
  changes.caution = caution_of(predictor);
  changes.simulated_count = 1;
  changes.each.push_back(predicted_change(prediction));
  return changes;
}

analyze::PredictedChanges predict(const std::string& database) {
  const Result<Predictor> predictor = Predictor::open(database);
  if (predictor.ok()) return predicted_changes(*predictor);
  analyze::PredictedChanges none;
  none.unavailable = predictor.error().message();
  return none;
}

}  // namespace sluice::tune
