#include "core/answers/replay.h"

namespace sluice::answers {
namespace {

Json busy_json(const replay::Busy& busy) {
  if (busy.name.empty()) return nullptr;
  return {{"name", busy.name}, {"share", busy.share}};
}

const char* word_of(replay::RateSource source) {
  switch (source) {
    case replay::RateSource::fitted:
      return "fitted";
    case replay::RateSource::declared:
      return "declared";
    case replay::RateSource::unknown:
      break;
  }
  return "unknown";
}

// null where nobody knows it.
Json rate_json(const replay::ModelledLink& link, std::size_t to) {
  const double rate = link.bytes_per_s[to];
  return {{"bytes_per_s", rate > 0 ? Json(rate) : Json(nullptr)},
          {"source", word_of(link.source[to])}};
}

}  // namespace

Json to_json(const replay::ReplayAnswer& answer) {
  Json json;
  json["steps"] = answer.step_count;
  json["has_steps"] = answer.has_steps;
  json["operations"] = answer.operation_count;
  json["seconds"] = {{"recorded", answer.recorded_seconds},
                     {"replayed", answer.replayed_seconds},
                     {"error", answer.error()}};
  json["busy_share"] = answer.busy_share;
  json["limit"] = busy_json(answer.limit);
  json["explains"] = answer.why_not.empty();
  json["why_not"] = answer.why_not;
  json["links"] = Json::array();
  for (const replay::ModelledLink& link : answer.links) {
    json["links"].push_back(
        {{"name", link.name}, {"read", rate_json(link, 0)}, {"write", rate_json(link, 1)}});
  }
  json["changes"] = Json::array();
  for (const replay::ChangeAnswer& change : answer.changes) {
    json["changes"].push_back({{"change", change.change},
                               {"seconds", change.step_seconds},
                               {"factor", change.factor},
                               {"limit", busy_json(change.limit)}});
  }
  json["notes"] = answer.notes;
  json["stand_ins"] = answer.stand_ins;
  json["clock"] = answer.clock_note;
  json["simulated"] = true;
  return json;
}

}  // namespace sluice::answers
