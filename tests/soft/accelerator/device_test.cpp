// Streams, copies, faults, counters and settings.

#include "tests/soft/accelerator/soft_fixture.h"

namespace sluice::soft_accelerator {
namespace {

using Catch::Contains;

bool eventually_pending(const std::string& text) {
  return eventually([&] {
    return std::string(sluice_soft_accelerator_pending()).find(text) != std::string::npos;
  });
}

TEST_CASE("a copy of pinned memory is asynchronous, one of other memory waits") {
  const Soft soft("fault=stuck@2");
  const at::Tensor x = on_soft({1000});
  x.copy_(at::full({1000}, 2.0f), true);  // job 1
  CHECK(std::string(sluice_soft_accelerator_pending()).empty());
  const at::Tensor host = pinned({1000}, 3);
  x.copy_(host, true);  // job 2 is stuck, and the call returns
  CHECK(eventually_pending("soft:0 stream 'compute': copy to device runs, 0 wait"));
  soft.set("");
  CHECK(x.cpu().eq(3).all().item<bool>());
}

TEST_CASE("a copy takes the time of its link") {
  const Soft soft("in_rate=1e6;out_rate=1e7");
  const at::Tensor x = on_soft({10000}), host = pinned({10000}, 1);
  c10::Event begin(kSoft.type(), c10::EventFlag::BACKEND_DEFAULT);
  c10::Event middle(kSoft.type(), c10::EventFlag::BACKEND_DEFAULT);
  c10::Event end(kSoft.type(), c10::EventFlag::BACKEND_DEFAULT);
  begin.record(soft.compute());
  x.copy_(host, true);
  middle.record(soft.compute());
  host.copy_(x, true);
  end.record(soft.compute());
  end.synchronize();
  CHECK(begin.elapsedTime(middle) >= 40);  // 40000 bytes, in ms
  CHECK(middle.elapsedTime(end) >= 4);
}

TEST_CASE("bytes, copies and jobs are counted") {
  const Soft soft;
  const at::Tensor host = pinned({1000}, 1);
  {
    const c10::StreamGuard on_in(soft.in());
    const at::Tensor x = on_soft({1000});
    x.copy_(host, true);
    x.mul_(2);
    host.copy_(x.narrow(0, 0, 10).expand({100, 10}).reshape({1000}), true);
    soft.synchronize();
  }
  const SluiceSoftAcceleratorCounters counters = soft.counters();
  CHECK(counters.in_bytes == 4000);
  CHECK(counters.in_copies == 1);
  CHECK(counters.out_bytes == 4000);
  CHECK(counters.out_copies == 1);
  CHECK(counters.jobs == 4);
  CHECK(sluice_soft_accelerator_stream_jobs(0, 1) == 4);
  CHECK(sluice_soft_accelerator_stream_jobs(0, 0) == 0);
  CHECK(sluice_soft_accelerator_stream_jobs(0, 99) == -1);
  CHECK(counters.peak_bytes == 2 * 4096);
}

TEST_CASE("the allocation that the settings name fails") {
  const Soft soft("fault=oom@2");
  const at::Tensor first = on_soft({10});
  CHECK_THAT(thrown([] { on_soft({10}); }), Contains("out of memory") && Contains("settings"));
  CHECK(on_soft({10}).defined());
}

TEST_CASE("the copy that the settings name fails at the next synchronize") {
  const Soft soft("fault=copy@2");
  const at::Tensor x = on_soft({10}), host = pinned({10}, 1);
  x.copy_(host, true);
  x.copy_(host, true);
  CHECK_THAT(thrown([&] { soft.synchronize(); }),
             Contains("stream 'compute', copy to device: copy 2 of soft:0 (copy to device, 40 "
                      "bytes) failed"));
  soft.synchronize();
}

TEST_CASE("a lost device says so at each later call") {
  const Soft soft("fault=lost@2/device0");
  const at::Tensor x = at::full({10}, 1.0, at::TensorOptions(kSoft));
  x.add_(1);
  CHECK_THAT(thrown([&] { soft.synchronize(); }), Contains("device soft:0 is lost"));
  CHECK_THAT(thrown([&] { x.add_(1); }), Contains("device soft:0 is lost"));
  CHECK_THAT(thrown([&] { on_soft({10}); }), Contains("device soft:0 is lost"));
  const at::Tensor other = at::full({10}, 1.0, at::TensorOptions("soft:1"));
  CHECK(other.cpu().eq(1).all().item<bool>());
}

TEST_CASE("a stuck stream can be named, and what waits for it") {
  const Soft soft("fault=stuck@1");
  const at::Tensor host = pinned({10}, 1), x = on_soft({10});
  {
    const c10::StreamGuard on_in(soft.in());
    use_on(x, soft.in());
    x.copy_(host, true);
  }
  c10::Event fetched(kSoft.type());
  fetched.record(soft.in());
  fetched.block(soft.compute());
  x.add_(1);
  CHECK(eventually_pending("soft:0 stream 'in': copy to device runs, 1 wait: event\n"));
  CHECK(eventually_pending("soft:0 stream 'compute': wait for an event runs, 1 wait: aten::add"));
  CHECK_FALSE(fetched.query());
  soft.set("");
  CHECK(x.cpu().eq(2).all().item<bool>());
}

TEST_CASE("a kernel's own error comes at the next synchronize") {
  const Soft soft;
  const at::Tensor x = at::full({10}, 1.0, at::TensorOptions(kSoft));
  const at::Tensor wrong = at::full({3}, 100, at::TensorOptions(kSoft).dtype(at::kLong));
  const at::Tensor chosen = x.index_select(0, wrong);
  CHECK_THAT(thrown([&] { soft.synchronize(); }),
             Contains("stream 'compute', aten::index_select: index out of range"));
}

TEST_CASE("devices copy to each other in order") {
  const Soft soft("delay_us=500");
  const at::Tensor x = at::full({1000}, 1.0, at::TensorOptions("soft:0"));
  x.add_(1);
  const at::Tensor y = x.to("soft:1");
  y.add_(1);
  CHECK(y.cpu().eq(3).all().item<bool>());
}

TEST_CASE("a setting that is not known is refused with the nearest one") {
  const Soft soft;
  const auto said = [](const char* settings) {
    const char* const text = sluice_soft_accelerator_set(settings);
    return std::string(text == nullptr ? "" : text);
  };
  CHECK_THAT(said("cpa=1MiB"), Contains("there is no key 'cpa' (did you mean 'cap'?)"));
  CHECK_THAT(said("cap=1MB"), Contains("cap='1MB' is no number"));
  CHECK_THAT(said("fault=ooom@1"), Contains("there is no fault 'ooom' (did you mean 'oom'?)"));
  CHECK_THAT(said("fault=oom"), Contains("has no @EVENT"));
  CHECK_THAT(said("seed=1;seed=2"), Contains("seed is there twice"));
  CHECK(said("seed=7; delay_us=0 ;cap=256MiB;in_rate=2e9;fault=oom@1000;fault=copy@99") == "");
}

}  // namespace
}  // namespace sluice::soft_accelerator
