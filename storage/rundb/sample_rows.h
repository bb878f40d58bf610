#pragma once
// Rows of the processor samples (profiler/sample). Their tables are made with the first batch that
// has some, so a run that is not sampled has none of them. Columns: docs/rundb_schema.md.
//
// Thread contract: plain data.

#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include "base/units.h"

namespace sluice::rundb {

// Ids of threads, functions and calls begin at 1 in what a writer is given; the file goes on with
// those of the stretches before.
struct SampledThreadRow {
  std::int64_t id = 0;
  std::int64_t tid = 0;
  std::string name = {};  // as the system has it; several threads may have the same
};

struct SampledFunctionRow {
  std::int64_t id = 0;
  std::string name = {};     // "libm.so.6+0x12a0" where the library does not say; "" unknown code
  std::string library = {};  // "" unknown code
};

// A function with whoever called it, and so on: a chain of calls is known by its innermost one.
struct CallRow {
  std::int64_t id = 0;
  std::int64_t caller_id = -1;  // another call; -1: the outermost that is known
  std::int64_t function_id = 0;
};

struct CallSampleRow {
  std::int64_t thread_id = 0;
  TimeNs ts = 0;
  std::int64_t cpu = 0;
  std::int64_t call_id = 0;
};

// A stretch of a thread's life, and how long it was in which state: the three are all of it.
struct ProcessorTimeRow {
  std::int64_t thread_id = 0;
  TimeNs ts = 0;
  TimeNs dur = 0;
  TimeNs running = 0;
  TimeNs preempted = 0;  // it could have run, and another thread had the processor
  TimeNs waiting = 0;    // for something to happen, and from then on for a processor

  TimeNs end_ts() const { return ts + dur; }
};

struct SampleRows {
  std::vector<SampledThreadRow> threads = {};  // in place of what stands there of them
  std::vector<SampledFunctionRow> functions = {};
  std::vector<CallRow> calls = {};
  std::vector<CallSampleRow> samples = {};
  std::vector<ProcessorTimeRow> times = {};

  bool is_empty() const {
    return threads.empty() && functions.empty() && calls.empty() && samples.empty() &&
           times.empty();
  }
};

// All of `rows` behind those that are there.
inline void move_behind(SampleRows& there, SampleRows&& rows) {
  const auto move = [](auto& to, auto& from) {
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
  };
  move(there.threads, rows.threads);
  move(there.functions, rows.functions);
  move(there.calls, rows.calls);
  move(there.samples, rows.samples);
  move(there.times, rows.times);
}

}  // namespace sluice::rundb
