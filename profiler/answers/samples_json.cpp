#include "profiler/answers/samples_json.h"

#include "base/kernel_text.h"

namespace sluice::answers {
namespace {

constexpr std::size_t kShortName = 80;

Json shares_of(const analyze::ProcessorShares& shares) {
  return {
      {"running", shares.running}, {"preempted", shares.preempted}, {"waiting", shares.waiting}};
}

Json list_of(const analyze::SampledFunctions& of, const std::vector<analyze::SampledFunction>& list,
             std::int64_t analyze::SampledFunction::* sorted_by) {
  Json rows = Json::array();
  for (const analyze::SampledFunction& function : list) {
    rows.push_back({{"name", function.name},
                    {"short_name", short_kernel_name(what_runs(function.name), kShortName)},
                    {"library", function.library},
                    {"self_count", function.self_count},
                    {"self_share", of.share(function.self_count)},
                    {"total_count", function.total_count},
                    {"total_share", of.share(function.total_count)},
                    {"uncertainty", of.uncertainty(function.*sorted_by)}});
  }
  return rows;
}

void add_lists(const analyze::SampledFunctions& functions, Json& json) {
  json["sample_count"] = functions.sample_count;
  json["by_self"] = list_of(functions, functions.by_self, &analyze::SampledFunction::self_count);
  json["by_total"] = list_of(functions, functions.by_total, &analyze::SampledFunction::total_count);
}

}  // namespace

Json to_json(const analyze::SampledTime& time) {
  Json json = {{"first_step", time.steps ? Json(time.steps->first + 1) : Json()},
               {"last_step", time.steps ? Json(time.steps->last + 1) : Json()},
               {"dur", time.dur},
               {"lost_count", time.lost_count},
               {"running_ns", time.running_ns},
               {"shares", shares_of(time.shares)},
               {"thread_count", time.thread_count},
               {"threads", Json::array()}};
  for (const analyze::SampledThread& thread : time.threads) {
    json["threads"].push_back({{"name", thread.name},
                               {"tid", thread.tid},
                               {"dur", thread.dur},
                               {"shares", shares_of(thread.shares)},
                               {"sample_count", thread.sample_count}});
  }
  add_lists(time.functions, json);
  json["stages"] = Json::array();
  for (const analyze::SampledStage& stage : time.stages) {
    Json row = {{"name", stage.name},
                {"threads", stage.threads.empty() ? Json() : Json(stage.threads)}};
    add_lists(stage.functions, row);
    json["stages"].push_back(std::move(row));
  }
  json["why_none"] = time.why_none.empty() ? Json() : Json(time.why_none);
  return json;
}

}  // namespace sluice::answers
