#pragma once
// A stage of sluice_record.h as a row of table `stage`.
//
// Thread contract: free functions, any thread.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "profiler/c_api/sluice_record.h"
#include "storage/rundb/rows.h"

namespace sluice::c_api {

// None: one of the values means nothing. The id of the name is not in it.
std::optional<rundb::StageRow> stage_row(const sluice_stage& stage);

// The words of a meaning: docs/rundb_schema.md's.
struct StageWords {
  std::string_view kind = "kernel";
  std::string_view place = "host";
  std::string_view phase = "";  // none
  std::string_view cause = "";  // by place
};
// None: one of the words is none of those.
std::optional<sluice_stage> stage_of(const StageWords& words);
// What each of the four may be.
struct StageWordLists {
  std::vector<std::string> kinds, places, phases, causes;
};
StageWordLists stage_words();

}  // namespace sluice::c_api
