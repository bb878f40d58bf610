#include "mcp/tool_groups.h"
#include "profiler/analyze/sampled_time.h"
#include "profiler/answers/samples_json.h"
#include "storage/rundb/query.h"

namespace sluice::mcp {
namespace {

using analyze::Outcome;

// All of the record where no step is named.
Result<std::optional<analyze::StepRange>> chosen_steps(const Arguments& arguments) {
  const std::optional<std::int64_t> step = arguments.integer("step");
  const std::optional<std::int64_t> last = arguments.integer("last");
  if (last && !step) {
    return make_error(ErrorCode::config,
                      "last: the last of several steps, so `step` has to name the first one");
  }
  if (!step) return std::optional<analyze::StepRange>();
  return std::optional(analyze::StepRange{*step - 1, last.value_or(*step) - 1});
}

Result<Answered> samples(const Arguments& arguments, const Call& call) {
  ASSIGN_OR_RETURN(const std::string database, database_at(arguments, call));
  ASSIGN_OR_RETURN(const std::optional<analyze::StepRange> chosen, chosen_steps(arguments));
  ASSIGN_OR_RETURN(const std::unique_ptr<rundb::Reader> reader, rundb::Reader::open(database));
  rundb::Query(*reader).end_if(call.stops);
  ASSIGN_OR_RETURN(const rundb::Reader::Snapshot snapshot, reader->snapshot());
  ASSIGN_OR_RETURN(const analyze::RunInfo info, analyze::load_run_info(*reader));
  ASSIGN_OR_RETURN(const std::vector<rundb::StepRow> steps, reader->steps());
  ASSIGN_OR_RETURN(const analyze::SampledTime time,
                   analyze::sampled_time(*reader, info, steps, chosen));
  Answered answered;
  answered.data = answers::to_json(time);
  answered.data.erase("why_none");
  answered.heart = {"shares", "by_self"};
  answered.why = fmt::format("{} samples", time.functions.sample_count);
  if (chosen) answered.steps = {chosen->first};
  if (chosen && chosen->last != chosen->first) answered.steps.push_back(chosen->last);
  if (!time.why_none.empty()) {
    answered.outcome = Outcome::could_not_look;
    answered.why = time.why_none;
  }
  return answered;
}

}  // namespace

std::vector<Tool> sample_tools() {
  return {
      {"samples",
       Effect::reads,
       "What threads did on the processors, of a run with record_samples above 0: how long each "
       "ran, was preempted and waited, which functions ran by samples (by_self: in the "
       "function, by_total: with what it called), and which ran while operations of a name "
       "were under way. The uncertainty of a share is of 19 cases in 20.",
       {run_parameter(),
        {"step", Parameter::Type::integer, "counted from 1; default: all of the record", false, 1,
         INT32_MAX},
        {"last", Parameter::Type::integer, "the last of several; default: that step alone", false,
         1, INT32_MAX}},
       samples}};
}

}  // namespace sluice::mcp
