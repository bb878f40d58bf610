#include "gui/app/spare_time.h"

#include <sched.h>
#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <string>

namespace sluice::gui {
namespace {

// Puts this process's threads but `spared` into that class; returns how many were not in it.
int make_idle(pid_t spared) {
  int changed_count = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator task("/proc/self/task", error), end;
       !error && task != end; task.increment(error)) {
    const std::string name = task->path().filename().string();
    pid_t thread = 0;
    std::from_chars(name.data(), name.data() + name.size(), thread);
    if (thread == spared || ::sched_getscheduler(thread) == SCHED_IDLE) continue;
    const sched_param none{};
    if (::sched_setscheduler(thread, SCHED_IDLE, &none) == 0) ++changed_count;
  }
  return changed_count;
}

}  // namespace

SpareTime::SpareTime() : thread_([this] { serve(); }) {}

SpareTime::~SpareTime() {
  {
    const MutexLock lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void SpareTime::give_way() {
  if (gave_way_) return;
  gave_way_ = true;
  do_ordinarily([] {
    // Threads that had not given way yet may have made further ones meanwhile.
    while (make_idle(::gettid()) > 0) {
    }
  });
}

void SpareTime::do_ordinarily(std::function<void()> work) {
  {
    const MutexLock lock(mutex_);
    work_.push_back(std::move(work));
  }
  changed_.notify_all();
}

void SpareTime::serve() {
  while (true) {
    std::function<void()> work;
    {
      const MutexLock lock(mutex_);
      while (work_.empty() && !is_over_) changed_.wait(mutex_);
      if (work_.empty()) return;
      work = std::move(work_.front());
      work_.pop_front();
    }
    work();
  }
}

}  // namespace sluice::gui
