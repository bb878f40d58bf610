#include "core/answers/fit.h"

namespace sluice::answers {
namespace {

Json phase_json(const tune::PhaseFit& phase, double scale) {
  return {{"recorded", phase.recorded * scale}, {"low", phase.low * scale},
          {"high", phase.high * scale},         {"before", phase.before * scale},
          {"after", phase.after * scale},       {"error", phase.error_after()}};
}

}  // namespace

Json to_json(const tune::FittedRun& fitted) {
  const auto& [run, fit] = fitted;
  Json json;
  json["run"] = run.name;
  json["mode"] = run.mode;
  json["steps"] = fit.step_count;
  json["steps_recorded"] = run.step_count;
  json["time_scale"] = run.time_scale;
  for (std::size_t phase = 0; phase < simulate::kPhaseCount; ++phase) {
    json["seconds"][simulate::phase_name(static_cast<simulate::Phase>(phase))] =
        phase_json(fit.phases[phase], run.time_scale);
  }
  json["seconds"]["total"] = phase_json(fit.step, run.time_scale);
  json["rates"] = Json::array();
  for (const tune::FittedRate& rate : fit.rates) {
    json["rates"].push_back({{"owner", rate.owner},
                             {"key", rate.key},
                             {"file", rate.before},
                             {"fitted", rate.after},
                             {"is_fitted", rate.is_fitted}});
  }
  json["is_good"] = fit.is_good();
  json["worst_phase"] = simulate::phase_name(static_cast<simulate::Phase>(fit.worst_phase()));
  json["caveats"] = run.caveats;
  return json;
}

}  // namespace sluice::answers
