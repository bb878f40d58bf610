#pragma once
// The condition of `sluice watch --when`: "step_time>+20%", "loss=nan", "no_step_for>60s". What
// each means is in docs/watching.md.
//
// Thread contract: plain data and free functions.

#include <cstdint>
#include <string>

#include "base/status.h"
#include "storage/rundb/rows.h"

namespace sluice::watch {

inline double step_seconds(const rundb::StepRow& step) {
  return static_cast<double>(step.dur) / 1e9;
}

enum class Subject : std::uint8_t { step, lost_records, no_step };

struct Condition {
  std::string text;
  Subject subject = Subject::step;
  // A step's; NaN is "not known". Null for the other subjects.
  double (*figure)(const rundb::StepRow& step) = nullptr;
  bool is_time = false;  // the figure is in seconds
  char sign = '>';       // '=': the figure is no finite number
  bool is_percent = false;
  double bound = 0;  // 0.2 of "+20%"; seconds; a count
};

// ErrorCode::config: an unknown figure, with the nearest right one, or no bound that it can have.
Result<Condition> parse_condition(const std::string& text);

}  // namespace sluice::watch
