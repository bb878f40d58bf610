#include "profiler/inject/own_files.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>

namespace sluice::inject {
namespace {

// Above what programs open one by one, and below their limit.
constexpr int kHighest = 1 << 16;
constexpr int kRoom = 64;  // a database has five files

std::array<std::atomic<bool>, kHighest> own{};
thread_local int own_work_depth = 0;

int first_number() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur > kHighest) return kHighest - kRoom;
  return std::max(3, static_cast<int>(limit.rlim_cur) - kRoom);
}

}  // namespace

int taken_out_of_the_way(int fd) {
  if (fd < 0) return fd;
  const int high = ::fcntl(fd, F_DUPFD_CLOEXEC, first_number());
  if (high < 0 || high >= kHighest) return fd;  // where it lies, then
  ::syscall(SYS_close, fd);
  own[static_cast<std::size_t>(high)].store(true, std::memory_order_relaxed);
  return high;
}

bool is_own(int fd) {
  return fd >= 0 && fd < kHighest &&
         own[static_cast<std::size_t>(fd)].load(std::memory_order_relaxed);
}

void forget_own(int fd) {
  if (fd >= 0 && fd < kHighest)
    own[static_cast<std::size_t>(fd)].store(false, std::memory_order_relaxed);
}

bool is_at_own_work() { return own_work_depth > 0; }
OwnWork::OwnWork() { ++own_work_depth; }
OwnWork::~OwnWork() { --own_work_depth; }
void begin_own_thread() { ++own_work_depth; }

}  // namespace sluice::inject
