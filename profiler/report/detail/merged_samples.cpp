#include "profiler/report/detail/merged_samples.h"

#include <vector>

#include "storage/rundb/sample_reader.h"

namespace sluice::report::detail {
namespace {

constexpr std::size_t kBatchRows = 1 << 14;

template <typename Row>
std::int64_t last_id(const std::vector<Row>& rows) {
  return rows.empty() ? 0 : rows.back().id;
}

}  // namespace

Status MergedSamples::add(rundb::Reader& reader) {
  rundb::SampleReader samples(reader);
  ASSIGN_OR_RETURN(const bool has_samples, samples.has_samples());
  if (!has_samples) return ok_status();
  rundb::Batch batch;
  rundb::SampleRows& rows = batch.samples;
  ASSIGN_OR_RETURN(rows.threads, samples.threads());
  ASSIGN_OR_RETURN(rows.functions, samples.functions());
  ASSIGN_OR_RETURN(rows.calls, samples.calls());
  const std::int64_t last_thread = thread_ + last_id(rows.threads);
  const std::int64_t last_function = function_ + last_id(rows.functions);
  const std::int64_t last_call = call_ + last_id(rows.calls);
  for (rundb::SampledThreadRow& row : rows.threads) row.id += thread_;
  for (rundb::SampledFunctionRow& row : rows.functions) row.id += function_;
  for (rundb::CallRow& row : rows.calls) {
    row.id += call_;
    if (row.caller_id >= 0) row.caller_id += call_;
    row.function_id += function_;
  }
  RETURN_IF_ERROR(append_(batch));
  ASSIGN_OR_RETURN(const auto all,
                   samples.samples_between(rundb::kBeforeAllSamples, rundb::kBehindAllSamples));
  for (rundb::CallSampleRow row : all) {
    row.thread_id += thread_;
    row.call_id += call_;
    rows.samples.push_back(row);
    if (rows.samples.size() == kBatchRows) RETURN_IF_ERROR(append_(batch));
  }
  RETURN_IF_ERROR(append_(batch));
  ASSIGN_OR_RETURN(const auto times,
                   samples.times_between(rundb::kBeforeAllSamples, rundb::kBehindAllSamples));
  for (rundb::ProcessorTimeRow row : times) {
    row.thread_id += thread_;
    rows.times.push_back(row);
    if (rows.times.size() == kBatchRows) RETURN_IF_ERROR(append_(batch));
  }
  thread_ = last_thread;
  function_ = last_function;
  call_ = last_call;
  return append_(batch);
}

}  // namespace sluice::report::detail
