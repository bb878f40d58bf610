#include "core/answers/predicted_run.h"

#include "core/tune/predicted_changes.h"
#include "storage/rundb/reader.h"

namespace sluice::answers {
namespace {

Result<std::string> recorded_name(const std::string& database) {
  ASSIGN_OR_RETURN(const std::unique_ptr<rundb::Reader> reader, rundb::Reader::open(database));
  ASSIGN_OR_RETURN(const std::vector<rundb::MetaRow> meta, reader->meta());
  for (const rundb::MetaRow& row : meta) {
    if (row.key == "name") return row.value;
  }
  return std::string();
}

}  // namespace

Result<PredictedRun> predicted_run(const std::string& database,
                                   const std::vector<std::string>& settings, const Stops& stops) {
  RETURN_IF_ERROR(tune::check_predictable(settings));
  PredictedRun predicted;
  predicted.asked = settings.empty() ? Asked::every : Asked::these;
  ASSIGN_OR_RETURN(predicted.run, recorded_name(database));
  const Result<tune::Predictor> predictor = tune::Predictor::open(database, stops);
  if (!predictor.ok()) {
    predicted.changes.unavailable = predictor.error().message();
    return predicted;
  }
  predicted.recorded_seconds = predictor->recorded_seconds();
  predicted.simulated_seconds = predictor->simulated_seconds();
  if (settings.empty()) {
    predicted.changes = tune::predicted_changes(*predictor);
    return predicted;
  }
  ASSIGN_OR_RETURN(predicted.changes, tune::predicted_together(*predictor, settings));
  return predicted;
}

}  // namespace sluice::answers
