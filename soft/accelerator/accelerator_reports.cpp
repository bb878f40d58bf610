// The messages to people: mistakes of order, unfinished work, and counts.

#include <c10/util/Exception.h>

#include "soft/accelerator/accelerator.h"

namespace sluice::soft_accelerator {
namespace {

constexpr std::size_t kListedJobs = 8;

const char* does(AccessKind kind) { return kind == AccessKind::write ? "writes" : "reads"; }
const char* doing(AccessKind kind) { return kind == AccessKind::write ? "writing" : "reading"; }

}  // namespace

std::string Accelerator::text_of(const Block& block) const {
  std::string text = block.device == kPinned ? "pinned block " : "block ";
  text += std::to_string(block.number) + " (" + std::to_string(block.asked_bytes) + " bytes";
  if (!block.name.empty()) text += ", '" + block.name + "'";
  return text + ")";
}

void Accelerator::check_order(const Stream& stream, const char* job_name,
                              const std::vector<Use>& uses) {
  for (const Use& use : uses) {
    const Block* const block = block_at(use.range.begin);
    if (block == nullptr) continue;
    const auto earlier = block->history.conflict(use.range, use.kind, stream.clock);
    if (!earlier) continue;
    const std::string& other = streams_[static_cast<std::size_t>(earlier->job.stream)]->name;
    keep("software accelerator: stream '" + stream.name + "' " + does(use.kind) + " " +
         text_of(*block) + " that stream '" + other + "' may still be " + doing(earlier->kind) +
         ": no event orders them (" + job_name + " after " + earlier->job.what + ")");
    TORCH_CHECK(false, errors_.back());
  }
}

void Accelerator::note(const std::vector<Use>& uses, StreamTicket job) {
  for (const Use& use : uses)
    if (Block* const block = block_at(use.range.begin))
      block->history.add(use.range, use.kind, job);
}

std::string Accelerator::host_access(ByteRange range, AccessKind kind) {
  const Lock lock(mutex_);
  const Block* const block = block_at(range.begin);
  if (block == nullptr || block->device != kPinned) return {};
  const auto earlier = block->history.conflict(range, kind, host_);
  if (!earlier) return {};
  keep("software accelerator: the host " + std::string(does(kind)) + " " + text_of(*block) +
       " that stream '" + streams_[static_cast<std::size_t>(earlier->job.stream)]->name +
       "' may still be " + doing(earlier->kind) + ": no synchronize orders them (after " +
       earlier->job.what + ")");
  return errors_.back();
}

std::string Accelerator::take_error() {
  const Lock lock(mutex_);
  if (errors_.empty()) return {};
  std::string error = std::move(errors_.front());
  errors_.pop_front();
  return error;
}

std::string Accelerator::pending() {
  const Lock lock(mutex_);
  std::string text;
  for (const auto& stream : streams_) {
    if (stream->done == stream->enqueued) continue;
    text += "soft:" + std::to_string(stream->device) + " stream '" + stream->name + "': ";
    text += stream->running != nullptr ? stream->running : "nothing";
    text += " runs, " + std::to_string(stream->queue.size()) + " wait";
    for (std::size_t i = 0; i < stream->queue.size() && i < kListedJobs; ++i)
      text += std::string(i == 0 ? ": " : ", ") + stream->queue[i].name;
    if (stream->queue.size() > kListedJobs)
      text += " and " + std::to_string(stream->queue.size() - kListedJobs) + " more";
    text += "\n";
  }
  return text;
}

void Accelerator::name_stream(int device, std::int64_t stream_id, const char* name) {
  const Lock lock(mutex_);
  stream_at(device, stream_id).name = name;
}

void Accelerator::name_block(const void* address, const char* name) {
  const Lock lock(mutex_);
  if (Block* const block = block_at(reinterpret_cast<std::uintptr_t>(address))) block->name = name;
}

SluiceSoftAcceleratorCounters Accelerator::counters(int device) {
  const Lock lock(mutex_);
  const Device& owner = device_at(device);
  SluiceSoftAcceleratorCounters counters = owner.counted;
  counters.jobs = owner.jobs;
  counters.used_bytes = owner.used_bytes;
  counters.peak_bytes = owner.peak_bytes;
  counters.live_bytes = owner.used_bytes - owner.freed_bytes;
  counters.cap_bytes = owner.cap_bytes;
  counters.allocations = owner.allocations;
  counters.pinned_blocks = common_.pinned_blocks;
  counters.pinned_bytes = common_.pinned_bytes;
  counters.outputs = common_.outputs;
  counters.moved_outputs = common_.moved_outputs;
  counters.blocking_jobs = common_.blocking_jobs;
  return counters;
}

std::int64_t Accelerator::stream_jobs(int device, std::int64_t stream_id) {
  const Lock lock(mutex_);
  if (device < 0 || device >= device_count()) return -1;
  const auto& streams = device_at(device).streams;
  const auto found = streams.find(stream_id);
  return found == streams.end() ? -1 : found->second->job_count;
}

void Accelerator::count_outputs(std::int64_t all, std::int64_t moved) {
  const Lock lock(mutex_);
  common_.outputs += all;
  common_.moved_outputs += moved;
}

void Accelerator::count_blocking_job(const char* name) {
  const Lock lock(mutex_);
  ++common_.blocking_jobs;
  ++blocking_jobs_[name];
}

std::string Accelerator::blocking_jobs() {
  const Lock lock(mutex_);
  std::string text;
  for (const auto& [name, count] : blocking_jobs_)
    text += (text.empty() ? "" : ", ") + name + " " + std::to_string(count);
  return text;
}

}  // namespace sluice::soft_accelerator
