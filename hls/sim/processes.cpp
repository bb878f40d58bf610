#include "hls/sim/processes.h"

#include <algorithm>
#include <string_view>

#include "hls/sim/fifo.h"

namespace sluice::hls_sim {
namespace {

thread_local bool t_threaded = false;
thread_local Processes* t_region = nullptr;
thread_local BeatCounts* t_beats = nullptr;
// Which of the region's processes this thread is; -1: the one that makes it.
thread_local std::ptrdiff_t t_process = -1;

// A short wait is that of the other process's next word, and not worth the lock.
constexpr int kSpinCount = 200;

}  // namespace

ThreadsScope::ThreadsScope() : was_threaded_(t_threaded) { t_threaded = true; }
ThreadsScope::~ThreadsScope() { t_threaded = was_threaded_; }

BeatCounts::BeatCounts() : outer_(t_beats) { t_beats = this; }
BeatCounts::~BeatCounts() { t_beats = outer_; }

std::uint64_t BeatCounts::of(const std::string& fifo) const {
  const auto found = beats_.find(fifo);
  return found == beats_.end() ? 0 : found->second;
}

Processes::Processes() : is_threaded_(t_threaded), outer_(t_region) {
  processes_.reserve(64);  // its elements stay where they are
  t_region = this;
}

Processes::~Processes() {
  for (Process& process : processes_) {
    if (process.thread.joinable()) process.thread.join();
  }
  t_region = outer_;
}

Processes* Processes::current() { return t_region; }

void Processes::run(const char* name, std::function<void()> process) {
  if (!is_threaded_) {
    process();
    return;
  }
  if (processes_.size() == processes_.capacity())
    throw std::length_error("a dataflow region has at most 64 processes in simulation");
  const std::string_view call = name;
  std::size_t place;
  {
    const std::lock_guard lock(mutex_);
    place = processes_.size();
    processes_.emplace_back().name = call.substr(0, call.find_first_of("(<"));
  }
  processes_[place].thread = std::thread([this, place, process = std::move(process)] {
    t_region = this;
    t_process = static_cast<std::ptrdiff_t>(place);
    std::exception_ptr failure;
    try {
      process();
    } catch (...) {
      failure = std::current_exception();
    }
    const std::lock_guard lock(mutex_);
    if (failure != nullptr && failure_ == nullptr) failure_ = failure;
    processes_[place].has_ended = true;
    changed_.notify_all();
  });
}

void Processes::join() {
  if (is_threaded_) {
    std::unique_lock lock(mutex_);
    const auto has_ended = [](const Process& process) { return process.has_ended; };
    changed_.wait(lock, [&] {
      if (std::ranges::all_of(processes_, has_ended)) return true;
      // Only now is it known that no process will be added.
      if (stuck_.empty() && stands_still()) {
        stuck_ = describe();
        changed_.notify_all();
      }
      return false;
    });
  }
  if (!stuck_.empty()) throw StuckFifo(stuck_);
  if (failure_ != nullptr) std::rethrow_exception(failure_);
}

// Under the lock. A waiter whose FIFO has moved on since is about to wake.
bool Processes::stands_still() const {
  return std::ranges::all_of(processes_, [](const Process& process) {
    const Waiter& waiter = process.waiter;
    if (process.has_ended) return true;
    if (waiter.fifo == nullptr) return false;
    return waiter.is_writer ? waiter.fifo->is_full() : waiter.fifo->empty();
  });
}

std::string Processes::describe() const {
  std::string full;
  std::string empty;
  for (const Process& process : processes_) {
    if (process.has_ended || process.waiter.fifo == nullptr) continue;
    const FifoBase& fifo = *process.waiter.fifo;
    if (process.waiter.is_writer) {
      full += "; FIFO '" + fifo.name() + "' is full at its depth of " +
              std::to_string(fifo.depth()) + ", and " + process.name + " waits to write";
    } else {
      empty += "; FIFO '" + fifo.name() + "' is empty, and " + process.name + " waits to read";
    }
  }
  return "the dataflow region stands still" + full + empty;
}

void Processes::wait(const FifoBase& fifo, bool is_writer) {
  const auto can_go_on = [&] { return is_writer ? !fifo.is_full() : !fifo.empty(); };
  for (int spin = 0; spin < kSpinCount; ++spin) {
    if (can_go_on()) return;
    std::this_thread::yield();
  }
  std::unique_lock lock(mutex_);
  std::atomic<bool>& is_waiting = is_writer ? fifo.is_writer_waiting_ : fifo.is_reader_waiting_;
  is_waiting = true;
  if (t_process >= 0) processes_[static_cast<std::size_t>(t_process)].waiter = {&fifo, is_writer};
  changed_.notify_all();  // join() looks whether the region stands still
  changed_.wait(lock, [&] { return can_go_on() || !stuck_.empty(); });
  if (t_process >= 0) processes_[static_cast<std::size_t>(t_process)].waiter = {};
  if (!can_go_on()) throw StuckFifo(stuck_);
  is_waiting = false;
}

void Processes::wake() {
  const std::lock_guard lock(mutex_);
  changed_.notify_all();
}

FifoBase::FifoBase(const char* name, int depth)
    : name_(name),
      depth_(depth),
      region_(Processes::current() != nullptr && Processes::current()->is_threaded()
                  ? Processes::current()
                  : nullptr) {}

FifoBase::~FifoBase() {
  if (t_beats != nullptr) t_beats->beats_[name_] += write_count();
}

void FifoBase::wait(bool is_writer) {
  // Nobody else writes to a FIFO without bound: its reader would wait for ever.
  if (region_ == nullptr) {
    throw StuckFifo("FIFO '" + name_ + "' is read beyond what the processes before have written");
  }
  region_->wait(*this, is_writer);
}

void FifoBase::wake() { region_->wake(); }

}  // namespace sluice::hls_sim
