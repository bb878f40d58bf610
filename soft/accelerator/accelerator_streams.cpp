// Streams, events and their order. An event is a job of a stream, so that waiting only ever waits
// for work that is queued already: nothing here can dead-lock.

#include <ATen/Parallel.h>
#include <c10/util/Exception.h>

#include <chrono>

#include "base/split_mix.h"
#include "soft/accelerator/accelerator.h"

namespace sluice::soft_accelerator {
namespace {

constexpr std::int64_t kPooledStreams = 4;

bool is_work(JobKind kind) { return kind == JobKind::kernel || kind == JobKind::copy; }

std::int64_t now_ns() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

}  // namespace

std::int64_t Accelerator::new_stream(int device) {
  const Lock lock(mutex_);
  return add_stream(device).id;
}

// Streams 1 and 2 are in it, since their names say what they are for.
std::int64_t Accelerator::pooled_stream(int device) {
  const Lock lock(mutex_);
  Device& owner = device_at(device);
  const std::int64_t id = 1 + owner.next_pooled++ % kPooledStreams;
  while (owner.next_stream_id <= id) add_stream(device);
  return id;
}

// ---- enqueueing

StreamTicket Accelerator::enqueue(Stream& stream, Job job) {
  const StreamTicket ticket{stream.index, ++stream.enqueued, job.name};
  stream.clock.raise(ticket);
  stream.queue.push_back(std::move(job));
  stream.work.notify_one();
  return ticket;
}

Event Accelerator::submit(int device, std::int64_t stream_id, Job job,
                          const std::vector<Use>& uses) {
  const Lock lock(mutex_);
  check_alive(device);
  Stream& stream = stream_at(device, stream_id);
  stream.clock.merge(host_);
  check_order(stream, job.name, uses);
  ++stream.job_count;
  set_faults(device, job);
  const StreamTicket ticket = enqueue(stream, std::move(job));
  note(uses, ticket);
  return {.job = ticket, .clock = stream.clock};
}

Event Accelerator::submit_copy(int device, std::int64_t stream_id, Direction direction,
                               std::int64_t bytes, std::function<void()> run,
                               const std::vector<Use>& uses) {
  const bool is_in = direction == Direction::in;
  Job job{.kind = JobKind::copy, .name = is_in ? "copy to device" : "copy to host"};
  {
    const Lock lock(mutex_);
    Device& owner = device_at(device);
    const double rate = is_in ? settings_.in_bytes_per_s : settings_.out_bytes_per_s;
    if (rate > 0) job.seconds = static_cast<double>(bytes) / rate;
    (is_in ? owner.counted.in_bytes : owner.counted.out_bytes) += bytes;
    ++(is_in ? owner.counted.in_copies : owner.counted.out_copies);
    const std::int64_t copy = ++owner.copies;
    if (settings_.strikes(FaultKind::copy, copy, device))
      run = [=, name = job.name] {
        TORCH_CHECK(false, "copy ", copy, " of soft:", device, " (", name, ", ", bytes,
                    " bytes) failed, as the settings want it");
      };
  }
  job.run = std::move(run);
  return submit(device, stream_id, std::move(job), uses);
}

void Accelerator::set_faults(int device, Job& job) {
  const std::int64_t number = ++device_at(device).jobs;
  job.is_stuck = settings_.strikes(FaultKind::stuck, number, device);
  job.loses_device = settings_.strikes(FaultKind::lost, number, device);
}

// ---- waiting

void Accelerator::synchronize_stream(int device, std::int64_t stream_id) {
  Lock lock(mutex_);
  Stream& stream = stream_at(device, stream_id);
  const Clock clock = stream.clock;
  const std::uint64_t last = stream.enqueued;
  finished_.wait(lock, [&] { return stream.done >= last || is_stopping_; });
  learn(clock);
  throw_kept(device);
}

bool Accelerator::query_stream(int device, std::int64_t stream_id) {
  const Lock lock(mutex_);
  check_alive(device);
  Stream& stream = stream_at(device, stream_id);
  if (stream.done < stream.enqueued) return false;
  learn(stream.clock);
  return true;
}

void Accelerator::synchronize_device(int device) {
  std::vector<std::int64_t> ids;
  {
    const Lock lock(mutex_);
    for (const auto& [id, stream] : device_at(device).streams) ids.push_back(id);
  }
  for (const std::int64_t id : ids) synchronize_stream(device, id);
}

// ---- events

void Accelerator::record(Event& event, int device, std::int64_t stream_id) {
  const Lock lock(mutex_);
  check_alive(device);
  Stream& stream = stream_at(device, stream_id);
  stream.clock.merge(host_);
  event.time_ns = std::make_shared<std::atomic<std::int64_t>>(0);
  Job job{.kind = JobKind::marker, .name = "event"};
  job.run = [time = event.time_ns] { *time = now_ns(); };
  event.job = enqueue(stream, std::move(job));
  event.clock = stream.clock;
}

void Accelerator::block(const Event& event, int device, std::int64_t stream_id) {
  if (event.job.ticket == 0) return;
  const Lock lock(mutex_);
  check_alive(device);
  Stream& stream = stream_at(device, stream_id);
  Job job{.kind = JobKind::wait, .name = "wait for an event"};
  job.run = [this, awaited = event.job] {
    Lock inner(mutex_);
    const Stream& other = *streams_[static_cast<std::size_t>(awaited.stream)];
    finished_.wait(inner, [&] { return other.done >= awaited.ticket || is_stopping_; });
  };
  enqueue(stream, std::move(job));
  stream.clock.merge(event.clock);
}

bool Accelerator::query(const Event& event) {
  if (event.job.ticket == 0) return true;
  const Lock lock(mutex_);
  const Stream& stream = *streams_[static_cast<std::size_t>(event.job.stream)];
  check_alive(stream.device);
  if (stream.done < event.job.ticket) return false;
  learn(event.clock);
  throw_kept(stream.device);  // as a GPU's driver answers every call after a kernel that failed
  return true;
}

void Accelerator::synchronize(const Event& event) {
  if (event.job.ticket == 0) return;
  Lock lock(mutex_);
  const Stream& stream = *streams_[static_cast<std::size_t>(event.job.stream)];
  finished_.wait(lock, [&] { return stream.done >= event.job.ticket || is_stopping_; });
  learn(event.clock);
  throw_kept(stream.device);
}

// ---- the streams' threads

void Accelerator::work(Stream& stream) {
  Lock lock(mutex_);
  for (;;) {
    stream.work.wait(lock, [&] { return !stream.queue.empty() || is_stopping_; });
    if (is_stopping_) return;
    std::uint64_t ticket = stream.done + 1;
    {
      Job job = std::move(stream.queue.front());
      stream.queue.pop_front();
      stream.running = job.name;
      lock.unlock();
      run(stream, ticket, job);
      job = {};  // may hold the last use of host memory, whose deleter takes the lock
      lock.lock();
    }
    stream.running = nullptr;
    stream.done = ticket;
    finished_.notify_all();
  }
}

void Accelerator::run(Stream& stream, std::uint64_t ticket, Job& job) {
  try {
    if (is_work(job.kind))
      run_work(stream, ticket, job);
    else
      job.run();
  } catch (const std::exception& failure) {
    const auto* const error = dynamic_cast<const c10::Error*>(&failure);
    const Lock lock(mutex_);
    keep("software accelerator: stream '" + stream.name + "', " + job.name + ": " +
         (error ? error->what_without_backtrace() : failure.what()));
  }
}

void Accelerator::run_work(Stream& stream, std::uint64_t ticket, Job& job) {
  {
    Lock lock(mutex_);
    Device& device = device_at(stream.device);
    if (job.is_stuck) {
      const std::int64_t epoch = stuck_epoch_;
      stream.work.wait(lock, [&] { return stuck_epoch_ != epoch || is_stopping_; });
    }
    if (job.loses_device) device.is_lost = true;
    if (device.is_lost || is_stopping_) return;
  }
  const int threads = threads_;
  if (at::get_num_threads() != threads) at::set_num_threads(threads);
  pause(stream, ticket, job);
  job.run();
}

// Before the job, not after: data that is late, not only a notice that is.
void Accelerator::pause(const Stream& stream, std::uint64_t ticket, const Job& job) {
  double seconds = job.seconds;
  {
    const Lock lock(mutex_);
    if (settings_.delay_us > 0) {
      const std::uint64_t key =
          mix64(settings_.seed + 1) ^ static_cast<std::uint64_t>(stream.index);
      seconds +=
          1e-6 * static_cast<double>(settings_.delay_us) * unit_interval(split_mix(key, ticket));
    }
  }
  if (seconds > 0) std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

}  // namespace sluice::soft_accelerator
