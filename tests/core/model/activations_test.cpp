// The choice for each layer, as people write it.

#include "core/model/activations.h"

#include <catch2/catch.hpp>

using namespace sluice;
using model::Activations;
using model::LayerActivations;

TEST_CASE("a word is for all layers, and a mix says which layers a word is for") {
  using enum Activations;
  const auto all = LayerActivations::parse("offload");
  REQUIRE(all.ok());
  CHECK(*all == LayerActivations(offload));
  CHECK(all->of(LayerId{12}) == offload);
  const auto mix = LayerActivations::parse("offload:1-3, recompute:4,offload_inputs:6-7,recompute");
  REQUIRE(mix.ok());
  CHECK(mix->of(LayerId{0}) == recompute);
  CHECK(mix->of(LayerId{1}) == offload);
  CHECK(mix->of(LayerId{3}) == offload);
  CHECK(mix->of(LayerId{4}) == recompute);
  CHECK(mix->of(LayerId{7}) == offload_inputs);
  const auto open = LayerActivations::parse("recompute:2");
  REQUIRE(open.ok());
  CHECK(open->of(LayerId{1}) == keep);
}

TEST_CASE("the text of a choice is read back as the same") {
  for (const char* text : {"keep", "recompute", "offload_inputs", "offload:0-3,recompute:4-7,keep",
                           "offload:5,offload_inputs"}) {
    const auto parsed = LayerActivations::parse(text);
    REQUIRE(parsed.ok());
    CHECK(parsed->text() == text);
  }
}

TEST_CASE("what is no choice is refused with what is wrong about it") {
  const auto refused = [](const char* text) {
    const auto parsed = LayerActivations::parse(text);
    REQUIRE_FALSE(parsed.ok());
    CHECK(parsed.error().code() == ErrorCode::config);
    return std::string(parsed.error().message());
  };
  using Catch::Contains;
  CHECK_THAT(refused("recmpute"), Contains("keep, recompute") && Contains("did you mean"));
  CHECK_THAT(refused(""), Contains("\"\" is not one of"));
  CHECK_THAT(refused("offload:"), Contains("neither a layer nor a range"));
  CHECK_THAT(refused("offload:3-1,keep"), Contains("\"3-1\""));
  CHECK_THAT(refused("offload:1-x"), Contains("\"1-x\""));
  CHECK_THAT(refused("offload:1-3,keep:3-4"), Contains("layer 3 is named twice"));
  CHECK_THAT(refused("keep,offload:1"), Contains("comes last"));
  CHECK_THAT(refused("keep,"), Contains("comes last"));
}

TEST_CASE("a layer that a model does not have is refused") {
  const auto mix = LayerActivations::parse("offload:2-9,keep");
  REQUIRE(mix.ok());
  CHECK(mix->check(10).ok());
  const Status status = mix->check(9);
  REQUIRE_FALSE(status.ok());
  CHECK_THAT(status.error().message(), Catch::Contains("there is no layer 9"));
}
