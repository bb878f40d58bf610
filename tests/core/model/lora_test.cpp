// Which linear layers have an adapter, what is trained then, and what it costs.

#include "core/model/lora.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "core/model/compute_memory.h"
#include "core/model/flop.h"
#include "core/model/kept_bytes.h"

namespace sluice::model {
namespace {

ModelShape small_llama() {
  ModelShape shape{"llama", 12, 32, 4, 64, 97, Family::llama};
  shape.kv_heads = 2;
  shape.ffn = 48;
  return shape;
}

ModelShape small_bert() {
  ModelShape shape{"bert", 2, 32, 4, 24, 97, Family::bert};
  shape.masked_head = true;
  return shape;
}

ModelShape adapted(const ModelShape& shape, const std::string& targets, std::int64_t rank = 4) {
  const auto made = with_adapters(shape, {.rank = rank, .alpha = 8, .targets = targets});
  INFO((made.ok() ? std::string() : made.error().message()));
  REQUIRE(made.ok());
  return *made;
}

std::string refusal(const ModelShape& shape, const std::string& targets) {
  const auto made = with_adapters(shape, {.rank = 4, .alpha = 8, .targets = targets});
  return made.ok() ? std::string("made") : made.error().message();
}

TEST_CASE("by default a family has the adapters that PEFT gives it") {
  CHECK(adapted(small_llama(), "").lora.modules.size() == 24);
  CHECK(adapted(small_llama(), "").lora.modules[1] == "layers.0.self_attn.v_proj");
  const ModelShape gpt2{"gpt2", 2, 32, 4, 24, 97};
  CHECK(adapted(gpt2, "").lora.modules ==
        std::vector<std::string>{"h.0.attn.c_attn", "h.1.attn.c_attn"});
  CHECK(adapted(small_bert(), "").lora.modules.front() == "encoder.layer.0.attention.self.query");
}

TEST_CASE("targets are ends of names, and a star stands for anything") {
  CHECK(is_target("q_proj", "layers.0.self_attn.q_proj"));
  CHECK_FALSE(is_target("proj", "layers.0.self_attn.q_proj"));
  CHECK(is_target("*_proj", "layers.0.self_attn.q_proj"));
  CHECK(is_target("layers.1*.mlp.*", "layers.11.mlp.up_proj"));
  CHECK_FALSE(is_target("layers.1*.mlp.*", "layers.2.mlp.up_proj"));
  CHECK(adapted(small_llama(), "layers.1*.mlp.*, layers.0.self_attn.q_proj").lora.modules.size() ==
        1 + 3 * 3);
  CHECK(adapted(small_llama(), "all-linear").lora.modules.size() == 12 * 7);
  // The head's own, too, but no table.
  CHECK(adapted(small_bert(), "all-linear").lora.modules.size() == 2 * 6 + 1);
}

TEST_CASE("a target that no linear layer has is refused with the nearest one that is") {
  CHECK_THAT(refusal(small_llama(), "q_prj"),
             Catch::Contains("\"q_prj\" is the end of no linear layer's name of model llama") &&
                 Catch::Contains("did you mean 'q_proj'") && Catch::Contains("gate_proj"));
  CHECK_THAT(refusal(small_llama(), "q_proj,lm_head"),
             Catch::Contains("\"lm_head\" takes no adapter") && !Catch::Contains("did you mean"));
  CHECK_THAT(refusal(small_llama(), "q_proj,"), Catch::Contains("\"\""));
}

TEST_CASE("the adapters alone are the layout, each in the layer of its module") {
  const ModelShape shape = adapted(small_llama(), "layers.3.mlp.down_proj,layers.1.*.k_proj", 5);
  const FlatLayout layout = shape.flat_layout();
  REQUIRE(layout.layer_count() == 14);
  REQUIRE(layout.tensors.size() == 4);
  CHECK(layout.tensors[0].name == "layers.1.self_attn.k_proj.lora_A.weight");
  CHECK(layout.tensors[0].shape == std::vector<std::int64_t>{5, 32});
  CHECK(layout.tensors[1].shape == std::vector<std::int64_t>{16, 5});
  CHECK(index_of(layout.tensors[3].layer) == 4);
  CHECK(layout.layers[0].count == 0);
  CHECK(layout.layers[2].count == 5 * (32 + 16));
  CHECK(layout.parameter_count == 5 * (32 + 16) + 5 * (48 + 32));
  CHECK(index_of(first_trained_layer(shape)) == 2);
  CHECK(shape.base_layout().fingerprint() == small_llama().flat_layout().fingerprint());
}

TEST_CASE("A begins as torch's Linear does, and B at zero") {
  const FlatLayout layout = adapted(small_llama(), "down_proj", 64).flat_layout();
  std::vector<float> values(static_cast<std::size_t>(layout.parameter_count));
  fill_initial(layout, 3, 0, values);
  const double bound = 1 / std::sqrt(48.0);
  double squares = 0, largest = 0;
  const TensorInfo &a = layout.tensors[0], &b = layout.tensors[1];
  for (std::int64_t i = a.first; i < a.first + a.count; ++i) {
    squares += double{values[i]} * values[i];
    largest = std::max(largest, std::abs(double{values[i]}));
  }
  CHECK(largest <= bound);
  CHECK(largest > 0.99 * bound);
  CHECK(std::sqrt(squares / static_cast<double>(a.count)) ==
        Approx(bound / std::sqrt(3)).epsilon(0.03));
  for (std::int64_t i = b.first; i < b.first + b.count; ++i) REQUIRE(values[i] == 0);
  std::vector<float> part(100);
  fill_initial(layout, 3, 17, part);
  CHECK(std::equal(part.begin(), part.end(), values.begin() + 17));
}

TEST_CASE("nothing is spent on gradients of the base, or below the lowest adapter") {
  const ModelShape shape = adapted(small_llama(), "layers.3.mlp.down_proj", 5);
  const ModelShape whole = small_llama();
  const auto forward = [&](const ModelShape& of, int layer) {
    return forward_flop(of, LayerId{layer}, 2, 16);
  };
  const auto backward = [&](const ModelShape& of, int layer) {
    return backward_flop(of, LayerId{layer}, 2, 16, Activations::keep);
  };
  CHECK(backward(shape, 3) == 0);
  CHECK(backward(shape, 0) == 0);
  const double adapter = 2.0 * 32 * 5 * (48 + 32);
  CHECK(forward(shape, 4) == forward(whole, 4) + adapter);
  const double products = 2.0 * 32 * (32 * 32 + 2 * 32 * 16 + 32 * 32 + 3 * 32 * 48);
  CHECK(backward(shape, 4) == backward(whole, 4) - products + 2 * adapter);
  CHECK(backward(shape, 13) == forward(shape, 13));  // the head's, for its input
  CHECK(kept_block_bytes(shape, LayerId{3}, 2, 16, Activations::offload, ParameterKind::bf16)
            .empty());
}

TEST_CASE("the memory plan counts the base, and no gradient of a table") {
  const ModelOptions options{.batch = 2, .sequence = 16};
  const ComputeMemory memory =
      compute_memory(adapted(small_llama(), "q_proj"), options, Products::as_they_are);
  CHECK(memory.base_bytes == 2 * small_llama().flat_layout().parameter_count);
  CHECK(memory.tied_gradient_bytes == 0);
  CHECK(compute_memory(small_llama(), options, Products::as_they_are).base_bytes == 0);
}

}  // namespace
}  // namespace sluice::model
