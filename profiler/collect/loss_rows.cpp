#include "profiler/collect/loss_rows.h"

#include <string>

#include "storage/rundb/loss_counts.h"

namespace sluice::collect {

bool LossRows::ask() {
  dropped_count_ = 0;
  for (const record::Ring* ring : recorder_.rings()) dropped_count_ += ring->dropped_count();
  return dropped_count_ != dropped_count_written_ || lowered_count_ > 0;
}

std::vector<rundb::StatRow> LossRows::rows(bool is_first) const {
  std::vector<rundb::StatRow> losses{
      {std::string(rundb::kRecordsDropped), rundb::Severity::loss,
       static_cast<std::int64_t>(dropped_count_ - dropped_count_written_),
       "records dropped because their thread's ring was full: the collector did not drain it "
       "in time; use larger rings, a lower recording level or a shorter flush interval"},
      {std::string(rundb::kLevelLowered), rundb::Severity::loss, lowered_count_,
       "times that the recorder lowered its level by one because it took more of a processor than "
       "it may; instants on track recorder say when"},
      {std::string(rundb::kRecordsUnwritten), rundb::Severity::loss,
       static_cast<std::int64_t>(unwritten_count_.load()),
       "records that were recorded but could not be written; stat recording_stopped says why"}};
  if (!is_first) std::erase_if(losses, [](const rundb::StatRow& row) { return row.value == 0; });
  return losses;
}

void LossRows::written() {
  dropped_count_written_ = dropped_count_;
  lowered_count_ = 0;
}

}  // namespace sluice::collect
