// Many runs at once: several devices and threads, callbacks, queues, notices that come in another
// order than the runs ended.

#include <algorithm>
#include <atomic>
#include <fstream>
#include <iterator>
#include <mutex>
#include <numeric>

#include "experimental/xrt_queue.h"
#include "experimental/xrt_xclbin.h"
#include "tests/soft/smartssd/soft_xrt.h"

using namespace sluice;
using namespace sluice::soft_smartssd;

namespace {

constexpr int kRunCount = 1024;
constexpr std::size_t kRunBytes = kRunCount * sizeof(std::int32_t);

// The three buffers of one vadd, and whether its sum is right.
class Addition {
 public:
  Addition(const SoftXrt::Loaded& loaded, int first)
      : first_(first),
        a_(loaded.device, kRunBytes, 0),
        b_(loaded.device, kRunBytes, 0),
        sum_(loaded.device, kRunBytes, 0) {
    std::iota(a_.map<std::int32_t*>(), a_.map<std::int32_t*>() + kRunCount, first);
    std::fill_n(b_.map<std::int32_t*>(), kRunCount, 1);
    a_.sync(XCL_BO_SYNC_BO_TO_DEVICE);
    b_.sync(XCL_BO_SYNC_BO_TO_DEVICE);
  }
  xrt::run prepared(const xrt::kernel& vadd) const {
    xrt::run run(vadd);
    run.set_arg(0, a_);
    run.set_arg(1, b_);
    run.set_arg(2, sum_);
    run.set_arg(3, kRunCount);
    return run;
  }
  bool is_right() {
    sum_.sync(XCL_BO_SYNC_BO_FROM_DEVICE);
    const auto* sum = sum_.map<const std::int32_t*>();
    return sum[0] == first_ + 1 && sum[kRunCount - 1] == first_ + kRunCount;
  }

 private:
  int first_;
  xrt::bo a_, b_, sum_;
};

}  // namespace

TEST_CASE("four devices and two threads on each add in parallel") {
  if (skips_for_xrt()) return;
  const SoftXrt soft("devices=4;completion_delay_us=300");
  std::atomic<int> right_count{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      const auto loaded = soft.open(static_cast<unsigned>(t % 4));
      const xrt::kernel vadd = loaded.kernel("vadd");
      for (int i = 0; i < 25; ++i) {
        Addition addition(loaded, 1000 * t + i);
        auto run = addition.prepared(vadd);
        run.start();
        if (run.wait(kLong) == ERT_CMD_STATE_COMPLETED && addition.is_right()) ++right_count;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(right_count == 8 * 25);
}

TEST_CASE("each run's callback comes once") {
  if (skips_for_xrt()) return;
  const SoftXrt soft("completion_delay_us=2000");
  const auto loaded = soft.open();
  const xrt::kernel vadd = loaded.kernel("vadd");
  std::atomic<int> callback_count{0};
  std::vector<Addition> additions;
  std::vector<xrt::run> runs;
  for (int i = 0; i < 20; ++i) {
    additions.emplace_back(loaded, i);
    runs.push_back(additions.back().prepared(vadd));
    runs.back().add_callback(
        ERT_CMD_STATE_COMPLETED,
        [](const void*, ert_cmd_state, void* count) { ++*static_cast<std::atomic<int>*>(count); },
        &callback_count);
  }
  for (xrt::run& run : runs) run.start();
  for (xrt::run& run : runs) CHECK(run.wait(kLong) == ERT_CMD_STATE_COMPLETED);
  CHECK(eventually([&] { return callback_count >= 20; }));
  CHECK(callback_count == 20);
}

TEST_CASE("notices come in the seed's order, not in that of the runs") {
  if (skips_for_xrt()) return;
  std::vector<int> order;
  std::mutex mutex;
  const SoftXrt soft("seed=5;completion_delay_us=200000");
  const auto loaded = soft.open();
  const xrt::kernel vadd = loaded.kernel("vadd");
  struct Note {
    std::vector<int>* order;
    std::mutex* mutex;
    int number;
  };
  std::vector<Addition> additions;
  std::vector<xrt::run> runs;
  std::vector<Note> notes;
  for (int i = 0; i < 8; ++i) notes.push_back({&order, &mutex, i});
  for (Note& note : notes) {
    additions.emplace_back(loaded, note.number);
    runs.push_back(additions.back().prepared(vadd));
    runs.back().add_callback(
        ERT_CMD_STATE_COMPLETED,
        [](const void*, ert_cmd_state, void* data) {
          auto* const told = static_cast<Note*>(data);
          const std::lock_guard lock(*told->mutex);
          told->order->push_back(told->number);
        },
        &note);
  }
  for (xrt::run& run : runs) run.start();
  const auto is_complete = [&] {
    const std::lock_guard lock(mutex);
    return order.size() == 8;
  };
  REQUIRE(eventually(is_complete));
  CHECK_FALSE(std::is_sorted(order.begin(), order.end()));
  std::sort(order.begin(), order.end());
  for (int i = 0; i < 8; ++i) CHECK(order[static_cast<std::size_t>(i)] == i);
}

TEST_CASE("two units of a kernel work beside each other") {
  if (skips_for_xrt()) return;
  const SoftXrt soft;
  const auto loaded = soft.open();
  xrt::kernel slow = loaded.kernel("slow");
  xrt::bo first(loaded.device, 4096, 0);
  xrt::bo second(loaded.device, 4096, 0);
  auto long_run = slow(first, 1'000'000u);
  auto short_run = slow(second, 0u);
  CHECK(short_run.wait(kLong) == ERT_CMD_STATE_COMPLETED);
  CHECK(long_run.state() != ERT_CMD_STATE_COMPLETED);
  CHECK(long_run.wait(kLong) == ERT_CMD_STATE_COMPLETED);
}

TEST_CASE("XRT's queues run what is put into them in order") {
  if (skips_for_xrt()) return;
  const SoftXrt soft;
  const auto loaded = soft.open();
  xrt::kernel scale = loaded.kernel("scale");
  xrt::bo value(loaded.device, 4096, 0);
  value.map<std::uint32_t*>()[0] = 3;
  xrt::queue queue;
  queue.enqueue([&] { value.sync(XCL_BO_SYNC_BO_TO_DEVICE); });
  for (int i = 0; i < 2; ++i) {
    queue.enqueue([&] { scale(value, 10u, std::uint64_t{1}).wait(); });
  }
  queue.enqueue([&] { value.sync(XCL_BO_SYNC_BO_FROM_DEVICE); }).wait();
  CHECK(value.map<std::uint32_t*>()[0] == 311);
}

TEST_CASE("a unit that one has for itself is refused to another") {
  if (skips_for_xrt()) return;
  const SoftXrt soft;
  const auto loaded = soft.open();
  const auto exclusive = xrt::kernel::cu_access_mode::exclusive;
  {
    const xrt::kernel mine(loaded.device, loaded.xclbin, "scale", exclusive);
    const auto other = soft.open();
    CHECK_THROWS_WITH(other.kernel("scale"), Catch::Contains("another's"));
  }
  CHECK_NOTHROW(loaded.kernel("scale"));
}

TEST_CASE("a kernel's rate is kept") {
  if (skips_for_xrt()) return;
  const SoftXrt soft("kernel_elements_per_s=4000");
  const auto loaded = soft.open();
  const Addition addition(loaded, 0);
  auto run = addition.prepared(loaded.kernel("vadd"));
  const auto begin = std::chrono::steady_clock::now();
  run.start();
  CHECK(run.wait(kLong) == ERT_CMD_STATE_COMPLETED);
  CHECK(std::chrono::steady_clock::now() - begin >= std::chrono::milliseconds(256));
}

TEST_CASE("a damaged xclbin is not loaded") {
  if (skips_for_xrt()) return;
  const SoftXrt soft;
  std::ifstream file(kTestXclbin, std::ios::binary);
  std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  REQUIRE(bytes.size() > 20000);
  bytes[20000] = static_cast<char>(bytes[20000] ^ 4);
  xrt::device device(0u);
  CHECK_THROWS_WITH(device.load_xclbin(xrt::xclbin(bytes)), Catch::Contains("damaged"));
}
