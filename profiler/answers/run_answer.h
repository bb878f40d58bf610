#pragma once
// A run, finished or live, as its record tells it: steps, where their time went, bytes, losses,
// what became of every analysis. `sluice show` prints it.
//
// Thread contract: plain data and free functions that read databases.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/stops.h"
#include "profiler/analyze/activation_waits.h"
#include "profiler/analyze/answers.h"
#include "profiler/analyze/run_analysis.h"
#include "profiler/analyze/sampled_time.h"
#include "profiler/analyze/step_explanation.h"
#include "profiler/analyze/step_verdicts.h"
#include "profiler/analyze/stretches.h"
#include "profiler/analyze/turn_next.h"
#include "storage/rundb/reader.h"

namespace sluice::answers {

// Those of the record (docs/sampling.md).
struct ProcessorSamples {
  bool are_there = false;
  std::optional<analyze::SampledTime> said;  // none: nobody asked
};

// All of it is read in one snapshot.
struct RunAnswer {
  std::string database;  // its path; of several ranks rank 0's
  std::vector<rundb::MetaRow> meta;
  std::vector<rundb::StepRow> steps;
  std::vector<rundb::ValidationRow> validations;
  std::vector<rundb::SpanTotals> spans;
  std::vector<rundb::LinkTotals> links;
  std::vector<analyze::LayerWaits> waits;  // for activations
  std::vector<rundb::StatRow> losses;
  analyze::RunInfo info;
  analyze::RunAnalysis analysis;
  std::vector<analyze::Stretch> stretches;
  std::map<std::int64_t, analyze::Shares> shares;       // of the last steps, by id, where asked for
  std::optional<analyze::StepExplanation> explanation;  // of chosen steps; none: nobody asked
  ProcessorSamples samples;
  std::optional<analyze::PredictedChanges> predicted;  // none: nobody asked

  std::vector<analyze::Answer> answers() const;
  std::string meta_value(std::string_view key) const;  // "?": the record does not say
  TimeNs median_step_ns() const;
};

struct RunQuestion {
  std::vector<std::string> databases;                // or folders; of one run: one, or one a rank
  std::int64_t steps_with_shares = 0;                // the last steps of which `shares` are wanted
  std::optional<analyze::StepRange> explained = {};  // the steps of which `explanation` is wanted
  bool wants_samples = false;  // what they say of those steps, or of all: `samples.said`
  Stops stops = {};  // then the question ends with ErrorCode::cancelled; empty: it never does
};

// The answer of several ranks is rank 0's record with what all say together, and the losses of all.
// Errors: rundb::Reader's, analyze::open_rank_records()'s, analyze::explain_steps()'s.
Result<RunAnswer> ask_run(const RunQuestion& question);

}  // namespace sluice::answers
