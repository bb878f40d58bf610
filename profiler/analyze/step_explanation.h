#pragma once
// Why a step, or a range of steps, took as long as it did: its time by cause beside the usual one,
// and for each cause that took more the operations that made the difference, with one sentence of
// why. Text, page, window and JSON say these sentences.
//
// The usual steps are settled steps of the same stretch: with the same settings and no lasting
// change of step time in between, not skipped, not standing out, with operations in the record, and
// not the chosen ones. Where there are fewer than three, those between the same two changes of
// knobs; else those of the nearest stretch of knobs before or behind, and a note says it.
//
// Thread contract: plain data and free functions that use their reader. Memory: one step's spans at
// a time.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "profiler/analyze/cause.h"
#include "profiler/analyze/rank_records.h"
#include "profiler/analyze/run_data.h"
#include "profiler/analyze/step_range.h"

namespace sluice::analyze {

inline constexpr std::size_t kUsualStepsMax = 12;   // whose operations are looked at
inline constexpr std::size_t kChosenStepsMax = 50;  // the same of a range
inline constexpr std::size_t kReasonSpansMax = 16;  // evidence of a reason
inline constexpr std::size_t kReasonsMax = 4;       // causes that have one
inline constexpr double kWorthNamingShare = 0.01;   // of a usual step; less of a cause is noise
inline constexpr double kCauseNoise = 3;            // times the noise; less of a cause is noise

enum class ReasonKind : std::uint8_t {
  slower_device,      // one device took longer for the same bytes or work, others did not
  slower_link,        // whatever crossed a link took longer for the same bytes
  slower_operation,   // an operation did, and no device or link alone is to blame
  more_bytes,         // than usual
  more_operations,    // than usual
  unusual_operation,  // a usual step has none
  late_rank,          // the others waited for it
  waited,             // for a buffer, an activation
  nothing_running,    // nothing that was recorded
  late_operations,    // of the emulated clock: this computer's time, not the modelled machine's
  recorder_cost,
  less_hidden,  // as long as usual, and less of it beside other work
  count_,
};
std::string_view reason_name(ReasonKind kind);  // "slower device"

// The reason why a cause took more, as far as the record says.
struct StepReason {
  ReasonKind kind = ReasonKind::less_hidden;
  std::string operation;         // its name; "": nothing was running
  std::string track;             // its label
  std::string device;            // by name; "": none, or not one alone
  std::string link;              // by name; "": none, or not one alone
  int rank = -1;                 // that the others waited for; -1: none, or the record does not say
  double times = 1;              // as long as usual, for the same bytes or work
  std::int64_t bytes = 0;        // of that operation, a step
  std::int64_t usual_bytes = 0;  // the same, of a usual step
  std::vector<std::int64_t> spans;  // the worst first, at most kReasonSpansMax
  std::string words;                // one sentence, with its full stop
};

// Time of one cause on the path: of the chosen step, or the mean of a range.
struct ExplainedCause {
  Cause cause = Cause::other;
  TimeNs ns = 0;
  TimeNs usual_ns = 0;           // the median of the usual steps
  bool is_within_noise = false;  // the difference is
  std::optional<StepReason> reason;

  TimeNs more_ns() const { return ns - usual_ns; }
};

struct StepExplanation {
  StepRange steps;
  std::size_t step_count = 0;             // in the record
  TimeNs dur = 0;                         // their mean
  TimeNs usual_dur = 0;                   // the median of the usual steps; 0: there are none
  TimeNs noise_ns = 0;                    // of one usual step's time
  std::size_t usual_count = 0;            // steps of which usual_dur is the median
  std::vector<std::int64_t> usual_steps;  // of them, those whose operations were looked at
  bool is_beyond_noise = false;           // the difference of dur and usual_dur
  std::vector<ExplainedCause> causes;     // the largest difference first, either way
  // Sentences about settings, and about what was between the steps.
  std::vector<std::string> notes;
  std::string why_unknown;   // why there are no causes; no sentence of its own; "": there are
  std::string why_no_usual;  // why they stand beside nothing; the same

  bool has_usual() const { return why_no_usual.empty(); }
  TimeNs more_ns() const { return has_usual() ? dur - usual_dur : 0; }
  std::string name() const;  // "step 20", "steps 20 to 24"
  // "Step 20 took 7.10 s, 3.60 s (103 %) more than the median of 56 usual steps, 3.50 s: beyond
  // the noise."
  std::string words() const;
  // "reading state and gradients from drives: 2.10 s instead of 680 ms, 1.42 s more; within the
  // noise"; beside nothing its time alone.
  std::string words_of(const ExplainedCause& cause) const;
  // What is shown of the causes: those that take a hundredth of the step, differ by a thousandth,
  // or have a reason.
  bool is_worth_a_line(const ExplainedCause& cause) const;
  // That of the cause which took most more; null: none has one.
  const StepReason* first_reason() const;
};

// `steps`: all of the run. `ranks`: the records of all its ranks, where they are at hand; a record
// that has all of them needs none. Hold a snapshot where the run is live. Operations that are
// damaged or not in the record leave what the steps alone say, and why_unknown.
// ErrorCode::config: the run has no such steps; the message says which it has.
Result<StepExplanation> explain_steps(rundb::Reader& reader, const RunInfo& info,
                                      const std::vector<rundb::StepRow>& steps, StepRange chosen,
                                      const std::vector<RankRecord>& ranks = {});
// Several of one run: their usual steps are looked at once.
Result<std::vector<StepExplanation>> explain_each(rundb::Reader& reader, const RunInfo& info,
                                                  const std::vector<rundb::StepRow>& steps,
                                                  const std::vector<StepRange>& chosen,
                                                  const std::vector<RankRecord>& ranks = {});

}  // namespace sluice::analyze
