#pragma once
// The tools, a group a file, and all of them as one table.
//
// Thread contract: free functions.

#include "mcp/tool.h"

namespace sluice::mcp {

std::vector<Tool> run_tools();     // list_runs, overview, links, causes, stretches, compare
std::vector<Tool> span_tools();    // step_path, explain_step, spans
std::vector<Tool> sample_tools();  // samples
std::vector<Tool> sql_tools();     // query_sql
std::vector<Tool> tuning_tools();  // what_if, propose
std::vector<Tool> knob_tools();    // knobs
std::vector<Tool> write_tools();   // set_knob, snapshot, stop

// All, in this order, each with `max_bytes` and `timeout_ms` besides its own arguments.
const std::vector<Tool>& tool_table();

// The argument that names a run.
Parameter run_parameter();
// The database that it means: of one run, of one rank. Errors: RunFolders::resolve()'s;
// ErrorCode::config where a folder has one of each rank.
Result<std::string> database_at(const Arguments& arguments, const Call& call);

}  // namespace sluice::mcp
