#pragma once
// A window beside a live run takes processor time that nothing else wants: after give_way() this
// process's threads, and those they make, are in the kernel's class SCHED_IDLE (sched(7)), which
// any other thread of the machine displaces at once. What draws, the driver's threads and those
// that read the run would else take from a training run the processors that it computes and moves
// state with.
//
// There is no way back from that class without privileges, not for a child either. So one thread
// stays as the process was begun, and does what must not give way: it begins new runs.
//
// Thread contract: the frame thread, which waits for neither. Destroying it waits for the work that
// was handed over.

#include <deque>
#include <functional>
#include <thread>

#include "base/mutex.h"

namespace sluice::gui {

class SpareTime {
 public:
  SpareTime();
  ~SpareTime();
  SpareTime(const SpareTime&) = delete;
  SpareTime& operator=(const SpareTime&) = delete;

  // Does nothing where that was done.
  void give_way();
  // By the thread that does not give way, after what it was given before.
  void do_ordinarily(std::function<void()> work);

 private:
  void serve();

  Mutex mutex_;
  CondVar changed_;
  std::deque<std::function<void()>> work_ GUARDED_BY(mutex_);
  bool is_over_ GUARDED_BY(mutex_) = false;
  bool gave_way_ = false;
  std::thread thread_;
};

}  // namespace sluice::gui
