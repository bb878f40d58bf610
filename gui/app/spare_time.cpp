#include "gui/app/spare_time.h"

#include <sched.h>
#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <string>

namespace sluice::gui {
namespace {

// Of this process's threads but `spared`; how many were not in that class.
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

SpareTime::SpareTime() : thread_([this] { serve(); }) {
  const MutexLock lock(mutex_);
  while (ordinary_thread_ == 0) changed_.wait(mutex_);
}

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
  pid_t spared = 0;
  {
    const MutexLock lock(mutex_);
    spared = ordinary_thread_;
  }
  // Again, for threads that were made meanwhile by those that had not given way yet.
  while (make_idle(spared) > 0) {
  }
}

void SpareTime::do_ordinarily(const std::function<void()>& work) {
  const MutexLock lock(mutex_);
  work_ = &work;
  changed_.notify_all();
  while (work_ != nullptr) changed_.wait(mutex_);
}

void SpareTime::serve() {
  const MutexLock lock(mutex_);
  ordinary_thread_ = ::gettid();
  changed_.notify_all();
  while (!is_over_) {
    if (work_ == nullptr) {
      changed_.wait(mutex_);
      continue;
    }
    (*work_)();
    work_ = nullptr;
    changed_.notify_all();
  }
}

}  // namespace sluice::gui
