#pragma once
// The state of all devices: their memory, streams and events, and what is known of their order.
// The side that libtorch sees is in guard.cpp, hooks.cpp, allocators.cpp and the kernels.
//
// One lock guards everything that is not said to be fixed. It is held for moments: kernels, copies
// and pauses run without it.
//
// Thread contract: any thread.
// Errors: c10::Error, as libtorch wants them. Destructors and release() keep theirs for the next
// synchronize.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "soft/accelerator/ordering.h"
#include "soft/accelerator/region.h"
#include "soft/accelerator/settings.h"
#include "soft/accelerator/soft_accelerator.h"

namespace sluice::soft_accelerator {

inline constexpr int kPinned = -1;  // a block's device
inline constexpr int kMostDevices = 8;

// Memory that a tensor's storage holds: a device's, or the host's that is pinned.
struct Block {
  std::int64_t number = 0;
  ByteRange range;
  std::int64_t asked_bytes = 0;
  int device = kPinned;
  std::string name = {};
  std::vector<int> streams = {};  // that it waits for when it is freed; first the allocating one
  AccessHistory history = {};
  int markers_left = 0;  // of the streams above, once it is freed
};

enum class JobKind : std::uint8_t {
  kernel,
  copy,     // between host and device
  wait,     // for a job of another stream
  marker,   // an event's
  release,  // of a block
};

// The bytes that a job reads or writes, in addresses as tensors show them.
struct Use {
  ByteRange range;
  AccessKind kind = AccessKind::read;
};

struct Job {
  JobKind kind = JobKind::kernel;
  const char* name = "";  // lives as long as the process
  std::function<void()> run = {};
  double seconds = 0;  // that its link takes
  bool is_stuck = false;
  bool loses_device = false;
};

// A thread and what it has to do, in order. Never destroyed.
struct Stream {
  int index = 0;  // among all streams of all devices
  int device = 0;
  std::int64_t id = 0;  // libtorch's
  std::string name = {};
  std::deque<Job> queue = {};
  const char* running = nullptr;
  std::uint64_t enqueued = 0;  // jobs so far
  std::uint64_t done = 0;
  std::int64_t job_count = 0;  // kernels and copies
  Clock clock = {};            // what its next job comes after
  std::condition_variable work = {};
  std::thread thread = {};

  StreamTicket last_job() const { return {index, enqueued, ""}; }
};

struct Event {
  StreamTicket job = {};  // ticket 0: not recorded
  Clock clock = {};
  std::shared_ptr<std::atomic<std::int64_t>> time_ns = {};
};

enum class Direction : std::uint8_t { in, out };

class Accelerator {
 public:
  // Leaked: libtorch's threads may outlive any order of destruction.
  static Accelerator& instance();
  static bool is_open();

  void open(const Settings& settings);
  void reset(const Settings& settings);
  void stop();  // ends the streams' threads, with what they have done by then

  int device_count() const { return static_cast<int>(devices_.size()); }  // fixed by open()

  // ---- memory (accelerator_memory.cpp)
  Block* allocate(int device, std::int64_t stream_id, std::int64_t bytes);
  void release(Block* block);
  Block* allocate_pinned(std::int64_t bytes);
  void release_pinned(Block* block);
  void use_on_stream(Block* block, int device, std::int64_t stream_id);
  void set_cap(int device, std::int64_t bytes);
  void reset_peak(int device);
  bool is_pinned(const void* address);
  int device_of(const void* address) const;  // -1: of none
  // Where kernels find the memory that a tensor shows; a host address as it is.
  void* usable(const void* shown) const;
  // For a deleter: whether these bytes belong to a device, whatever mapping shows them.
  bool is_device_memory(const void* address) const;
  // For the signal handler: text of the block at that device address, if the lock is free.
  bool try_describe(const void* address, char* text, std::size_t size);

  // ---- streams (accelerator_streams.cpp)
  std::int64_t new_stream(int device);
  std::int64_t pooled_stream(int device);
  // Checks the order of all uses; throws and enqueues nothing where one is wrong. The event is the
  // job's end.
  Event submit(int device, std::int64_t stream_id, Job job, const std::vector<Use>& uses);
  // The job that moves `bytes` between host and device.
  Event submit_copy(int device, std::int64_t stream_id, Direction direction, std::int64_t bytes,
                    std::function<void()> run, const std::vector<Use>& uses);
  // Waiting throws what is kept.
  void synchronize_stream(int device, std::int64_t stream_id);
  bool query_stream(int device, std::int64_t stream_id);
  void synchronize_device(int device);
  void record(Event& event, int device, std::int64_t stream_id);
  void block(const Event& event, int device, std::int64_t stream_id);
  bool query(const Event& event);
  void synchronize(const Event& event);
  void set_threads(int threads) { threads_ = threads; }

  // ---- reports (accelerator_reports.cpp)
  void name_stream(int device, std::int64_t stream_id, const char* name);
  void name_block(const void* address, const char* name);
  std::string host_access(ByteRange range, AccessKind kind);
  std::string take_error();
  std::string pending();
  SluiceSoftAcceleratorCounters counters(int device);
  std::int64_t stream_jobs(int device, std::int64_t stream_id);
  void count_outputs(std::int64_t all, std::int64_t moved);
  void count_blocking_job(const char* name);
  std::string blocking_jobs();

 private:
  struct Device {
    explicit Device(std::int64_t cap) : region(cap) {}
    Region region;
    std::map<std::int64_t, Stream*> streams = {};
    std::int64_t next_stream_id = 0;
    std::int64_t next_pooled = 0;
    std::int64_t cap_bytes = 0;
    std::int64_t used_bytes = 0;
    std::int64_t peak_bytes = 0;
    std::int64_t freed_bytes = 0;  // of the used ones: they wait for a stream
    std::int64_t allocations = 0;
    std::int64_t jobs = 0;
    std::int64_t copies = 0;
    bool is_lost = false;
    SluiceSoftAcceleratorCounters counted = {};
  };
  using Lock = std::unique_lock<std::mutex>;

  // The lock is held in all that follow, but for run() and what it calls.
  Device& device_at(int device);
  Stream& stream_at(int device, std::int64_t stream_id);
  void use_settings(const Settings& settings);
  Stream& add_stream(int device);
  StreamTicket enqueue(Stream& stream, Job job);
  void check_alive(int device) const;
  void check_order(const Stream& stream, const char* job_name, const std::vector<Use>& uses);
  void note(const std::vector<Use>& uses, StreamTicket job);
  void set_faults(int device, Job& job);
  void keep(std::string error);
  void throw_kept(int device);
  void learn(const Clock& clock) { host_.merge(clock); }
  Block* block_at(std::uintptr_t address);
  std::int64_t room_for(Lock& lock, int device, std::int64_t bytes, std::int64_t asked);
  void check_release(const Block& block);
  void pass_marker(Block* block);
  std::string text_of(const Block& block) const;

  void write_counters();
  void work(Stream& stream);
  void run(Stream& stream, std::uint64_t ticket, Job& job);
  void run_work(Stream& stream, std::uint64_t ticket, Job& job);
  void pause(const Stream& stream, std::uint64_t ticket, const Job& job);

  std::mutex mutex_;
  std::condition_variable finished_;  // a job; or there is no more waiting
  Settings settings_;
  std::vector<std::unique_ptr<Device>> devices_;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::map<std::uintptr_t, Block*> blocks_;  // by their first bytes
  std::int64_t next_block_ = 1;
  Clock host_;  // what some thread of the host has waited for
  std::deque<std::string> errors_;
  std::int64_t stuck_epoch_ = 0;  // raised to end stuck jobs
  bool is_stopping_ = false;
  SluiceSoftAcceleratorCounters common_{};  // the counters of all devices
  std::map<std::string, std::int64_t> blocking_jobs_;
  std::atomic<int> threads_{1};
};

}  // namespace sluice::soft_accelerator
