#include "profiler/c_api/recording_state.h"

#include <algorithm>
#include <utility>

#include "base/utc_time.h"
#include "profiler/record/scoped_span.h"
#include "storage/rundb/writer.h"

namespace sluice::c_api {
namespace {

// 2 MiB: a thread may record some 300,000 records a second, at a flush ten times a second.
constexpr std::size_t kRingRecords = 1 << 15;
constexpr std::chrono::milliseconds kFlushInterval{100};

// Addresses are used again, these are not.
std::uint64_t next_id() {
  static std::atomic<std::uint64_t> id{0};
  return id.fetch_add(1, std::memory_order_relaxed);
}

void raise_to(std::atomic<std::uint32_t>& count, std::uint32_t value) {
  std::uint32_t seen = count.load(std::memory_order_relaxed);
  while (seen < value && !count.compare_exchange_weak(seen, value, std::memory_order_release)) {
  }
}

}  // namespace

// The rings of one thread, by recording; given back when the thread ends.
class ThreadRings {
 public:
  ~ThreadRings() {
    for (Entry& entry : entries_) {
      if (const auto state = entry.state.lock()) state->give_back(*entry.ring);
    }
  }

  record::Ring& of(const std::shared_ptr<RecordingState>& state) {
    for (const Entry& entry : entries_) {
      if (entry.id == state->id_) return *entry.ring;
    }
    record::Ring& ring = state->take_ring();
    entries_.push_back({state, state->id_, &ring});
    return ring;
  }

  void forget_stopped() {
    std::erase_if(entries_, [](const Entry& entry) { return entry.state.expired(); });
  }

 private:
  struct Entry {
    std::weak_ptr<RecordingState> state;
    std::uint64_t id;
    record::Ring* ring;
  };
  std::vector<Entry> entries_;  // mostly one
};

namespace {

thread_local ThreadRings thread_rings;

}  // namespace

RecordingState::RecordingState() : id_(next_id()) {}

Result<std::shared_ptr<RecordingState>> RecordingState::start(const std::string& path,
                                                              const std::string& name,
                                                              record::Level level,
                                                              const StartOptions& options) {
  const std::shared_ptr<RecordingState> state(new RecordingState());
  state->recorder_.set_level(level);
  ASSIGN_OR_RETURN(std::unique_ptr<rundb::Writer> writer,
                   rundb::Writer::create(path, rundb::IfExists::replace));
  collect::RunFacts facts{.meta = {{"name", name}, {"clock", "real"}, {"started_utc", utc_now()}}};
  if (!options.recording.empty())
    facts.meta.push_back({std::string(rundb::kRecordedTogether), options.recording});
  ASSIGN_OR_RETURN(state->collector_,
                   collect::Collector::start(state->recorder_, std::move(writer), facts,
                                             {.flush_interval = kFlushInterval,
                                              .cost_share_max = options.cost_share_max,
                                              .thread_begins = options.thread_begins}));
  state->collector_->add(rundb::ModeRow{.line = options.mode});
  (void)state->ring(state);  // so that this thread's first record does not pay for it
  return state;
}

void RecordingState::hold_for_fork() {
  collector_->hold_for_fork();
  declarations_.lock_for_fork();
  mutex_.lock();
  recorder_.lock_for_fork();
}

void RecordingState::release_after_fork() {
  recorder_.unlock_after_fork();
  mutex_.unlock();
  declarations_.unlock_after_fork();
  collector_->release_after_fork();
}

record::TrackId RecordingState::add_track(record::TrackId parent, const char* kind,
                                          const std::string& name) {
  const record::TrackId track =
      recorder_.add_track(is_known(parent) ? parent : record::kNoTrack, kind, name);
  raise_to(track_count_, static_cast<std::uint32_t>(track) + 1);
  return track;
}

Result<record::TrackId> RecordingState::add_transfer_track(record::TrackId parent,
                                                           const std::string& name,
                                                           std::int32_t device, std::int32_t link,
                                                           record::LinkDirection direction) {
  ASSIGN_OR_RETURN(const std::vector<std::int64_t> route, declarations_.route(device, link));
  std::vector<record::TrackLink> links;
  for (const std::int64_t id : route) links.push_back({id, direction});
  const record::TrackId track =
      recorder_.add_track(is_known(parent) ? parent : record::kNoTrack, "thread", name, links);
  if (device != -1) RETURN_IF_ERROR(declarations_.set_device(track, device));
  raise_to(track_count_, static_cast<std::uint32_t>(track) + 1);
  return track;
}

record::NameId RecordingState::intern(const std::string& text) {
  const record::NameId name = recorder_.intern(text);
  raise_to(name_count_, static_cast<std::uint32_t>(name) + 1);
  return name;
}

std::uint64_t RecordingState::lost_count() const {
  std::uint64_t count =
      refused_count_.load(std::memory_order_relaxed) + collector_->unwritten_count();
  for (const record::Ring* ring : recorder_.rings()) count += ring->dropped_count();
  return count;
}

record::SpanRef RecordingState::push_span(const std::shared_ptr<RecordingState>& self,
                                          const record::SpanRecord& span) {
  if (is_known(span.track) && is_known(span.name)) return ring(self).try_push_span(span);
  refused_count_.fetch_add(1, std::memory_order_relaxed);
  return record::kNoSpan;
}

void RecordingState::push(const std::shared_ptr<RecordingState>& self,
                          const record::CounterRecord& counter) {
  if (is_known(counter.track)) {
    ring(self).try_push(counter);
  } else {
    refused_count_.fetch_add(1, std::memory_order_relaxed);
  }
}

void RecordingState::push(const std::shared_ptr<RecordingState>& self,
                          const record::FlowRecord& flow) {
  ring(self).try_push(flow);
}

void RecordingState::begin_step(std::int32_t number) {
  step_ts_.store(record::span_now_ns(), std::memory_order_relaxed);
  step_.store(std::max(number, 0), std::memory_order_relaxed);
}

void RecordingState::end_step(const std::shared_ptr<RecordingState>& self, record::StepRecord step,
                              std::int64_t end_ns) {
  step.step = step_.exchange(-1, std::memory_order_relaxed);
  if (step.step < 0 || recorder_.level() < record::Level::steps) return;
  step.ts = step_ts_.load(std::memory_order_relaxed);
  step.dur = end_ns - step.ts;
  ring(self).try_push(step);
}

record::Ring& RecordingState::ring(const std::shared_ptr<RecordingState>& self) {
  return thread_rings.of(self);
}

record::Ring& RecordingState::take_ring() {
  thread_rings.forget_stopped();
  {
    MutexLock lock(mutex_);
    if (!free_rings_.empty()) {
      record::Ring* ring = free_rings_.back();
      free_rings_.pop_back();
      return *ring;
    }
  }
  return recorder_.add_ring(kRingRecords);
}

void RecordingState::give_back(record::Ring& ring) {
  MutexLock lock(mutex_);
  free_rings_.push_back(&ring);
}

}  // namespace sluice::c_api
