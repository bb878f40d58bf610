// The operations of each checkpoint's model against torch's own count (tests/fixtures/flop.json).

#include "core/model/flop.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "core/model/architecture.h"
#include "core/weights/model_folder.h"
#include "tests/core/weights/weights_files.h"

namespace sluice::weights {
namespace {

using model::Activations;
using model::ModelShape;

constexpr std::int64_t kBatch = 3;
constexpr std::int64_t kSequence = 60;

ModelShape shape_of(const std::string& name) {
  if (name == "gpt2") return {"gpt2", 2, 64, 4, 64, 211};
  const auto shape = load_shape("tests/fixtures/" + name);
  REQUIRE(shape.ok());
  return *shape;
}

struct Flop {
  double forward = 0;
  double backward = 0;
};

Flop flop_of(const ModelShape& shape, Activations activations) {
  Flop sum;
  for (std::int32_t l = 0; l < shape.layers + 2; ++l) {
    sum.forward += model::forward_flop(shape, LayerId{l}, kBatch, kSequence);
    sum.backward += model::backward_flop(shape, LayerId{l}, kBatch, kSequence, activations);
  }
  return sum;
}

// The pairs behind a token, which it does not look at, and which torch counts.
double hidden_pairs(const ModelShape& shape) {
  double flop = 0;
  for (std::int32_t l = 1; l <= shape.layers; ++l) {
    const auto layer = LayerId{l};
    const bool is_decoder = shape.has_decoder() && l > shape.stacks.encoder_layers;
    const auto length =
        static_cast<double>(is_decoder ? shape.target_sequence(kSequence) : kSequence);
    for (const model::Attention& attention : model::layer_kind(shape, layer).attentions(shape)) {
      if (!attention.looks_back_only) continue;
      flop += 2 * kBatch * length * length * static_cast<double>(attention.width);
    }
  }
  return flop;
}

TEST_CASE("each family's operations are those that torch counts, within 2 %") {
  const auto counted = nlohmann::json::parse(read_bytes("tests/fixtures/flop.json"));
  REQUIRE(counted.size() >= 10);
  for (const auto& [name, flop] : counted.items()) {
    INFO(name);
    const ModelShape shape = shape_of(name);
    const double hidden = hidden_pairs(shape);
    const Flop kept = flop_of(shape, Activations::keep);
    CHECK(kept.forward + hidden == Approx(flop["forward"].get<double>()).epsilon(0.02));
    CHECK(kept.backward + 2 * hidden == Approx(flop["backward"].get<double>()).epsilon(0.02));
    // Blocks go forward once more; what is kept and leaves does not.
    const Flop recomputed = flop_of(shape, Activations::recompute);
    const double head = model::forward_flop(
        shape, LayerId{static_cast<std::int32_t>(shape.layers) + 1}, kBatch, kSequence);
    CHECK(recomputed.backward == Approx(kept.backward + kept.forward - head).epsilon(1e-9));
    CHECK(flop_of(shape, Activations::offload).backward == kept.backward);
  }
}

}  // namespace
}  // namespace sluice::weights
