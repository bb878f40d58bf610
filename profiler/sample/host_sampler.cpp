#include "profiler/sample/host_sampler.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>

#include "base/clock.h"
#include "profiler/sample/own_threads.h"

namespace sluice::sample {
namespace {

constexpr std::chrono::milliseconds kPassInterval{100};
// A record is in its ring by so much after its own time, so that what is older is whole, and can be
// put in order over all rings.
constexpr TimeNs kLateNsMax = 2'000'000;

}  // namespace

HostSampler::HostSampler(std::unique_ptr<PerfRings> rings, void (*thread_begins)())
    : rings_(std::move(rings)),
      thread_begins_(thread_begins),
      rows_(static_cast<std::uint32_t>(::getpid())) {}

HostSampler::~HostSampler() { stop(); }

Result<std::unique_ptr<HostSampler>> HostSampler::open(const RingOptions& options,
                                                       void (*thread_begins)()) {
  ASSIGN_OR_RETURN(std::unique_ptr<PerfRings> rings, PerfRings::open(options));
  return std::unique_ptr<HostSampler>(new HostSampler(std::move(rings), thread_begins));
}

Status HostSampler::start(Sink sink) {
  sink_ = std::move(sink);
  const TimeNs begin_ts = monotonic_now_ns();
  RETURN_IF_ERROR(rings_->enable());
  // After that, so that no thread is missed; one that has begun since is known by its records, too.
  for (const OwnThread& thread : own_threads()) rows_.add_thread(thread.tid, thread.name, begin_ts);
  thread_ = std::thread([this] { run(); });
  return ok_status();
}

void HostSampler::stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stop_asked_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void HostSampler::run() {
  if (thread_begins_ != nullptr) thread_begins_();
  ::pthread_setname_np(::pthread_self(), "sampler");
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, kPassInterval, [this] { return stop_asked_; })) pass(false);
  rings_->disable();
  pass(true);
}

void HostSampler::pass(bool is_last) {
  const TimeNs now_ts = monotonic_now_ns();
  unread_count_ += rings_->drain(pending_) > 0 ? 1 : 0;
  std::ranges::stable_sort(pending_, {}, &PerfRecord::ts);
  const TimeNs until = is_last ? now_ts : now_ts - kLateNsMax;
  const auto young =
      is_last ? pending_.end() : std::ranges::lower_bound(pending_, until, {}, &PerfRecord::ts);
  rows_.add(std::span(pending_.begin(), young));
  pending_.erase(pending_.begin(), young);
  lost_count_ = rows_.lost_count() + unread_count_;
  sample_count_ = rows_.sample_count();
  cut_count_ = rows_.cut_count();
  sink_(is_last ? rows_.take_rest(until) : rows_.take_until(until));
}

std::vector<record::SideCount> HostSampler::side_counts() const {
  return {{"processor_samples", sample_count_, false,
           "samples of the places in their code that this process' threads were at"},
          {"processor_samples_lost", lost_count_, true,
           "records of samples and of switches between threads for which the kernel's rings had no "
           "room: fewer samples a second come through"},
          {"processor_samples_cut", cut_count_, false,
           "samples that lost their innermost calls, or functions that lost their names, because "
           "there were too many different ones"},
          {"threads_not_sampled", static_cast<std::int64_t>(rings_->left_out_count()), true,
           "threads that were there before the run and were too many to be sampled"}};
}

}  // namespace sluice::sample
