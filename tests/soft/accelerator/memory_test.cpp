#include <ATen/DeviceAccelerator.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>

#include "tests/soft/accelerator/soft_fixture.h"

namespace sluice::soft_accelerator {
namespace {

using Catch::Contains;

// Reads device memory in a child. Its status, and what it said.
std::pair<int, std::string> touched_in_child(const float* address) {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], STDERR_FILENO);
    ::_exit(*const_cast<const volatile float*>(address) > 0 ? 1 : 0);
  }
  ::close(ends[1]);
  std::string text(1000, '\0');
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(0, ::read(ends[0], text.data(), 1000))));
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  return {status, text};
}

TEST_CASE("a host access to device memory ends the process and says where it was") {
  const Soft soft;
  const at::Tensor weights = on_soft({100});
  sluice_soft_accelerator_name_block(weights.data_ptr(), "the weights");
  const auto [status, text] = touched_in_child(static_cast<const float*>(weights.data_ptr()) + 10);
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGSEGV);
  CHECK_THAT(text, Contains("the host touched device memory at offset 40 of block"));
  CHECK_THAT(text, Contains("400 bytes, 'the weights'"));
}

TEST_CASE("memory that nothing was written to is NaN") {
  const Soft soft;
  CHECK(at::isnan(on_soft({1000}).cpu()).all().item<bool>());
  CHECK(at::isnan(on_soft({1000}, at::kBFloat16).cpu()).all().item<bool>());
}

TEST_CASE("memory that was freed is NaN for the stream that nobody named") {
  const Soft soft("fault=stuck@2");
  const at::Tensor sum = at::full({1000}, 1.0, at::TensorOptions(kSoft));  // job 1
  soft.synchronize();
  sum.add_(0);  // job 2 is stuck
  {
    const c10::StreamGuard on_in(soft.in());
    at::Tensor ones = at::full({1000}, 1.0, at::TensorOptions(kSoft));
    c10::Event ready(kSoft.type());
    ready.record(soft.in());
    ready.block(soft.compute());
    const c10::StreamGuard on_compute(soft.compute());
    sum.add_(ones);
  }
  REQUIRE(eventually([&] { return soft.counters().used_bytes == soft.counters().live_bytes; }));
  CHECK_THAT(soft.error(), Contains("is freed, and stream 'compute' may still be reading it"));
  soft.set("");  // the stuck job ends
  CHECK(at::isnan(sum.cpu()).all().item<bool>());
}

TEST_CASE("what does not fit under the cap is refused with the numbers") {
  const Soft soft("cap=1MiB");
  const at::Tensor half = on_soft({131072});
  CHECK_THROWS_AS(on_soft({131073}), c10::OutOfMemoryError);
  CHECK_THAT(thrown([] { on_soft({131073}); }),
             Contains("524292 bytes were asked for, 524288 of 1048576 are in use"));
  sluice_soft_accelerator_set_cap(0, 2 << 20);
  CHECK(on_soft({131073}).defined());
  CHECK(at::accelerator::getDeviceStats(0).allocated_bytes[0].peak == soft.counters().peak_bytes);
}

TEST_CASE("under a tight cap an allocation waits for memory that was freed") {
  const Soft soft("cap=1MiB;delay_us=200");
  at::Tensor x = at::full({65536}, 1.0, at::TensorOptions(kSoft));
  for (int i = 0; i < 50; ++i) x = x + 1;
  CHECK(x.cpu()[5].item<float>() == 51);
  CHECK(soft.counters().peak_bytes <= 1 << 20);
  x.reset();
  soft.synchronize();
  CHECK(soft.counters().used_bytes == 0);
}

TEST_CASE("pinned memory is known and counted") {
  const Soft soft;
  const at::Tensor x = pinned({100}, 1);
  CHECK(x.is_pinned());
  CHECK_FALSE(at::empty({100}).is_pinned());
  CHECK(soft.counters().pinned_blocks == 1);
  CHECK(soft.counters().pinned_bytes == 400);
}

}  // namespace
}  // namespace sluice::soft_accelerator
