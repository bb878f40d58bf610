#pragma once
// The part of a record that is replayed: up to kStepsMax steps that follow one another, with all
// operations that were under way in them, or the whole run where it has no steps.
//
// Thread contract: plain data; the free function uses its reader.

#include <memory>
#include <vector>

#include "profiler/analyze/run_data.h"

namespace sluice::replay {

inline constexpr std::size_t kStepsMax = 8;
// Steps are left out, and a run without steps is refused, above so many operations: each takes
// about 300 bytes here.
inline constexpr std::int64_t kOperationsMax = 1'000'000;
// Under way at one time: what is looked at for each grows with them.
inline constexpr std::size_t kAtOnceMax = 4'096;

struct RecordedWindow {
  RecordedWindow() = default;
  RecordedWindow(const RecordedWindow&) = delete;  // `data` points into `info`
  RecordedWindow& operator=(const RecordedWindow&) = delete;

  analyze::RunInfo info;
  analyze::StepData data;             // its row is the whole window
  std::vector<rundb::StepRow> steps;  // in order; empty: the run has none

  std::size_t step_count() const { return steps.empty() ? 1 : steps.size(); }
};

// The longest stretch of steps without a pause between two, of those with the settings now in
// force; of equally long ones the last. The first two steps of a run and behind a change of a knob
// count where there are no others.
//
// Errors: the reader's, and ErrorCode::config: there are no operations, or too many.
Result<std::unique_ptr<RecordedWindow>> load_window(rundb::Reader& reader);

}  // namespace sluice::replay
