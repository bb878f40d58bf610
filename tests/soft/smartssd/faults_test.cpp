// What was asked to go wrong goes wrong, once, with a name, and in bounded time.

#include <algorithm>

#include "tests/soft/smartssd/soft_xrt.h"

using namespace sluice;
using namespace sluice::soft_smartssd;

namespace {

// How a run of `scale` over a page of ones ends.
struct Outcome {
  ert_cmd_state state;
  std::size_t wrong_words;
};

Outcome scaled(const SoftXrt::Loaded& loaded) {
  xrt::kernel scale = loaded.kernel("scale");
  xrt::bo value(loaded.device, 4096, 0);
  auto* const words = value.map<std::uint32_t*>();
  std::fill_n(words, 1024, 1u);
  value.sync(XCL_BO_SYNC_BO_TO_DEVICE);
  auto run = scale(value, 5u, std::uint64_t{1024});
  const ert_cmd_state state = run.wait(kLong);
  if (state == ERT_CMD_STATE_NORESPONSE) return {state, 0};  // nothing can be read any more
  value.sync(XCL_BO_SYNC_BO_FROM_DEVICE);
  const auto wrong =
      std::count_if(words, words + 1024, [](std::uint32_t word) { return word != 6; });
  return {state, static_cast<std::size_t>(wrong)};
}

}  // namespace

TEST_CASE("a hung run times out, and the next one runs") {
  if (skips_for_xrt()) return;
  const SoftXrt soft("fault=hang@2;hang_ms=20");
  const auto loaded = soft.open();
  CHECK(scaled(loaded).state == ERT_CMD_STATE_COMPLETED);
  CHECK(scaled(loaded).state == ERT_CMD_STATE_TIMEOUT);
  CHECK(scaled(loaded).state == ERT_CMD_STATE_COMPLETED);
}

TEST_CASE("a run that hangs for ever can be waited for in bounded time, and aborted") {
  if (skips_for_xrt()) return;
  const SoftXrt soft("fault=hang@1;hang_ms=0");
  const auto loaded = soft.open();
  xrt::kernel scale = loaded.kernel("scale");
  const xrt::bo value(loaded.device, 4096, 0);
  auto run = scale(value, 5u, std::uint64_t{1024});
  CHECK(run.wait(std::chrono::milliseconds(50)) != ERT_CMD_STATE_COMPLETED);
  CHECK(run.abort() == ERT_CMD_STATE_ABORT);
  CHECK(scaled(loaded).state == ERT_CMD_STATE_COMPLETED);
}

TEST_CASE("an allocation fails, and the next one does not") {
  if (skips_for_xrt()) return;
  const SoftXrt soft("fault=allocation@2");
  const auto loaded = soft.open();
  CHECK_NOTHROW(xrt::bo(loaded.device, 4096, 0));
  CHECK_THROWS_AS(xrt::bo(loaded.device, 4096, 0), std::bad_alloc);
  CHECK_NOTHROW(xrt::bo(loaded.device, 4096, 0));
}

TEST_CASE("a memory error is told, and one word is another") {
  if (skips_for_xrt()) return;
  const SoftXrt soft("fault=memory_error@1;seed=9");
  const auto loaded = soft.open();
  const Outcome first = scaled(loaded);
  CHECK(first.state == ERT_CMD_STATE_ERROR);
  CHECK(first.wrong_words == 2);  // of 32 bits
  const Outcome second = scaled(loaded);
  CHECK(second.state == ERT_CMD_STATE_COMPLETED);
  CHECK(second.wrong_words == 0);
}

TEST_CASE("a lost device answers nothing more, the other one does") {
  if (skips_for_xrt()) return;
  const SoftXrt soft("devices=2;fault=lost@2/device1");
  {
    const auto stays = soft.open(0);
    const auto goes = soft.open(1);
    CHECK(scaled(goes).state == ERT_CMD_STATE_COMPLETED);
    CHECK(scaled(stays).state == ERT_CMD_STATE_COMPLETED);
    CHECK(scaled(goes).state == ERT_CMD_STATE_NORESPONSE);
    CHECK_THROWS_WITH(xrt::bo(goes.device, 4096, 0), Catch::Contains("5357:02:00.1 is lost"));
    CHECK_THROWS(goes.kernel("vadd"));
    CHECK(goes.device.get_info<xrt::info::device::offline>());
    CHECK(scaled(stays).state == ERT_CMD_STATE_COMPLETED);
  }
  CHECK(scaled(soft.open(1)).state == ERT_CMD_STATE_COMPLETED);  // plugged in again
}

TEST_CASE("faults by probability follow from the seed") {
  if (skips_for_xrt()) return;
  const auto failures = [](const std::string& seed) {
    const SoftXrt soft("fault=allocation~0.3;seed=" + seed);
    const auto loaded = soft.open();
    std::vector<bool> failed;
    for (int i = 0; i < 64; ++i) {
      try {
        const xrt::bo buffer(loaded.device, 4096, 0);
        failed.push_back(false);
      } catch (const std::bad_alloc&) {
        failed.push_back(true);
      }
    }
    return failed;
  };
  const auto first = failures("1");
  CHECK(first == failures("1"));
  CHECK(first != failures("2"));
  const auto count = std::count(first.begin(), first.end(), true);
  CHECK(count > 5);
  CHECK(count < 40);
}
