#include "profiler/sample/perf_rings.h"

#include <fcntl.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <span>
#include <string>

#include "profiler/sample/own_threads.h"

namespace sluice::sample {
namespace {

// The kernel counts the rings as locked memory of the user all the same when io_uring asks for some
// of the 8 MiB that a user usually has.
constexpr std::size_t kAllRingsBytesMax = 4 << 20;
constexpr std::size_t kRingBytesMin = 32 << 10;
// Descriptors of a process are 1024 where nobody has raised the limit.
constexpr std::size_t kEventsMax = 512;

int open_event(const perf_event_attr& attributes, std::uint32_t tid, int cpu) {
  return static_cast<int>(::syscall(SYS_perf_event_open, &attributes, tid, cpu, -1,
                                    static_cast<unsigned long>(PERF_FLAG_FD_CLOEXEC)));
}

perf_event_attr attributes_of(int samples_per_second) {
  perf_event_attr attributes{};
  attributes.size = sizeof(attributes);
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.config = PERF_COUNT_SW_CPU_CLOCK;
  attributes.freq = 1;
  attributes.sample_freq = static_cast<std::uint64_t>(samples_per_second);
  attributes.sample_type =
      PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_CALLCHAIN;
  attributes.disabled = 1;
  attributes.inherit = 1;
  attributes.exclude_kernel = 1;
  attributes.exclude_hv = 1;
  attributes.exclude_callchain_kernel = 1;
  attributes.sample_max_stack = kChainMax;
  attributes.context_switch = 1;
  attributes.task = 1;
  attributes.comm = 1;
  attributes.sample_id_all = 1;
  attributes.use_clockid = 1;
  attributes.clockid = CLOCK_MONOTONIC;
  return attributes;
}

std::string paranoid_level() {
  std::ifstream file("/proc/sys/kernel/perf_event_paranoid");
  std::string level;
  return file >> level ? level : "not there";
}

Error refusal(int error) {
  const std::string level = paranoid_level();
  const std::string head =
      fmt::format("samples of the processors: perf_event_open: {}", std::strerror(error));
  if ((error == EACCES || error == EPERM) && std::atoi(level.c_str()) > 2) {
    return make_error(ErrorCode::unsupported,
                      "{}; kernel.perf_event_paranoid is {}: `sysctl kernel.perf_event_paranoid=2` "
                      "(as root) lets a process sample itself",
                      head, level);
  }
  if (error == EACCES || error == EPERM) {
    return make_error(ErrorCode::unsupported,
                      "{}; kernel.perf_event_paranoid is {}, which allows it, so something else "
                      "forbids the call, such as a container's seccomp profile: allow "
                      "perf_event_open there",
                      head, level);
  }
  if (error == EMFILE || error == ENFILE) {
    return make_error(ErrorCode::unsupported,
                      "{}; a sampled process has a descriptor for each thread and processor: raise "
                      "the limit (`ulimit -n`)",
                      head);
  }
  return make_error(ErrorCode::unsupported, "{}; this kernel has no such events", head);
}

Error no_ring(int error) {
  return make_error(ErrorCode::unsupported,
                    "samples of the processors: mmap of a ring of {} KiB: {}; raise "
                    "kernel.perf_event_mlock_kb (now enough for one sampled process a user) or "
                    "`ulimit -l`",
                    kRingBytesMin >> 10, std::strerror(error));
}

// What is granted first; at least kRingBytesMin, however many processors there are.
std::size_t ring_bytes_for(std::size_t processor_count, std::size_t ring_bytes) {
  while (ring_bytes > kRingBytesMin && ring_bytes * processor_count > kAllRingsBytesMax)
    ring_bytes /= 2;
  return ring_bytes;
}

// The processors that this process may run on.
std::vector<int> own_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> processors;
  if (::sched_getaffinity(0, sizeof(set), &set) != 0) return processors;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) processors.push_back(cpu);
  }
  return processors;
}

}  // namespace

// The event of the first thread on one processor, and the ring that it made.
class PerfRings::Ring {
 public:
  explicit Ring(int event) : event_(event) {}
  ~Ring() {
    if (memory_ != nullptr) ::munmap(memory_, page_bytes_ + ring_bytes_);
    ::close(event_);
  }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  int event() const { return event_; }

  // `wanted_bytes`, a power of two, or less where the kernel grants no more.
  Status map(std::size_t wanted_bytes) {
    page_bytes_ = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    int error = 0;
    for (ring_bytes_ = wanted_bytes; ring_bytes_ >= kRingBytesMin; ring_bytes_ /= 2) {
      void* const memory =
          ::mmap(nullptr, page_bytes_ + ring_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, event_, 0);
      error = errno;
      if (memory == MAP_FAILED) continue;
      memory_ = static_cast<std::byte*>(memory);
      return ok_status();
    }
    return no_ring(error);
  }

  // The kernel writes the head and reads the tail; both count bytes since the start.
  std::size_t drain(std::vector<std::byte>& buffer, std::vector<PerfRecord>& into) {
    auto* const page = reinterpret_cast<perf_event_mmap_page*>(memory_);
    const std::uint64_t head =
        std::atomic_ref<__u64>(page->data_head).load(std::memory_order_acquire);
    const std::uint64_t tail = page->data_tail;  // ours alone
    const std::span data(memory_ + page_bytes_, ring_bytes_);
    buffer.clear();
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(head - tail, ring_bytes_));
    const auto begin = static_cast<std::size_t>(tail % ring_bytes_);
    const std::size_t to_end = std::min(count, ring_bytes_ - begin);
    buffer.insert(buffer.end(), data.begin() + static_cast<std::ptrdiff_t>(begin),
                  data.begin() + static_cast<std::ptrdiff_t>(begin + to_end));
    buffer.insert(buffer.end(), data.begin(),
                  data.begin() + static_cast<std::ptrdiff_t>(count - to_end));
    std::atomic_ref<__u64>(page->data_tail).store(head, std::memory_order_release);
    return read_perf_records(buffer, into);
  }

 private:
  const int event_;
  std::byte* memory_ = nullptr;
  std::size_t page_bytes_ = 0;
  std::size_t ring_bytes_ = 0;
};

PerfRings::PerfRings() = default;
PerfRings::~PerfRings() {
  for (const int event : more_events_) ::close(event);
}

Result<std::unique_ptr<PerfRings>> PerfRings::open(const RingOptions& options) {
  const perf_event_attr attributes = attributes_of(options.samples_per_second);
  const auto opened_event = [&](std::uint32_t tid, int cpu) {
    const int event = open_event(attributes, tid, cpu);
    return event < 0 || options.keep_file == nullptr ? event : options.keep_file(event);
  };
  std::unique_ptr<PerfRings> opened(new PerfRings());
  const std::vector<int> processors = own_processors();
  const std::size_t ring_bytes = ring_bytes_for(processors.size(), options.ring_bytes_max);
  const auto own_tid = static_cast<std::uint32_t>(::syscall(SYS_gettid));
  for (const int cpu : processors) {
    const int event = opened_event(own_tid, cpu);
    if (event < 0) return refusal(errno);
    opened->rings_.push_back(std::make_unique<Ring>(event));
    RETURN_IF_ERROR(opened->rings_.back()->map(ring_bytes));
  }
  if (processors.empty()) return refusal(ENODEV);
  for (const OwnThread& thread : own_threads()) {
    if (thread.tid == own_tid) continue;
    if (opened->more_events_.size() + processors.size() > kEventsMax) {
      opened->left_out_count_ += 1;
      continue;
    }
    for (std::size_t i = 0; i < processors.size(); ++i) {
      const int event = opened_event(thread.tid, processors[i]);
      if (event < 0 && errno == ESRCH) break;  // it has ended meanwhile
      if (event < 0) return refusal(errno);
      opened->more_events_.push_back(event);
      if (::ioctl(event, PERF_EVENT_IOC_SET_OUTPUT, opened->rings_[i]->event()) != 0)
        return refusal(errno);
    }
  }
  return opened;
}

Status PerfRings::enable() {
  for (const std::unique_ptr<Ring>& ring : rings_) {
    if (::ioctl(ring->event(), PERF_EVENT_IOC_ENABLE, 0) != 0) return refusal(errno);
  }
  for (const int event : more_events_) {
    if (::ioctl(event, PERF_EVENT_IOC_ENABLE, 0) != 0) return refusal(errno);
  }
  return ok_status();
}

void PerfRings::disable() {
  for (const std::unique_ptr<Ring>& ring : rings_) {
    (void)::ioctl(ring->event(), PERF_EVENT_IOC_DISABLE, 0);
  }
  for (const int event : more_events_) (void)::ioctl(event, PERF_EVENT_IOC_DISABLE, 0);
}

void PerfRings::close_in_child() {
  for (const std::unique_ptr<Ring>& ring : rings_) ::close(ring->event());
  for (const int event : more_events_) ::close(event);
}

std::size_t PerfRings::drain(std::vector<PerfRecord>& into) {
  std::size_t unread_bytes = 0;
  std::vector<std::byte> buffer;
  for (const std::unique_ptr<Ring>& ring : rings_) unread_bytes += ring->drain(buffer, into);
  return unread_bytes;
}

}  // namespace sluice::sample
