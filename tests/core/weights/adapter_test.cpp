// Adapters in PEFT's layout: those that PEFT has written (tests/fixtures), and what is refused.

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "core/weights/adapter_checkpoint.h"
#include "core/weights/adapter_config.h"
#include "core/weights/merged_weights.h"
#include "core/weights/model_folder.h"
#include "tests/core/weights/weights_files.h"
#include "tests/test_folder.h"

namespace sluice::weights {
namespace {

using Catch::Contains;
using nlohmann::json;

std::string folder_of(const std::string& name) { return "tests/fixtures/" + name; }

model::ModelShape with_lora(const std::string& name, const model::LoraChoice& choice) {
  const auto shape = load_shape(folder_of(name));
  REQUIRE(shape.ok());
  const auto made = model::with_adapters(*shape, choice);
  INFO((made.ok() ? std::string() : made.error().message()));
  REQUIRE(made.ok());
  return *made;
}

std::string message_of(const auto& result) {
  return result.ok() ? std::string("read") : result.error().message();
}

// The llama's configuration with one field changed.
std::string field_refusal(const std::string& key, const json& value) {
  const TestFolder folder;
  json config = json::parse(read_bytes(folder_of("llama_lora/") + kAdapterConfigFile));
  config[key] = value;
  write_bytes(folder.file(kAdapterConfigFile), config.dump());
  return message_of(load_adapter_config(folder.path(), model::Family::llama));
}

TEST_CASE("adapters that PEFT has written are read") {
  const model::ModelShape llama =
      with_lora("llama", {.rank = 4, .alpha = 6, .targets = "q_proj,v_proj,down_proj"});
  const auto of_llama = AdapterCheckpoint::open(folder_of("llama_lora"), llama);
  INFO(message_of(of_llama));
  REQUIRE(of_llama.ok());
  CHECK(of_llama->description() == "12 tensors of F32");
  CHECK(of_llama->notes().empty());
  std::vector<float> values(static_cast<std::size_t>(llama.flat_layout().parameter_count));
  REQUIRE(of_llama->fill(0, values).ok());
  for (const model::TensorInfo& tensor : llama.flat_layout().tensors)
    CHECK(values[static_cast<std::size_t>(tensor.first)] != 0);

  const model::ModelShape bert =
      with_lora("bert", {.rank = 3, .alpha = 6, .targets = "query,value,dense"});
  const auto of_bert = AdapterCheckpoint::open(folder_of("bert_lora"), bert);
  INFO(message_of(of_bert));
  REQUIRE(of_bert.ok());
  REQUIRE(of_bert->notes().size() == 1);
  CHECK_THAT(of_bert->notes()[0], Contains("lora_dropout is 0.05"));

  const model::ModelShape t5 = with_lora("t5_v1_0", {.rank = 3, .alpha = 6, .targets = "q,v,wo"});
  const auto of_t5 = AdapterCheckpoint::open(folder_of("t5_v1_0_lora"), t5);
  INFO(message_of(of_t5));
  REQUIRE(of_t5.ok());
  CHECK(of_t5->description() == "32 tensors of F32");
}

TEST_CASE("a written configuration reads as the same adapters") {
  for (const std::string targets : {"q_proj,v_proj", "layers.1.mlp.*", "all-linear"}) {
    const model::ModelShape shape =
        with_lora("llama", {.rank = 2, .alpha = 3.5, .targets = targets});
    const TestFolder folder;
    write_bytes(folder.file(kAdapterConfigFile), adapter_config_text(shape, "/base"));
    const auto config = load_adapter_config(folder.path(), model::Family::llama);
    INFO(message_of(config));
    REQUIRE(config.ok());
    CHECK(config->base == "/base");
    CHECK(config->choice.alpha == 3.5);
    const auto again = model::with_adapters(shape, config->choice);
    REQUIRE(again.ok());
    CHECK(again->lora.modules == shape.lora.modules);
  }
}

TEST_CASE("an adapter of another arithmetic is refused by its field") {
  CHECK_THAT(field_refusal("use_dora", true), Contains("'use_dora' is true"));
  CHECK_THAT(field_refusal("rank_pattern", {{"q_proj", 8}}), Contains("'rank_pattern'"));
  CHECK_THAT(field_refusal("peft_type", "IA3"), Contains("peft_type"));
  CHECK_THAT(field_refusal("bias", "all"), Contains("bias"));
  CHECK_THAT(field_refusal("fan_in_fan_out", true), Contains("'fan_in_fan_out' is true"));
  CHECK_THAT(field_refusal("target_modules", ".*proj"), Contains("takes a list of names"));
  CHECK_THAT(field_refusal("lora_alpah", 3), Contains("lora_alpah"));
  CHECK(field_refusal("use_dora", false) == "read");
}

TEST_CASE("adapters that are not the run's are refused with what to set") {
  const auto opened = [](const model::LoraChoice& choice) {
    return message_of(AdapterCheckpoint::open(folder_of("llama_lora"), with_lora("llama", choice)));
  };
  CHECK_THAT(opened({.rank = 8, .alpha = 6, .targets = "q_proj,v_proj,down_proj"}),
             Contains("lora_rank=4, lora_alpha=6"));
  CHECK_THAT(opened({.rank = 4, .alpha = 6, .targets = "q_proj"}),
             Contains("lora_targets=") && Contains("down_proj"));
  CHECK_THAT(message_of(AdapterCheckpoint::open(folder_of("llama"),
                                                with_lora("llama", {.rank = 4, .alpha = 6}))),
             Contains("has no adapter_config.json"));
}

TEST_CASE("merged weights are W + scale B A, whichever part of them is asked for") {
  const model::ModelShape shape =
      with_lora("llama", {.rank = 4, .alpha = 6, .targets = "q_proj,v_proj,down_proj"});
  const auto adapters = AdapterCheckpoint::open(folder_of("llama_lora"), shape);
  REQUIRE(adapters.ok());
  std::vector<float> values(static_cast<std::size_t>(shape.flat_layout().parameter_count));
  REQUIRE(adapters->fill(0, values).ok());
  const auto base = open_checkpoint(folder_of("llama"), shape);
  REQUIRE((base.ok() && base->has_value()));
  const MergedWeights merged(shape, **base, values);
  const model::FlatLayout layout = shape.base_layout();
  std::vector<float> whole(static_cast<std::size_t>(layout.parameter_count)), plain = whole;
  REQUIRE(merged.fill(0, whole).ok());
  REQUIRE((*base)->fill(0, plain).ok());
  std::size_t changed = 0;
  for (std::size_t i = 0; i < whole.size(); ++i) changed += whole[i] != plain[i] ? 1 : 0;
  CHECK(changed == 2 * (16 * 16 + 8 * 16 + 16 * 24));
  // Row 3, column 5 of the second block's v_proj.
  const auto first_of = [](const model::FlatLayout& of, const std::string& name) {
    return std::ranges::find(of.tensors, name, &model::TensorInfo::name)->first;
  };
  const std::string name = "layers.1.self_attn.v_proj";
  const std::int64_t at = first_of(layout, name + ".weight") + 3 * 16 + 5;
  const std::int64_t a = first_of(shape.flat_layout(), name + ".lora_A.weight");
  const std::int64_t b = first_of(shape.flat_layout(), name + ".lora_B.weight");
  double wanted = plain[static_cast<std::size_t>(at)];
  for (std::int64_t r = 0; r < 4; ++r) {
    wanted += 1.5 * values[static_cast<std::size_t>(b + 3 * 4 + r)] *
              values[static_cast<std::size_t>(a + r * 16 + 5)];
  }
  CHECK(whole[static_cast<std::size_t>(at)] == Approx(wanted).epsilon(1e-6));
  std::vector<float> part(700);
  REQUIRE(merged.fill(1234, part).ok());
  CHECK(std::equal(part.begin(), part.end(), whole.begin() + 1234));
}

}  // namespace
}  // namespace sluice::weights
