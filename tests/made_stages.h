#pragma once
// Table `stage` as a run has it, for databases and steps that tests make by hand: the rows of
// core/stages/stage.h.

#include <cstdio>
#include <string>
#include <vector>

#include "core/stages/stage.h"
#include "storage/rundb/rows.h"
#include "storage/rundb/writer.h"

namespace sluice {

inline rundb::StageRow made_stage(const stages::StageInfo& stage, std::int64_t name_id) {
  char colour[8];
  std::snprintf(colour, sizeof(colour), "#%06x", stage.colour);
  return {.name_id = name_id,
          .kind = std::string(word_of(stage.kind)),
          .place = std::string(word_of(stage.place)),
          .drive_file = stage.file ? std::string(word_of(*stage.file)) : "",
          .phase = std::string(word_of(stage.phase)),
          .cause = std::string(word_of(stage.cause)),
          .set_off_by = {},
          .every_step = stage.every_step,
          .colour = colour};
}

inline std::vector<rundb::StageRow> made_stages(rundb::Writer& writer) {
  std::vector<rundb::StageRow> rows;
  for (const stages::StageInfo& stage : stages::kStages) {
    rows.push_back(made_stage(stage, writer.string_id(stage.name)));
  }
  return rows;
}

}  // namespace sluice
