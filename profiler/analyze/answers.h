#pragma once
// The outcome of every analysis of a run, in the order in which people ask: lost records, steps by
// cause, links, ... The terminal, the page, the window and JSON show the same list.
//
// Thread contract: free functions.

#include <span>
#include <vector>

#include "profiler/analyze/answer.h"
#include "profiler/analyze/run_analysis.h"
#include "profiler/analyze/turn_next.h"

namespace sluice::analyze {

// Whether something was lost: by the counts of the recording (`stats`: all rows of the table), and
// by rows that the file once had.
Answer losses_answer(std::span<const rundb::StatRow> stats, const rundb::Completeness& rows);
// That as a sentence of its own: "Nothing was lost while recording.".
std::string losses_sentence(const Answer& losses);
// The simulation's answer about the run's settings.
Answer turn_next_answer(const PredictedChanges& predicted);

// All but turn_next_answer(), of an analysis that has all but this list.
Result<std::vector<Answer>> answers_of(rundb::Reader& reader, const RunInfo& info,
                                       const std::vector<rundb::StepRow>& steps,
                                       const RunAnalysis& analysis);

}  // namespace sluice::analyze
