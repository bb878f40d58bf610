#include "mcp/tool_groups.h"
#include "profiler/analyze/rank_records.h"

namespace sluice::mcp {

Parameter run_parameter() {
  return {"run", Parameter::Type::text,
          "a run database: its path, or its name under the server's folder, as list_runs has it; "
          "may be left out where the server has one run"};
}

Result<std::string> database_at(const Arguments& arguments, const Call& call) {
  ASSIGN_OR_RETURN(std::string database, call.runs.resolve(arguments.text("run")));
  const std::vector<std::string> ranks = analyze::rank_databases_in(database);
  if (ranks.empty()) return database;
  return make_error(ErrorCode::config,
                    "{}: has the records of {} ranks; name one of them, as {}; overview takes all",
                    database, ranks.size(), ranks.front());
}

const std::vector<Tool>& tool_table() {
  static const std::vector<Tool> table = [] {
    std::vector<Tool> tools;
    for (auto* group :
         {run_tools, span_tools, sample_tools, sql_tools, tuning_tools, knob_tools, write_tools}) {
      for (Tool& tool : group()) tools.push_back(std::move(tool));
    }
    for (Tool& tool : tools) {
      tool.parameters.push_back({"max_bytes", Parameter::Type::integer,
                                 "the answer's bytes at most; default 4096", false,
                                 kAnswerBytesLeast, kAnswerBytesMost});
      tool.parameters.push_back({"timeout_ms", Parameter::Type::integer,
                                 "the call's time at most; default 10000", false, 1,
                                 kCallTimeMost.count()});
    }
    return tools;
  }();
  return table;
}

}  // namespace sluice::mcp
