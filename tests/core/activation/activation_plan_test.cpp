// What of the activations leaves, how much of it, and where to.

#include "core/activation/activation_plan.h"

#include <catch2/catch.hpp>

#include "base/units.h"

using namespace sluice;
using activation::ActivationPlan;
using model::Activations;

namespace {

const model::ModelShape kShape{"small", 4, 64, 2, 32, 256};

ActivationPlan plan(const model::LayerActivations& activations, std::int64_t buffer_bytes = 0,
                    std::int64_t host_bytes = 0) {
  return activation::plan_activations(kShape, ParameterKind::bf16, activations, 4, 32, 3,
                                      buffer_bytes, host_bytes);
}

}  // namespace

TEST_CASE("a plan that keeps or recomputes everything moves nothing") {
  CHECK_FALSE(plan(Activations::keep).offloads_anything());
  CHECK_FALSE(plan(Activations::recompute).offloads_anything());
  CHECK(activation::drive_bytes(plan(Activations::keep), 2)[DeviceId{1}] == 0);
}

TEST_CASE("each layer leaves as it is said, and the embedding keeps nothing") {
  auto mix = model::LayerActivations::parse("offload:0-1,recompute:2,offload_inputs:3,keep");
  REQUIRE(mix.ok());
  const ActivationPlan mixed = plan(*mix);
  REQUIRE(std::ssize(mixed.layer_blocks) == 6);
  CHECK(mixed.layer_bytes(LayerId{0}) == 0);
  CHECK(mixed.layer_bytes(LayerId{1}) > mixed.layer_bytes(LayerId{3}));
  CHECK(mixed.layer_bytes(LayerId{2}) == 0);
  CHECK(mixed.layer_bytes(LayerId{3}) == 4 * 32 * 64 * 2);
  CHECK(mixed.layer_bytes(LayerId{4}) == 0);
  CHECK(mixed.buffer_bytes == 2 * mixed.layer_bytes(LayerId{1}));
  CHECK(plan(*mix, 12345).buffer_bytes == 12345);
}

TEST_CASE("what fits into the buffer that was asked for stays") {
  const std::int64_t all = plan(Activations::offload).step_bytes();
  CHECK_FALSE(plan(Activations::offload).stays);
  CHECK_FALSE(plan(Activations::offload, all - 1).stays);
  const ActivationPlan fits = plan(Activations::offload, all);
  CHECK(fits.stays);
  CHECK(fits.offloads_anything());
  CHECK(activation::drive_bytes(fits, 2)[DeviceId{0}] == 0);
}

TEST_CASE("a step's blocks fill the drives evenly, in whole pages, each in a place of its own") {
  activation::BlockPlaces places(2);
  const auto first = places.next(1);
  const auto second = places.next(3 * kPageBytes);
  const auto third = places.next(1);
  CHECK(first.device == DeviceId{0});
  CHECK(second.device == DeviceId{1});
  CHECK(third.device == DeviceId{0});
  CHECK(third.offset_bytes == kPageBytes);
  places.begin_step();
  CHECK(places.next(1).offset_bytes == 0);
  const auto bytes = activation::drive_bytes(plan(Activations::offload), 2);
  CHECK(bytes[DeviceId{0}] > 0);
  CHECK(bytes[DeviceId{0}] % kPageBytes == 0);
  CHECK(bytes[DeviceId{1}] > bytes[DeviceId{0}] / 2);
}

TEST_CASE("host memory takes what backward needs first, up to so much, and drives the rest") {
  const ActivationPlan without = plan(Activations::offload);
  CHECK(without.host_bytes() == 0);
  const std::int64_t head = without.layer_bytes(LayerId{5});
  const std::int64_t block = without.layer_bytes(LayerId{4});
  // The head of three micro-batches, the last block of two, and no room for a third.
  const ActivationPlan some = plan(Activations::offload, 0, 3 * head + 3 * block - 1);
  CHECK(some.is_in_host(LayerId{5}, 2));
  CHECK(some.is_in_host(LayerId{4}, 1));
  CHECK_FALSE(some.is_in_host(LayerId{4}, 2));
  CHECK_FALSE(some.is_in_host(LayerId{3}, 0));
  CHECK(some.host_bytes() == 3 * head + 2 * block);
  CHECK(some.step_bytes() == without.step_bytes());
  const auto drive = [](const ActivationPlan& of) {
    return activation::drive_bytes(of, 1)[DeviceId{0}];
  };
  CHECK(drive(some) < drive(without));
  const ActivationPlan all = plan(Activations::offload, 0, without.step_bytes());
  CHECK(all.host_bytes() == without.step_bytes());
  CHECK(drive(all) == 0);
  CHECK_FALSE(all.stays);
}

TEST_CASE("what layers keep is said by layer, alike ones together") {
  auto mix = model::LayerActivations::parse("offload:1-2,recompute:3,keep");
  REQUIRE(mix.ok());
  const ActivationPlan mixed = plan(*mix);
  CHECK(mixed.layer_staying_bytes(LayerId{0}) == 0);
  CHECK(mixed.layer_staying_bytes(LayerId{1}) == 0);
  CHECK(mixed.layer_staying_bytes(LayerId{3}) == 4 * 32 * 64 * 2);
  CHECK(mixed.layer_staying_bytes(LayerId{4}) == mixed.layer_bytes(LayerId{1}));
  const std::string block = format_bytes(mixed.layer_bytes(LayerId{1}));
  CHECK(activation::layers_text(mixed, *mix) ==
        "0: nothing; 1 to 2: offload, " + block + " a micro-batch each; 3: recompute, " +
            format_bytes(4 * 32 * 64 * 2) + " a micro-batch; 4: keep, " + block +
            " a micro-batch; 5: keep, " + format_bytes(mixed.layer_staying_bytes(LayerId{5})) +
            " a micro-batch");
}
