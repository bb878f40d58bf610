// Linux aio by libaio's functions (DeepSpeed's swapper, fio): an operation is a span from its
// submission until it is taken from the completed ones.
//
// Thread contract: that of the functions.

#include <linux/aio_abi.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <deque>
#include <optional>
#include <unordered_map>

#include "base/mutex.h"
#include "profiler/inject/file_table.h"
#include "profiler/inject/own_files.h"
#include "profiler/inject/process_recording.h"

#define SLUICE_IN_FRONT_OF_AIO extern "C" __attribute__((visibility("default")))

namespace sluice::inject {
namespace {

struct UnderWay {
  OpenFile file;
  Direction direction = Direction::read;
  bool is_flush = false;
  std::int64_t begin_ns = 0;
};

// None: it moves no bytes of a file that is recorded.
std::optional<UnderWay> under_way(const iocb& operation, std::int64_t now) {
  UnderWay made{.file = file_of(static_cast<int>(operation.aio_fildes)), .begin_ns = now};
  if (!is_recorded(made.file)) return std::nullopt;
  switch (operation.aio_lio_opcode) {
    case IOCB_CMD_PREAD:
    case IOCB_CMD_PREADV:
      return made;
    case IOCB_CMD_PWRITE:
    case IOCB_CMD_PWRITEV:
      made.direction = Direction::write;
      return made;
    case IOCB_CMD_FSYNC:
    case IOCB_CMD_FDSYNC:
      made.is_flush = true;
      return made;
    default:
      return std::nullopt;
  }
}

// By the address of what was submitted, which is what completes. The system has a copy of it, so a
// program may submit another operation from there while the first is under way (DeepSpeed's does):
// which of them is complete nobody says, and the oldest is taken.
class Submitted {
 public:
  void add(const iocb* operation, const UnderWay& made) {
    MutexLock lock(mutex_);
    operations_[operation].push_back(made);
  }
  std::optional<UnderWay> take_oldest(const iocb* operation) {
    return take(operation, [](std::deque<UnderWay>& all) {
      const UnderWay made = all.front();
      all.pop_front();
      return made;
    });
  }
  // The system did not want it.
  void take_back(const iocb* operation) {
    take(operation, [](std::deque<UnderWay>& all) {
      const UnderWay made = all.back();
      all.pop_back();
      return made;
    });
  }

 private:
  template <typename Take>
  std::optional<UnderWay> take(const iocb* operation, Take take_one) {
    MutexLock lock(mutex_);
    const auto found = operations_.find(operation);
    if (found == operations_.end()) return std::nullopt;
    const UnderWay made = take_one(found->second);
    if (found->second.empty()) operations_.erase(found);
    return made;
  }

  Mutex mutex_;
  std::unordered_map<const iocb*, std::deque<UnderWay>> operations_ GUARDED_BY(mutex_);
};

Submitted& submitted() {
  static Submitted* const all = new Submitted();  // used until the last instant
  return *all;
}

void note_completed(const io_event& event) {
  const auto* const operation = reinterpret_cast<const iocb*>(event.obj);
  std::optional<UnderWay> made;
  {
    const OwnWork own_work;
    made = submitted().take_oldest(operation);
  }
  if (!made) return;
  if (made->is_flush) {
    note_flush("aio fsync", made->file, made->begin_ns, static_cast<int>(event.res));
  } else {
    const char* const call = made->direction == Direction::read ? "aio read" : "aio write";
    note_transfer(call, made->file, made->direction, made->begin_ns, event.res);
  }
}

// As libaio does it: the system's call, whose error is the result's negative.
template <typename... Arguments>
int asked(long call, Arguments... arguments) {
  const int before = errno;
  const long result = ::syscall(call, arguments...);
  if (result >= 0) return static_cast<int>(result);
  const int error = errno;
  errno = before;
  return -error;
}

int taken(int count, const io_event* events) {
  if (!is_recording()) return count;
  for (int i = 0; i < count; ++i) note_completed(events[i]);
  return count;
}

}  // namespace
}  // namespace sluice::inject

using namespace sluice::inject;

// libaio may lie where only the library that needs it sees it, so that its functions are not to be
// found from here.
SLUICE_IN_FRONT_OF_AIO int io_submit(void* context, long count, iocb** operations) {
  if (!is_recording()) return asked(SYS_io_submit, context, count, operations);
  // Before they are submitted: another thread may take them at once.
  const std::int64_t now = now_ns();
  for (long i = 0; i < count; ++i) {
    const OwnWork own_work;
    if (const auto made = under_way(*operations[i], now)) submitted().add(operations[i], *made);
  }
  const int done = asked(SYS_io_submit, context, count, operations);
  for (long i = done < 0 ? 0 : done; i < count; ++i) {
    const OwnWork own_work;
    submitted().take_back(operations[i]);
  }
  return done;
}
SLUICE_IN_FRONT_OF_AIO int io_getevents(void* context, long least, long most, io_event* events,
                                        timespec* timeout) {
  return taken(asked(SYS_io_getevents, context, least, most, events, timeout), events);
}
SLUICE_IN_FRONT_OF_AIO int io_pgetevents(void* context, long least, long most, io_event* events,
                                         timespec* timeout, sigset_t* signals) {
  struct {
    sigset_t* signals;
    unsigned long size_bytes;
  } mask = {signals, _NSIG / 8};
  return taken(asked(SYS_io_pgetevents, context, least, most, events, timeout, &mask), events);
}
