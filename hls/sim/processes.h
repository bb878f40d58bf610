#pragma once
// The processes of a dataflow region under g++. A region makes one Processes, hands it each process
// in the order of the source, and joins.
//
//   sequential   a process runs to its end before the next begins; FIFOs have no bound. Fast.
//   threads      each process has a thread; FIFOs have the depth that the source gives them, so
//   that a
//                region that would stand still in hardware does here. That is found exactly: when
//                every process that has not ended waits for a FIFO, none of them can ever go on.
//
// Which one is the calling thread's choice (ThreadsScope), sequential unless chosen.
//
// Thread contract: a Processes belongs to the thread that made it; FIFOs made between its begin and
// its join belong to it.

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace sluice::hls_sim {

// The exception of a region that stands still, from join(): each FIFO that is waited for, the full
// ones first, with its depth and who waits.
class StuckFifo : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// As long as it lives, regions that its thread begins run as threads.
class ThreadsScope {
 public:
  ThreadsScope();
  ~ThreadsScope();
  ThreadsScope(const ThreadsScope&) = delete;
  ThreadsScope& operator=(const ThreadsScope&) = delete;

 private:
  bool was_threaded_;
};

// As long as it lives, counts what crosses the FIFOs of the regions that its thread begins: a word
// each cycle at best, so the largest count is a bound of the region's cycles.
class BeatCounts {
 public:
  BeatCounts();
  ~BeatCounts();
  BeatCounts(const BeatCounts&) = delete;
  BeatCounts& operator=(const BeatCounts&) = delete;

  // Beats of the FIFO of that name, or of all of an array's together.
  std::uint64_t of(const std::string& fifo) const;
  const std::map<std::string, std::uint64_t>& all() const { return beats_; }

 private:
  friend class FifoBase;
  BeatCounts* outer_;
  std::map<std::string, std::uint64_t> beats_;
};

class FifoBase;

class Processes {
 public:
  Processes();
  ~Processes();
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;

  bool is_threaded() const { return is_threaded_; }
  // `name` is the source text of the call; what precedes its parenthesis names the process.
  void run(const char* name, std::function<void()> process);
  // Throws what a process threw: StuckFifo before anything else.
  void join();

  // That of the region that the calling thread is in the middle of making, or a process of; null:
  // none, and FIFOs have no bound.
  static Processes* current();

 private:
  friend class FifoBase;
  struct Waiter {
    const FifoBase* fifo = nullptr;  // null: not waiting
    bool is_writer = false;
  };
  struct Process {
    std::string name;
    std::thread thread;
    Waiter waiter;
    bool has_ended = false;
  };
  // Returns when `fifo` can go on; throws StuckFifo when the region stands still.
  void wait(const FifoBase& fifo, bool is_writer);
  void wake();
  bool stands_still() const;
  std::string describe() const;

  bool is_threaded_;
  Processes* outer_;
  std::vector<Process> processes_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string stuck_;  // why it stands still; empty: it does not
  std::exception_ptr failure_;
};

}  // namespace sluice::hls_sim
