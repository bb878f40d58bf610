// Mistakes of order that a GPU only sometimes shows: each is found, whatever the threads did, and
// the same work with the missing line is right.

#include "tests/soft/accelerator/soft_fixture.h"

namespace sluice::soft_accelerator {
namespace {

using Catch::Contains;

// One layer of training: parameters in, a product, the gradient out, all named.
struct Step {
  explicit Step(const Soft& device) : soft(device) {
    sluice_soft_accelerator_name_block(host.data_ptr(), "host parameters");
    sluice_soft_accelerator_name_block(host_gradient.data_ptr(), "host gradient");
  }

  void fetch() {
    const c10::StreamGuard on_in(soft.in());
    parameters = on_soft({1000});
    sluice_soft_accelerator_name_block(parameters.data_ptr(), "parameters of layer 1");
    parameters.copy_(host, /*non_blocking=*/true);
    fetched.record(soft.in());
  }
  void compute() {
    gradient = parameters * 2;
    sluice_soft_accelerator_name_block(gradient.data_ptr(), "gradient of layer 1");
    computed.record(soft.compute());
  }
  void send() {
    const c10::StreamGuard on_out(soft.out());
    host_gradient.copy_(gradient, /*non_blocking=*/true);
    sent.record(soft.out());
  }
  const char* read_gradient() const {
    return sluice_soft_accelerator_host_access(host_gradient.data_ptr(), 4000, 0);
  }

  const Soft& soft;
  at::Tensor host = pinned({1000}, 3), host_gradient = pinned({1000}, 0);
  at::Tensor parameters, gradient;
  c10::Event fetched{kSoft.type()}, computed{kSoft.type()}, sent{kSoft.type()};
};

TEST_CASE("a step in order is right, with any delays") {
  for (const char* settings : {"", "seed=1;delay_us=500", "seed=2;delay_us=500", "in_rate=1e7"}) {
    const Soft soft(settings);
    Step step(soft);
    for (int i = 0; i < 3; ++i) {
      step.fetch();
      step.fetched.block(soft.compute());
      use_on(step.parameters, soft.compute());
      step.compute();
      step.parameters.reset();
      step.computed.block(soft.out());
      use_on(step.gradient, soft.out());
      step.send();
      step.gradient.reset();
      step.sent.synchronize();
      CHECK(step.read_gradient() == nullptr);
      CHECK(step.host_gradient.eq(6).all().item<bool>());
    }
    soft.synchronize();
    CHECK(soft.counters().used_bytes == 0);
  }
}

TEST_CASE("a product that does not wait for its parameters is found") {
  const Soft soft;
  Step step(soft);
  step.fetch();
  const std::string text = thrown([&] { step.compute(); });
  CHECK_THAT(text, Contains("stream 'compute' reads block"));
  CHECK_THAT(text, Contains("(4000 bytes, 'parameters of layer 1') that stream 'in' may still be "
                            "writing: no event orders them"));
  CHECK(text.find(soft.error()) == 0);  // kept, too
}

TEST_CASE("parameters that are freed under a product are found") {
  const Soft soft;
  Step step(soft);
  step.fetch();
  step.fetched.block(soft.compute());
  step.compute();
  step.parameters.reset();
  CHECK_THAT(thrown([&] { soft.synchronize(); }),
             Contains("'parameters of layer 1') is freed, and stream 'compute' may still be "
                      "reading it (aten::mul): no record_stream"));
}

TEST_CASE("a gradient that is sent before it is made is found") {
  const Soft soft;
  Step step(soft);
  step.fetch();
  step.fetched.block(soft.compute());
  step.compute();
  CHECK_THAT(thrown([&] { step.send(); }),
             Contains("stream 'out' reads block") &&
                 Contains("'gradient of layer 1') that stream 'compute' may still be writing"));
  CHECK(soft.error() != "");
  soft.synchronize();
}

TEST_CASE("a host that does not wait for a gradient is found") {
  const Soft soft;
  Step step(soft);
  step.fetch();
  step.fetched.block(soft.compute());
  step.compute();
  step.computed.block(soft.out());
  step.send();
  const char* const text = step.read_gradient();
  REQUIRE(text != nullptr);
  CHECK_THAT(text, Contains("the host reads pinned block") &&
                       Contains("'host gradient') that stream 'out' may still be writing: no "
                                "synchronize orders them"));
  CHECK(soft.error() != "");
  soft.synchronize();
  CHECK(step.read_gradient() == nullptr);
}

TEST_CASE("a gradient that is freed while it is sent is found") {
  const Soft soft;
  Step step(soft);
  step.fetch();
  step.fetched.block(soft.compute());
  step.compute();
  step.computed.block(soft.out());
  step.send();
  step.gradient.reset();
  CHECK_THAT(thrown([&] { soft.synchronize(); }),
             Contains("'gradient of layer 1') is freed, and stream 'out' may still be reading it"));
}

TEST_CASE("a write under a stream that reads is found, and one beside it is none") {
  const Soft soft;
  const at::Tensor x = at::full({1000}, 1.0, at::TensorOptions(kSoft));
  soft.synchronize();
  const at::Tensor sum = x.narrow(0, 0, 500) + 1;
  const c10::StreamGuard on_in(soft.in());
  x.narrow(0, 500, 500).fill_(2);
  CHECK_THAT(thrown([&] { x.narrow(0, 499, 1).fill_(2); }),
             Contains("stream 'in' writes block") &&
                 Contains("that stream 'compute' may still be reading"));
  CHECK(soft.error() != "");
  use_on(x, soft.in());
}

TEST_CASE("a host that overwrites what is being fetched is found") {
  const Soft soft;
  Step step(soft);
  step.fetch();
  const char* const text = sluice_soft_accelerator_host_access(step.host.data_ptr(), 4, 1);
  REQUIRE(text != nullptr);
  CHECK_THAT(text, Contains("the host writes pinned block") && Contains("may still be reading"));
  CHECK(soft.error() != "");
  REQUIRE(eventually([&] { return step.fetched.query(); }));  // a query that was true orders, too
  CHECK(sluice_soft_accelerator_host_access(step.host.data_ptr(), 4, 1) == nullptr);
}

}  // namespace
}  // namespace sluice::soft_accelerator
