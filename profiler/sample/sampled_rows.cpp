#include "profiler/sample/sampled_rows.h"

#include <utility>

namespace sluice::sample {

void SampledRows::add_thread(std::uint32_t tid, const std::string& name, TimeNs ts) {
  const auto [known, is_new] = threads_.try_emplace(tid, last_thread_ + 1);
  if (is_new) last_thread_ += 1;
  set_name(known->second, tid, name);
  times_.begin(known->second, ts);
}

void SampledRows::set_name(std::int64_t thread, std::uint32_t tid, const std::string& name) {
  names_[thread] = name;
  rows_.threads.push_back({thread, tid, name});
}

// Until it has one of its own, which may have come already.
void SampledRows::take_name_of_parent(std::int64_t thread, const PerfRecord& record) {
  const auto parent = threads_.find(record.parent_tid);
  if (!names_[thread].empty() || parent == threads_.end()) return;
  set_name(thread, record.tid, std::string(names_[parent->second]));
}

std::int64_t SampledRows::thread_of(const PerfRecord& record) {
  const auto known = threads_.find(record.tid);
  if (known != threads_.end()) return known->second;
  add_thread(record.tid, "", record.ts);  // its begin was lost
  return threads_.at(record.tid);
}

void SampledRows::add(std::span<const PerfRecord> records) {
  std::vector<std::uint64_t> addresses;
  for (const PerfRecord& record : records) {
    if (record.pid == own_pid_) CallTree::add_addresses(record.chain, addresses);
  }
  functions_.learn(std::move(addresses), rows_.functions);
  for (const PerfRecord& record : records) add_one(record);
}

void SampledRows::add_one(const PerfRecord& record) {
  if (record.kind == PerfKind::lost) {
    lost_count_ += static_cast<std::int64_t>(record.lost_count);
    return;
  }
  if (record.pid != own_pid_) return;
  const std::int64_t thread = thread_of(record);
  switch (record.kind) {
    case PerfKind::sample:
      times_.seen_running(thread, record.ts);
      rows_.samples.push_back(
          {thread, record.ts, record.cpu, calls_.call_of(record.chain, functions_, rows_.calls)});
      ++sample_count_;
      break;
    case PerfKind::switched_in:
      times_.change(thread, ThreadState::running, record.ts);
      break;
    case PerfKind::switched_out:
      times_.change(thread, ThreadState::waiting, record.ts);
      break;
    case PerfKind::preempted:
      times_.change(thread, ThreadState::preempted, record.ts);
      break;
    case PerfKind::name:
      set_name(thread, record.tid, record.name);
      break;
    case PerfKind::thread_ends:
      times_.end(thread, record.ts);
      names_.erase(thread);
      threads_.erase(record.tid);
      break;
    case PerfKind::thread_begins:
      take_name_of_parent(thread, record);
      break;
    case PerfKind::lost:
      break;
  }
}

rundb::SampleRows SampledRows::take_until(TimeNs ts) {
  times_.take_until(ts, rows_.times);
  return std::exchange(rows_, {});
}

rundb::SampleRows SampledRows::take_rest(TimeNs ts) {
  times_.take_rest(ts, rows_.times);
  return std::exchange(rows_, {});
}

}  // namespace sluice::sample
