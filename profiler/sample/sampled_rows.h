#pragma once
// The records of the perf rings as rows of the run database: threads, functions, calls, samples,
// times of the processors.
//
// Thread contract: one thread at a time.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "profiler/sample/call_tree.h"
#include "profiler/sample/function_names.h"
#include "profiler/sample/perf_records.h"
#include "profiler/sample/thread_times.h"
#include "storage/rundb/rows.h"

namespace sluice::sample {

class SampledRows {
 public:
  // Records of other processes are left out: a child's addresses mean something else here.
  explicit SampledRows(std::uint32_t own_pid) : own_pid_(own_pid) {}

  // A thread that is there as sampling begins.
  void add_thread(std::uint32_t tid, const std::string& name, TimeNs ts);
  // In order of time, later than what was added before.
  void add(std::span<const PerfRecord> records);
  // What is whole up to `ts`, since the last call.
  rundb::SampleRows take_until(TimeNs ts);
  // The same, and nothing comes after.
  rundb::SampleRows take_rest(TimeNs ts);

  std::int64_t sample_count() const { return sample_count_; }
  std::int64_t lost_count() const { return lost_count_; }  // records, by the kernel
  std::int64_t cut_count() const { return calls_.cut_count() + functions_.left_out_count(); }

 private:
  void add_one(const PerfRecord& record);
  std::int64_t thread_of(const PerfRecord& record);
  void take_name_of_parent(std::int64_t thread, const PerfRecord& record);
  void set_name(std::int64_t thread, std::uint32_t tid, const std::string& name);

  const std::uint32_t own_pid_;
  std::map<std::uint32_t, std::int64_t> threads_;  // alive, by tid
  std::map<std::int64_t, std::string> names_;      // of them
  std::int64_t last_thread_ = 0;
  FunctionNames functions_;
  CallTree calls_;
  ThreadTimes times_;
  rundb::SampleRows rows_;
  std::int64_t sample_count_ = 0;
  std::int64_t lost_count_ = 0;
};

}  // namespace sluice::sample
