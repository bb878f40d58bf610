#pragma once
// The thread that owns a transport and makes progress on calls. It sleeps until something is handed
// to it; while something is under way it polls, with the transport's short waits between. Idle, it
// still looks every kIdleWait for questions of others (join_notes.cpp), which also moves what a
// library has left to do behind a call that has ended.
//
// Thread contract: all of it from the communicator's owner thread.

#include <chrono>
#include <functional>
#include <memory>
#include <thread>

#include "base/mutex.h"
#include "core/collective/communicator.h"
#include "core/collective/detail/call_state.h"
#include "core/collective/detail/progress_engine.h"

namespace sluice::collective::detail {

class Progress {
 public:
  static constexpr std::chrono::milliseconds kIdleWait{20};

  static Result<std::unique_ptr<Progress>> open(const Communicator::TransportOpener& opener,
                                                const CommunicatorOptions& options);
  ~Progress();

  CallSlots& slots() { return slots_; }
  void hand(CallState* call);
  // Does something on the thread, and waits for it.
  Status do_there(const std::function<Status(Transport&, ProgressEngine&)>& action);
  // Ends the thread, and before it the transport where the engine has not failed.
  Status close();

 private:
  enum class Closing : std::uint8_t { no, leaves, closes };
  struct Errand {
    const std::function<Status(Transport&, ProgressEngine&)>* action;
    Pending done;
  };
  explicit Progress(const CommunicatorOptions& options) : options_(options) {}
  void run(const Communicator::TransportOpener& opener, Pending& opened);
  Closing make_progress(Transport& transport, ProgressEngine& engine);
  void wait_for_more(const Transport& transport) REQUIRES(mutex_);
  Status stop(Closing closing);

  const CommunicatorOptions options_;
  CallSlots slots_;
  Mutex mutex_;
  CondVar handed_;
  CallQueue calls_ GUARDED_BY(mutex_);
  Errand* errand_ GUARDED_BY(mutex_) = nullptr;
  Closing closing_ GUARDED_BY(mutex_) = Closing::no;
  Status close_outcome_;  // the thread's, read after it has ended
  std::thread thread_;
};

}  // namespace sluice::collective::detail
