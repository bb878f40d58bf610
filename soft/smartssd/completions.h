#pragma once
// The notices of finished runs to the host: each packet's state is set when its time has come, so
// that runs may be seen to finish in another order than they did.
//
// Thread contract: any thread.

#include <ert.h>

#include <chrono>
#include <map>
#include <memory>
#include <thread>

#include "base/mutex.h"
#include "soft/smartssd/buffer.h"

namespace sluice::soft_smartssd {

using SteadyTime = std::chrono::steady_clock::time_point;

// The host may be looking at the packet.
void set_packet_state(const Buffer& packet, ert_cmd_state state);

class Completions {
 public:
  Completions();
  ~Completions();  // what is still due is told at once
  Completions(const Completions&) = delete;
  Completions& operator=(const Completions&) = delete;

  void publish(std::shared_ptr<Buffer> packet, ert_cmd_state state, SteadyTime due);

  // Whether more was told than `seen`, which one waiter keeps; waits at most so long.
  bool wait(std::uint64_t& seen, std::chrono::milliseconds timeout);

 private:
  struct Notice {
    std::shared_ptr<Buffer> packet;
    ert_cmd_state state;
  };

  void tell_when_due();

  Mutex mutex_;
  CondVar to_teller_;
  CondVar to_waiters_;
  std::multimap<SteadyTime, Notice> notices_ GUARDED_BY(mutex_);
  std::uint64_t told_ GUARDED_BY(mutex_) = 0;
  bool is_ending_ GUARDED_BY(mutex_) = false;
  std::thread teller_;
};

}  // namespace sluice::soft_smartssd
