#pragma once
// What every clock promises (core/runtime/clock.h), as cases for each implementation: an operation
// of any kind comes back once, with its outcome and times in order, whatever else is under way.
//
// Thread contract: as tests/conformance.h.

#include <algorithm>
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/runtime/clock.h"
#include "core/runtime/kernel_cost.h"
#include "storage/io/file.h"
#include "tests/conformance.h"
#include "tests/core/runtime/test_platform.h"

namespace sluice::runtime {

// How the implementation at hand is made, for a platform that outlives it.
struct ClockMaker {
  bool does_work = true;  // false: it charges the cost only
  std::function<std::unique_ptr<Clock>(const platform::Platform&)> make;
};

namespace conformance {

constexpr TimeNs kPatienceNs = 100'000'000;

// Longer than anything takes that is going to happen at all.
constexpr int kWaitsMax = 600;

// Starts operations and takes them back, as the runtime does.
class Driver {
 public:
  explicit Driver(const ClockMaker& maker) : clock_(maker.make(platform_)) {}

  Clock& clock() { return *clock_; }
  const platform::Platform& platform() const { return platform_; }
  std::size_t under_way() const { return states_.size() - back_.size(); }
  // In the order in which they came back.
  const std::vector<OperationState*>& back() const { return back_; }

  OperationState* start(const Operation& operation) {
    OperationState* state = &states_.emplace_back();
    state->operation = operation;
    state->submit_ns = state->start_ns = now_ns();
    clock_->start(state);
    return state;
  }

  // One call; true: something came back.
  bool wait(TimeNs patience_ns = kPatienceNs) {
    const std::size_t before = back_.size();
    OperationQueue completed;
    clock_->wait(completed, patience_ns);
    const TimeNs now = now_ns();
    while (!completed.empty()) take_back(completed.pop(), now);
    return back_.size() > before;
  }

  void wait_for_all() {
    for (int waits = 0; under_way() > 0; ++waits) {
      REQUIRE(waits < kWaitsMax);
      if (wait()) waits = 0;
    }
  }

  // The time of the clock, which never goes back.
  TimeNs now_ns() {
    const TimeNs now = clock_->now_ns();
    CHECK(now >= last_now_ns_);
    last_now_ns_ = now;
    return now;
  }

 private:
  void take_back(OperationState* state, TimeNs now) {
    CHECK(std::ranges::find(back_, state) == back_.end());
    CHECK(state->submit_ns <= state->start_ns);
    CHECK(state->start_ns <= state->end_ns);
    CHECK(state->end_ns <= now);
    back_.push_back(state);
  }

  platform::Platform platform_ = test_platform();
  std::unique_ptr<Clock> clock_;
  std::deque<OperationState> states_;
  std::vector<OperationState*> back_;
  TimeNs last_now_ns_ = std::numeric_limits<TimeNs>::min();
};

// A file that transfers move from and to, of bytes that count up.
class CountingFile {
 public:
  static constexpr std::size_t kBytes = 1 << 16;

  CountingFile() {
    std::string pattern = (std::filesystem::temp_directory_path() / "sluice-clock-XXXXXX").string();
    REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    folder_ = pattern;
    auto opened = io::File::open((folder_ / "file").string(),
                                 {io::FileAccess::create_new, io::Caching::buffered});
    REQUIRE(opened.ok());
    file_.emplace(std::move(*opened));
    for (std::size_t i = 0; i < kBytes; ++i) bytes_.push_back(byte_at(i));
    REQUIRE(file_->write_exactly(0, bytes_).ok());
  }
  ~CountingFile() { std::filesystem::remove_all(folder_); }

  static std::byte byte_at(std::size_t i) { return static_cast<std::byte>(i * 31 >> 3); }
  io::File& file() { return *file_; }

 private:
  std::filesystem::path folder_;
  std::optional<io::File> file_;
  std::vector<std::byte> bytes_;
};

inline Operation charged_transfer(const platform::Platform& platform, std::int64_t size_bytes) {
  Operation operation;
  operation.label.stage = stages::Stage::state_read;
  operation.label.device = DeviceId{0};
  operation.label.size_bytes = size_bytes;
  operation.cost.route = platform.devices[0].host_route;
  return operation;
}

inline Operation charged_kernel(const platform::Platform& platform, double elements) {
  const platform::EngineId id = platform.devices[0].engine;
  Operation operation;
  operation.cost = kernel_cost(id, platform.engine(id), "adamw", elements);
  return operation;
}

inline void set_function(Operation& operation, InlineFunction function,
                         Workers workers = Workers::host) {
  operation.work.kind = WorkKind::function;
  operation.work.workers = workers;
  operation.work.function = function;
}

inline void set_read(Operation& operation, CountingFile& from, std::size_t offset,
                     std::span<std::byte> into) {
  operation.work.kind = WorkKind::transfer;
  operation.work.file = &from.file();
  operation.work.offset_bytes = static_cast<std::int64_t>(offset);
  operation.work.data = into;
  operation.work.direction = io::IoDirection::read;
}

inline void check_name(const ClockMaker& maker) {
  Driver driver(maker);
  const std::string_view name = driver.clock().name();
  CHECK((name == "real" || name == "emulated" || name == "simulated"));
}

inline void check_each_kind_alone(const ClockMaker& maker) {
  CountingFile file;
  std::vector<std::byte> memory(4096);
  std::atomic<int> run_count = 0;
  Driver driver(maker);
  const Operation nothing;
  Operation function;
  set_function(function, [&run_count] {
    run_count += 1;
    return ok_status();
  });
  Operation transfer = charged_transfer(driver.platform(), 4096);
  set_read(transfer, file, 0, memory);
  Operation kernel = charged_kernel(driver.platform(), 1000);
  set_function(kernel, function.work.function, Workers::compute);
  const Operation charged_only = charged_transfer(driver.platform(), 4096);
  for (const Operation& operation : {nothing, function, transfer, kernel, charged_only}) {
    OperationState* state = driver.start(operation);
    driver.wait_for_all();
    CHECK(driver.back().back() == state);
    CHECK(state->status.ok());
  }
  CHECK(driver.back().size() == 5);
  CHECK(run_count == (maker.does_work ? 2 : 0));
}

inline void check_payload(const ClockMaker& maker) {
  CountingFile file;
  std::vector<std::byte> memory(CountingFile::kBytes, std::byte{0xee});
  Driver driver(maker);
  constexpr std::size_t kPart = 4096;
  for (std::size_t at = 0; at < memory.size(); at += kPart) {
    Operation transfer = charged_transfer(driver.platform(), kPart);
    set_read(transfer, file, at, std::span(memory).subspan(at, kPart));
    driver.start(transfer);
  }
  driver.wait_for_all();
  std::size_t moved = 0;
  std::size_t untouched = 0;
  for (std::size_t i = 0; i < memory.size(); ++i) {
    moved += memory[i] == CountingFile::byte_at(i) ? 1 : 0;
    untouched += memory[i] == std::byte{0xee} ? 1 : 0;
  }
  CHECK((maker.does_work ? moved : untouched) == memory.size());
}

inline void check_failure(const ClockMaker& maker) {
  if (!maker.does_work) {
    SUCCEED("nothing is done that could fail");
    return;
  }
  CountingFile file;
  std::vector<std::byte> memory(4096);
  std::vector<std::byte> elsewhere(4096);
  Driver driver(maker);
  Operation good = charged_transfer(driver.platform(), 4096);
  set_read(good, file, 0, memory);
  Operation function = charged_kernel(driver.platform(), 1000);
  set_function(function, [] { return Status(make_error(ErrorCode::corrupt, "a tile is torn")); });
  Operation behind_the_end = charged_transfer(driver.platform(), 4096);
  set_read(behind_the_end, file, CountingFile::kBytes, elsewhere);
  const OperationState* first = driver.start(good);
  const OperationState* torn = driver.start(function);
  const OperationState* cut = driver.start(behind_the_end);
  const OperationState* last = driver.start(Operation());
  driver.wait_for_all();
  CHECK(first->status.ok());
  CHECK(last->status.ok());
  REQUIRE_FALSE(torn->status.ok());
  CHECK(torn->status.error().message() == "a tile is torn");
  REQUIRE_FALSE(cut->status.ok());
  CHECK(cut->status.error().code() == ErrorCode::corrupt);
}

inline void check_order(const ClockMaker& maker) {
  // What is asked of one engine, and of the one compute worker, is done in the order asked: the
  // later ones are shorter and do not overtake.
  std::vector<int> order;  // of the compute worker's thread
  Driver driver(maker);
  std::vector<OperationState*> started;
  for (int i = 0; i < 5; ++i) {
    Operation kernel = charged_kernel(driver.platform(), 1000.0 * (10 - i));
    set_function(
        kernel,
        [&order, i] {
          order.push_back(i);
          return ok_status();
        },
        Workers::compute);
    started.push_back(driver.start(kernel));
  }
  driver.wait_for_all();
  CHECK(driver.back() == started);
  std::vector<int> expected(maker.does_work ? 5 : 0);
  std::iota(expected.begin(), expected.end(), 0);
  CHECK(order == expected);
  for (std::size_t i = 1; i < started.size(); ++i)
    CHECK(started[i]->end_ns >= started[i - 1]->end_ns);
}

inline void check_one_by_one(const ClockMaker& maker) {
  // Each is started when the one before has come back, as a chain of co_awaits does.
  Driver driver(maker);
  TimeNs end_before_ns = std::numeric_limits<TimeNs>::min();
  for (int i = 0; i < 20; ++i) {
    Operation operation = charged_transfer(driver.platform(), 100 + i);
    set_function(operation, [] { return ok_status(); });
    const OperationState* state = driver.start(operation);
    CHECK(state->submit_ns >= end_before_ns);
    driver.wait_for_all();
    end_before_ns = state->end_ns;
  }
}

// Opens when it goes, too: a check that fails must not leave a worker waiting.
struct OpensAtEnd {
  std::atomic<bool>* is_open;
  ~OpensAtEnd() { open(); }
  void open() const {
    is_open->store(true);
    is_open->notify_all();
  }
};

inline void check_patience(const ClockMaker& maker) {
  std::atomic<bool> is_open = false;
  Driver driver(maker);
  const OpensAtEnd gate{&is_open};  // goes before the driver, whose clock waits for its workers
  Operation held;
  set_function(held, [&is_open] {
    is_open.wait(false);
    return ok_status();
  });
  const OperationState* state = driver.start(held);
  // Operations beside it come back while it is held, and none is lost.
  driver.start(Operation());
  for (int waits = 0; driver.under_way() > (maker.does_work ? 1U : 0U); ++waits) {
    REQUIRE(waits < kWaitsMax);
    driver.wait();
  }
  if (maker.does_work) {
    CHECK_FALSE(driver.wait(0));
    CHECK_FALSE(driver.wait(1'000'000));
  }
  gate.open();
  driver.wait_for_all();
  CHECK(std::ranges::count(driver.back(), state) == 1);
}

inline void check_many(const ClockMaker& maker) {
  constexpr int kCount = 300;
  CountingFile file;
  std::vector<std::vector<std::byte>> memory(kCount, std::vector<std::byte>(64));
  std::atomic<int> run_count = 0;
  Driver driver(maker);
  for (int i = 0; i < kCount; ++i) {
    Operation operation;
    if (i % 2 == 0) operation = charged_transfer(driver.platform(), 64 * i);
    if (i % 3 == 1) operation = charged_kernel(driver.platform(), i);
    if (i % 5 == 0) set_read(operation, file, 64, memory[static_cast<std::size_t>(i)]);
    if (i % 5 == 1) {
      set_function(
          operation,
          [&run_count] {
            run_count += 1;
            return ok_status();
          },
          i % 2 == 0 ? Workers::host : Workers::compute);
    }
    driver.start(operation);
    // Others are started while many are under way.
    if (i % 40 == 39) driver.wait();
  }
  driver.wait_for_all();
  CHECK(driver.back().size() == kCount);
  CHECK(run_count == (maker.does_work ? kCount / 5 : 0));
  for (const OperationState* state : driver.back()) CHECK(state->status.ok());
}

}  // namespace conformance

inline std::vector<ConformanceCase<ClockMaker>> clock_cases() {
  using namespace conformance;
  return {
      {"it has one of the three names", check_name},
      {"an operation of each kind comes back, with a cost and without", check_each_kind_alone},
      {"a transfer moves its bytes where work is done, and none where it is not", check_payload},
      {"an operation that fails hands its error over and leaves the others alone", check_failure},
      {"an engine and the compute worker take operations in the order asked", check_order},
      {"an operation begins no earlier than the one ended that set it off", check_one_by_one},
      {"wait comes back empty-handed in time and loses nothing", check_patience},
      {"many of all kinds come back, each once", check_many},
  };
}

}  // namespace sluice::runtime
