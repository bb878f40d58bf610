#pragma once
// Whether a run's times are those of the machine that it models, or partly those of the computer
// that ran it (storage/rundb/lateness.h).
//
// Thread contract: plain data and free functions.

#include <string>
#include <vector>

#include "profiler/analyze/answer.h"
#include "profiler/analyze/run_data.h"
#include "storage/rundb/lateness.h"

namespace sluice::analyze {

struct Lateness {
  bool is_emulated = false;  // else there is no modelled time to be late by
  rundb::LatenessSum all;
  // The largest share of one stretch: of the steps from a change of a knob, or a resume, on.
  rundb::LatenessSum worst;
  std::int64_t worst_from = 0;      // its first step
  std::vector<std::string> stages;  // most of the lateness, the most first
  double needed_time_scale = 1;

  bool is_late() const { return all.is_late() || worst.is_late(); }
  // "70.0 % of 256 060 modelled operations ended late ...: these times are partly this
  // computer's. ..."; "" where they are the modelled machine's.
  std::string words() const;
  // Beside what says that all is well: "70 % of operations LATE"; "" as above.
  std::string short_words() const;
};

Result<Lateness> lateness_of(rundb::Reader& reader, const RunInfo& info);

// "late operations": nothing was found where what there was is below the thresholds.
Answer lateness_answer(const Lateness& lateness);

}  // namespace sluice::analyze
