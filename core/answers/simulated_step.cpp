#include "core/answers/simulated_step.h"

namespace sluice::answers {
namespace {

using simulate::Phase;

constexpr std::size_t kRead = 0;
constexpr std::size_t kWrite = 1;

Json phases_json(const simulate::LinkUse& link) {
  Json json;
  for (std::size_t phase = 0; phase < simulate::kPhaseCount; ++phase) {
    json[simulate::phase_name(static_cast<Phase>(phase))] = {
        {"read", link.size_bytes[phase][kRead]}, {"write", link.size_bytes[phase][kWrite]}};
  }
  return json;
}

double busy_share(const simulate::ByPhase& seconds, double total_seconds) {
  return (seconds[0] + seconds[1] + seconds[2]) / total_seconds;
}

}  // namespace

Json to_json(const simulate::DriveWear& wear) {
  return {{"drive", wear.drive},
          {"endurance_bytes", wear.endurance_bytes},
          {"written_bytes", wear.written_bytes},
          {"life_steps", wear.life_steps()},
          {"life_years", wear.life_seconds() / simulate::kSecondsOfYear}};
}

Json simulated_json(const plan::RunPlan& plan, const simulate::SimulatedStep& step) {
  Json json;
  json["simulated"] = true;
  if (plan.config.batch.rank_count > 1) json["ranks"] = plan.config.batch.rank_count;
  for (std::size_t phase = 0; phase < simulate::kPhaseCount; ++phase) {
    json["seconds"][simulate::phase_name(static_cast<Phase>(phase))] = step.seconds[phase];
  }
  json["seconds"]["total"] = step.total_seconds;
  for (const simulate::StepTimes& times : step.steps) {
    json["steps"].push_back(static_cast<double>(times.end_ns - times.start_ns) / 1e9);
  }
  json["activation_wait_seconds"] = {{"out", step.activation_wait_seconds[0]},
                                     {"back", step.activation_wait_seconds[1]}};
  for (const simulate::LinkUse& link : step.links) {
    json["bytes"][link.name] = phases_json(link);
    json["busy"][link.name] = busy_share(link.busy_seconds, step.total_seconds);
  }
  for (const simulate::EngineUse& engine : step.engines) {
    json["busy"][engine.name] = busy_share(engine.busy_seconds, step.total_seconds);
  }
  for (const simulate::DriveWear& wear : simulate::drive_wear(plan.platform, step)) {
    json["wear"].push_back(to_json(wear));
  }
  json["parameters"] = plan.layout.parameter_count;
  json["operations"] = step.operation_count;
  json["model"] = plan.shape.name;
  json["platform"] = plan.platform.name;
  for (const auto& [key, value] : settings::setting_values(plan.config)) {
    json["settings"][key] = value;
  }
  return json;
}

Json sweep_json(const std::string& key, const std::vector<SweepRow>& rows) {
  Json json;
  json["key"] = key;
  for (const SweepRow& row : rows) {
    json["rows"].push_back({{"value", row.value},
                            {"seconds",
                             {{"forward", row.step.seconds[0]},
                              {"backward", row.step.seconds[1]},
                              {"update", row.step.seconds[2]},
                              {"total", row.step.total_seconds}}}});
  }
  return json;
}

}  // namespace sluice::answers
