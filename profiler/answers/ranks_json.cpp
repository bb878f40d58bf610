#include "profiler/answers/ranks_json.h"

namespace sluice::answers {

Json to_json(const analyze::RankAnalysis& analysis) {
  Json json;
  json["steps"] = analysis.steps.size();
  json["calls"] = analysis.call_count;
  json["close_calls"] = analysis.close_count;
  json["bound_ns"] = analysis.bound_ns;
  json["straggler"] = nullptr;
  if (analysis.straggler) json["straggler"] = *analysis.straggler;
  json["share"] = {{"exposed", analysis.exposed_share()},
                   {"waiting", analysis.waiting_share()},
                   {"hidden", analysis.hidden_share()}};
  json["findings"] = analyze::rank_findings(analysis);
  json["ranks"] = Json::array();
  for (const analyze::RankUse& use : analysis.ranks) {
    json["ranks"].push_back({{"rank", use.rank},
                             {"step_ns", use.step_ns},
                             {"forward_ns", use.forward_ns},
                             {"backward_ns", use.backward_ns},
                             {"update_ns", use.rest_ns},
                             {"exposed_ns", use.exposed_ns},
                             {"waiting_ns", use.waiting_ns},
                             {"hidden_ns", use.hidden_ns},
                             {"awaited_ns", use.awaited_ns},
                             {"last_count", use.last_count},
                             {"late_ns", use.late_ns}});
  }
  return json;
}

}  // namespace sluice::answers
