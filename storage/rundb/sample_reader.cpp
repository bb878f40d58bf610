#include "storage/rundb/sample_reader.h"

#include "storage/rundb/detail/read_connection.h"
#include "storage/rundb/detail/sample_tables.h"

namespace sluice::rundb {

Result<bool> SampleReader::has_samples() { return detail::has_sample_tables(file_->connection()); }

Result<std::vector<SampledThreadRow>> SampleReader::threads() {
  return file_->read<SampledThreadRow>("sampled_threads");
}
Result<std::vector<SampledFunctionRow>> SampleReader::functions() {
  return file_->read<SampledFunctionRow>("sampled_functions");
}
Result<std::vector<CallRow>> SampleReader::calls() { return file_->read<CallRow>("calls"); }

Result<std::vector<CallSampleRow>> SampleReader::samples_between(TimeNs begin, TimeNs end) {
  return file_->read<CallSampleRow>("call_samples_between", begin, end);
}
Result<std::vector<ProcessorTimeRow>> SampleReader::times_between(TimeNs begin, TimeNs end) {
  return file_->read<ProcessorTimeRow>("processor_times_between", begin, end);
}

}  // namespace sluice::rundb
