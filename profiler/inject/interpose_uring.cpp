// io_uring by liburing's functions: an operation is a span from its submission until a function of
// liburing's has seen its completion. A program that makes the system's calls itself is not seen.
//
// Thread contract: that of liburing: one thread at a time a ring.

#include <dlfcn.h>
#include <liburing.h>

#include <atomic>
#include <deque>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "profiler/inject/file_table.h"
#include "profiler/inject/own_files.h"
#include "profiler/inject/process_recording.h"

#define SLUICE_IN_FRONT_OF_URING extern "C" __attribute__((visibility("default")))

namespace sluice::inject {
namespace {

struct UringOperation {
  OpenFile file;
  Direction direction = Direction::read;
  bool is_flush = false;
  std::int64_t begin_ns = 0;
};

// What is under way on a ring. The program's own entries are read, and left as they are.
class RingWatch {
 public:
  explicit RingWatch(const io_uring& ring)
      : seen_(std::atomic_ref(*ring.cq.ktail).load(std::memory_order_acquire)) {}

  // Entries that the program has filled and not yet given to the system.
  void note_submission(io_uring& ring) {
    const std::int64_t now = now_ns();
    const unsigned shift = (ring.flags & IORING_SETUP_SQE128) != 0 ? 1 : 0;
    for (unsigned i = ring.sq.sqe_head; i != ring.sq.sqe_tail; ++i) {
      const io_uring_sqe& entry = ring.sq.sqes[(i & *ring.sq.kring_mask) << shift];
      if (const auto operation = operation_of(entry, now))
        under_way_[entry.user_data].push_back(*operation);
    }
  }

  // Entries that the system has added since the last look, also where the program has taken them.
  void note_completions(io_uring& ring) {
    const unsigned tail = std::atomic_ref(*ring.cq.ktail).load(std::memory_order_acquire);
    const unsigned shift = (ring.flags & IORING_SETUP_CQE32) != 0 ? 1 : 0;
    const unsigned entry_count = *ring.cq.kring_entries;
    if (tail - seen_ > entry_count) seen_ = tail - entry_count;
    for (; seen_ != tail; ++seen_) {
      const io_uring_cqe& entry = ring.cq.cqes[(seen_ & *ring.cq.kring_mask) << shift];
      note_completed(entry.user_data, entry.res);
    }
  }

  // The completions that were noted since the last call: whoever takes them does so outside of the
  // recording's own work.
  std::vector<std::pair<UringOperation, int>> take_completed() {
    return std::exchange(completed_, {});
  }

  void register_files(const int* files, unsigned count) {
    registered_.assign(files, files + count);
  }
  void forget_files() { registered_.clear(); }

 private:
  std::optional<UringOperation> operation_of(const io_uring_sqe& entry, std::int64_t now) const {
    UringOperation made{.file = file_of(descriptor_of(entry)), .begin_ns = now};
    if (!is_recorded(made.file)) return std::nullopt;
    switch (entry.opcode) {
      case IORING_OP_READ:
      case IORING_OP_READV:
      case IORING_OP_READ_FIXED:
        return made;
      case IORING_OP_WRITE:
      case IORING_OP_WRITEV:
      case IORING_OP_WRITE_FIXED:
        made.direction = Direction::write;
        return made;
      case IORING_OP_FSYNC:
        made.is_flush = true;
        return made;
      default:
        return std::nullopt;
    }
  }

  int descriptor_of(const io_uring_sqe& entry) const {
    if ((entry.flags & IOSQE_FIXED_FILE) == 0) return entry.fd;
    const auto number = static_cast<std::size_t>(entry.fd);
    return entry.fd >= 0 && number < registered_.size() ? registered_[number] : -1;
  }

  void note_completed(std::uint64_t user_data, int result) {
    const auto found = under_way_.find(user_data);
    if (found == under_way_.end()) return;
    const UringOperation operation = found->second.front();
    found->second.pop_front();
    if (found->second.empty()) under_way_.erase(found);
    completed_.push_back({operation, result});
  }

  unsigned seen_;
  // By what the program calls them. Which of several with one name is complete nobody says: the
  // oldest is taken.
  std::unordered_map<std::uint64_t, std::deque<UringOperation>> under_way_;
  std::vector<std::pair<UringOperation, int>> completed_;
  std::vector<int> registered_;
};

// By their address, from the first function that is given the ring.
class Watches {
 public:
  // `use` gets the ring's watch, under a lock that other rings share.
  template <typename Use>
  void with(io_uring* ring, Use use) {
    std::vector<std::pair<UringOperation, int>> completed;
    {
      const OwnWork own_work;
      MutexLock lock(mutex_);
      RingWatch& watch = watches_.try_emplace(ring, *ring).first->second;
      use(watch);
      completed = watch.take_completed();
    }
    for (const auto& [operation, result] : completed) note(operation, result);
  }
  void forget(io_uring* ring) {
    const OwnWork own_work;
    MutexLock lock(mutex_);
    watches_.erase(ring);
  }

 private:
  static void note(const UringOperation& operation, int result) {
    if (operation.is_flush) {
      note_flush("io_uring fsync", operation.file, operation.begin_ns, result);
    } else {
      const bool is_read = operation.direction == Direction::read;
      note_transfer(is_read ? "io_uring read" : "io_uring write", operation.file,
                    operation.direction, operation.begin_ns, result);
    }
  }

  Mutex mutex_;
  std::map<io_uring*, RingWatch> watches_ GUARDED_BY(mutex_);
};

Watches& watches() {
  static Watches* const all = new Watches();  // used until the last instant
  return *all;
}

// liburing may lie where only the library that needs it sees it.
template <typename Function>
Function* of_liburing(const char* name) {
  void* function = ::dlsym(RTLD_NEXT, name);
  if (function == nullptr) {
    void* const library = ::dlopen("liburing.so.2", RTLD_LAZY | RTLD_NOLOAD);
    if (library != nullptr) function = ::dlsym(library, name);
  }
  return reinterpret_cast<Function*>(function);
}

void before(io_uring* ring) {
  if (!is_recording()) return;
  watches().with(ring, [ring](RingWatch& watch) {
    watch.note_completions(*ring);
    watch.note_submission(*ring);
  });
}
void after(io_uring* ring) {
  if (!is_recording()) return;
  watches().with(ring, [ring](RingWatch& watch) { watch.note_completions(*ring); });
}

template <typename Function, typename... Arguments>
auto watched(Function* function, io_uring* ring, Arguments... arguments) {
  before(ring);
  const auto result = function(ring, arguments...);
  after(ring);
  return result;
}

}  // namespace
}  // namespace sluice::inject

using namespace sluice::inject;

#define SLUICE_URING(RESULT, NAME, PARAMETERS, ...)                     \
  SLUICE_IN_FRONT_OF_URING RESULT NAME PARAMETERS {                     \
    static const auto function = of_liburing<RESULT PARAMETERS>(#NAME); \
    return watched(function, __VA_ARGS__);                              \
  }

SLUICE_URING(int, io_uring_submit, (io_uring * ring), ring)
SLUICE_URING(int, io_uring_submit_and_wait, (io_uring * ring, unsigned count), ring, count)
SLUICE_URING(int, io_uring_submit_and_wait_timeout,
             (io_uring * ring, io_uring_cqe** entry, unsigned count, __kernel_timespec* timeout,
              sigset_t* signals),
             ring, entry, count, timeout, signals)
SLUICE_URING(int, io_uring_submit_and_get_events, (io_uring * ring), ring)
SLUICE_URING(int, io_uring_get_events, (io_uring * ring), ring)
SLUICE_URING(int, io_uring_wait_cqes,
             (io_uring * ring, io_uring_cqe** entry, unsigned count, __kernel_timespec* timeout,
              sigset_t* signals),
             ring, entry, count, timeout, signals)
SLUICE_URING(int, io_uring_wait_cqe_timeout,
             (io_uring * ring, io_uring_cqe** entry, __kernel_timespec* timeout), ring, entry,
             timeout)
SLUICE_URING(int, __io_uring_get_cqe,
             (io_uring * ring, io_uring_cqe** entry, unsigned submit, unsigned count,
              sigset_t* signals),
             ring, entry, submit, count, signals)
SLUICE_URING(unsigned, io_uring_peek_batch_cqe,
             (io_uring * ring, io_uring_cqe** entries, unsigned count), ring, entries, count)

SLUICE_IN_FRONT_OF_URING int io_uring_register_files(io_uring* ring, const int* files,
                                                     unsigned count) {
  static const auto function =
      of_liburing<int(io_uring*, const int*, unsigned)>("io_uring_register_files");
  const int result = function(ring, files, count);
  if (is_recording() && result >= 0)
    watches().with(ring, [&](RingWatch& watch) { watch.register_files(files, count); });
  return result;
}
SLUICE_IN_FRONT_OF_URING int io_uring_unregister_files(io_uring* ring) {
  static const auto function = of_liburing<int(io_uring*)>("io_uring_unregister_files");
  if (is_recording()) watches().with(ring, [](RingWatch& watch) { watch.forget_files(); });
  return function(ring);
}
SLUICE_IN_FRONT_OF_URING void io_uring_queue_exit(io_uring* ring) {
  static const auto function = of_liburing<void(io_uring*)>("io_uring_queue_exit");
  if (is_recording()) {
    after(ring);
    watches().forget(ring);
  }
  function(ring);
}
