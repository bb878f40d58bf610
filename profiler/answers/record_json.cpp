#include "profiler/answers/record_json.h"

namespace sluice::answers {

const char* direction_name(rundb::Direction direction) {
  return direction == rundb::Direction::read ? "read" : "write";
}

Json answers_json(std::span<const analyze::Answer> answers) {
  Json rows = Json::array();
  for (const analyze::Answer& answer : answers) {
    rows.push_back({{"of", answer.of},
                    {"outcome", analyze::outcome_name(answer.outcome)},
                    {"why", answer.why}});
  }
  return rows;
}

Json losses_json(std::span<const rundb::StatRow> losses) {
  Json rows = Json::array();
  for (const rundb::StatRow& loss : losses) {
    rows.push_back({{"name", loss.name}, {"value", loss.value}, {"description", loss.description}});
  }
  return rows;
}

Json knob_changes_json(std::span<const rundb::KnobChangeRow> changes) {
  Json rows = Json::array();
  for (const rundb::KnobChangeRow& change : changes) {
    rows.push_back({{"step", change.step_id + 1},
                    {"knob", change.knob},
                    {"old", change.old_value},
                    {"new", change.new_value},
                    {"who", change.who}});
  }
  return rows;
}

Json shares_json(const std::array<double, analyze::kCauseCount>& shares) {
  Json json;
  for (std::size_t c = 0; c < analyze::kCauseCount; ++c) {
    json[std::string(analyze::cause_name(static_cast<analyze::Cause>(c)))] = shares[c];
  }
  return json;
}

Json stretches_json(std::span<const analyze::Stretch> stretches) {
  Json rows = Json::array();
  for (const analyze::Stretch& stretch : stretches) {
    rows.push_back({{"first_step", stretch.first_step + 1},
                    {"last_step", stretch.last_step + 1},
                    {"settings", stretch.settings},
                    {"steps", stretch.steps},
                    {"dur", stretch.dur},
                    {"noise", stretch.noise},
                    {"host_link", {{"read", stretch.read_bytes}, {"write", stretch.write_bytes}}},
                    {"speed_up", stretch.speed_up},
                    {"late_share", stretch.lateness.late_share()},
                    {"is_speed_up_late", stretch.is_speed_up_late}});
  }
  return rows;
}

Json doubts_json(const analyze::RunAnalysis& analysis) {
  Json rows = Json::array();
  for (const analyze::Doubt& doubt : analyze::doubts_of(analysis))
    rows.push_back({{"mark", doubt.mark}, {"sentence", doubt.sentence}});
  return rows;
}

Json lateness_json(const analyze::Lateness& lateness) {
  if (!lateness.is_emulated) return nullptr;
  return {{"operations", lateness.all.operations},
          {"late", lateness.all.late},
          {"late_share", lateness.all.late_share()},
          {"time_share", lateness.all.time_share()},
          {"is_late", lateness.is_late()},
          {"words", lateness.words()},
          {"stages", lateness.stages},
          {"needed_time_scale", lateness.needed_time_scale}};
}

Json change_json(const analyze::PredictedChange& change) {
  return {{"settings", change.settings}, {"from", change.from},
          {"seconds", change.seconds},   {"change", change.change},
          {"why", change.why},           {"needs_new_run", change.needs_new_run}};
}

}  // namespace sluice::answers
