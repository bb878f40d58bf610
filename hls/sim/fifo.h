#pragma once
// A FIFO of the simulation: a ring with a bound between two threads, or a list without one inside a
// thread (processes.h).
//
// Thread contract: one writer and one reader; it goes when both have ended, on the thread that made
// it.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "hls/sim/processes.h"

namespace sluice::hls_sim {

class FifoBase {
 public:
  FifoBase(const char* name, int depth);
  FifoBase(const FifoBase&) = delete;
  FifoBase& operator=(const FifoBase&) = delete;

  const std::string& name() const { return name_; }
  void set_name(const char* name) { name_ = name; }
  int depth() const { return depth_; }
  bool empty() const { return read_count_.load() == write_count_.load(); }
  // Bounded, and without room.
  bool is_full() const {
    return region_ != nullptr &&
           write_count_.load() - read_count_.load() == static_cast<std::uint64_t>(depth_);
  }

 protected:
  ~FifoBase();
  bool is_bounded() const { return region_ != nullptr; }
  void wait_for_room() {
    if (is_full()) wait(true);
  }
  void wait_for_value() {
    if (empty()) wait(false);
  }
  // In sequence with the other side's look at the count before it waits, so that no wake is lost.
  void wrote() {
    write_count_.store(write_count() + 1);
    if (is_reader_waiting_.load()) wake();
  }
  void has_read() {
    read_count_.store(read_count() + 1);
    if (is_writer_waiting_.load()) wake();
  }
  // Without a bound there is no other thread.
  void count_write() { write_count_.store(write_count() + 1, std::memory_order_relaxed); }
  void count_read() { read_count_.store(read_count() + 1, std::memory_order_relaxed); }
  std::uint64_t write_count() const { return write_count_.load(std::memory_order_relaxed); }
  std::uint64_t read_count() const { return read_count_.load(std::memory_order_relaxed); }

 private:
  friend class Processes;
  void wait(bool is_writer);
  void wake();

  std::string name_;
  int depth_;
  Processes* region_;  // null: no bound
  std::atomic<std::uint64_t> write_count_ = 0;
  std::atomic<std::uint64_t> read_count_ = 0;
  mutable std::atomic<bool> is_reader_waiting_ = false;
  mutable std::atomic<bool> is_writer_waiting_ = false;
};

template <typename T>
class Fifo final : public FifoBase {
 public:
  Fifo(const char* name, int depth) : FifoBase(name, depth) {
    if (is_bounded()) {
      values_.resize(static_cast<std::size_t>(depth));
    } else if (!spare().empty()) {
      values_ = std::move(spare().back());
      spare().pop_back();
    }
  }
  ~Fifo() {
    if (is_bounded()) return;
    values_.clear();
    spare().push_back(std::move(values_));
  }

  void push(const T& value) {
    if (is_bounded()) {
      wait_for_room();
      values_[write_count() % values_.size()] = value;
      wrote();
    } else {
      values_.push_back(value);
      count_write();
    }
  }
  T pop() {
    wait_for_value();
    if (!is_bounded()) {
      const T value = values_[read_count()];
      count_read();
      return value;
    }
    const T value = values_[read_count() % values_.size()];
    has_read();
    return value;
  }

 private:
  // A list that has grown is used again: fresh pages cost more than the words in them.
  static std::vector<std::vector<T>>& spare() {
    thread_local std::vector<std::vector<T>> lists;
    return lists;
  }

  std::vector<T> values_;
};

}  // namespace sluice::hls_sim
