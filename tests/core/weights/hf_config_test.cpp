#include "core/weights/hf_config.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/weights/model_folder.h"
#include "tests/core/weights/weights_files.h"

namespace sluice::weights {
namespace {

using Catch::Contains;
using nlohmann::json;

json fixture_config(const std::string& name) {
  return json::parse(read_bytes("tests/fixtures/" + name + "/config.json"));
}

Result<HuggingFaceConfig> parsed(const json& config) {
  return parse_config(config.dump(), "m/config.json", "m");
}

std::string refusal_of(const json& config) {
  const auto read = parsed(config);
  return read.ok() ? "read" : read.error().message();
}

json with(json config, const std::string& key, const json& value) {
  config[key] = value;
  return config;
}

std::map<std::string, std::string> values_of(const json& config) {
  const auto read = parsed(config);
  INFO((read.ok() ? "" : read.error().message()));
  REQUIRE(read.ok());
  std::map<std::string, std::string> values;
  for (auto& [key, value] : model::file_values(read->shape)) values[key] = value;
  return values;
}

const json kGpt2 = {{"model_type", "gpt2"}, {"n_layer", 12},
                    {"n_embd", 768},        {"n_head", 12},
                    {"n_positions", 1024},  {"n_ctx", 1024},
                    {"vocab_size", 50257},  {"n_inner", nullptr},
                    {"resid_pdrop", 0.1},   {"summary_type", "cls_index"}};

}  // namespace

TEST_CASE("configurations that transformers wrote are the models that they tell of") {
  auto llama = values_of(fixture_config("llama"));
  CHECK(llama["family"] == "llama");
  CHECK(llama["layers"] == "2");
  CHECK(llama["kv_heads"] == "2");
  CHECK(llama["ffn"] == "24");
  CHECK(llama["head_dim"] == "0");
  CHECK(llama["rope_theta"] == "10000");
  CHECK(llama["norm_eps"] == "1e-05");
  CHECK(llama["tied_tables"] == "false");
  CHECK(llama["qkv_bias"] == "false");
  auto qwen3 = values_of(fixture_config("qwen3"));
  CHECK(qwen3["head_dim"] == "8");
  CHECK(qwen3["rope_theta"] == "1000000");
  CHECK(qwen3["norm_eps"] == "1e-06");
  CHECK(qwen3["tied_tables"] == "true");
  CHECK(qwen3["qk_norm"] == "true");
  auto gpt2 = values_of(kGpt2);
  CHECK(gpt2["hidden"] == "768");
  CHECK(gpt2["sequence"] == "1024");
}

TEST_CASE("BERT's configuration is read, written, and held to what is trained") {
  const json bert = fixture_config("bert");
  auto values = values_of(bert);
  CHECK(values["family"] == "bert");
  CHECK(values["layers"] == "2");
  CHECK(values["ffn"] == "24");
  CHECK(values["segments"] == "2");
  CHECK(values["norm_eps"] == "1e-12");
  CHECK(values["masked_head"] == "true");
  const auto shape = parsed(bert)->shape;
  const auto text = config_text(shape, "float32");
  REQUIRE(text.ok());
  CHECK(values_of(json::parse(*text)) == values);
  const auto dropping = parsed(with(bert, "hidden_dropout_prob", 0.25))->shape;
  CHECK(dropping.dropout.rows == 0.25);
  CHECK(dropping.dropout.embedding == 0.25);
  CHECK(dropping.dropout.attention == 0);
  CHECK_THAT(*config_text(dropping, "float32"), Contains("\"hidden_dropout_prob\": 0.25"));
  const std::vector<std::pair<std::string, json>> others = {
      {"is_decoder", true},
      {"add_cross_attention", true},
      {"position_embedding_type", "relative_key"},
      {"hidden_act", "relu"},
      {"tie_word_embeddings", false},
      {"architectures", {"BertForTokenClassification"}}};
  for (const auto& [field, value] : others)
    CHECK_THAT(refusal_of(with(bert, field, value)), Contains("'" + field + "'"));
}

TEST_CASE("a BERT that classifies is read with its labels, and regression is refused") {
  const json bert = fixture_config("bert_classify");
  auto values = values_of(bert);
  CHECK(values["masked_head"] == "false");
  CHECK(values["classes"] == "3");
  CHECK(values["classifier_dropout"] == "0");
  const auto shape = parsed(bert)->shape;
  CHECK(shape.classifies());
  CHECK(model::check_trainable(shape).ok());
  const auto text = config_text(shape, "float32");
  REQUIRE(text.ok());
  CHECK(values_of(json::parse(*text)) == values);
  CHECK(json::parse(*text)["id2label"] == bert["id2label"]);
  CHECK(json::parse(*text)["label2id"] == bert["label2id"]);

  const json dropping = with(bert, "hidden_dropout_prob", 0.25);
  CHECK(parsed(dropping)->shape.dropout.output == 0.25);
  CHECK(parsed(with(dropping, "classifier_dropout", 0.5))->shape.dropout.output == 0.5);
  CHECK(values_of(with(with(bert, "id2label", nullptr), "num_labels", 7))["classes"] == "7");
  CHECK(values_of(with(with(bert, "id2label", nullptr), "problem_type", nullptr))["classes"] ==
        "2");
  CHECK_THAT(refusal_of(with(bert, "num_labels", 2)),
             Contains("'num_labels' is 2") && Contains("3 names"));
  CHECK_THAT(refusal_of(with(bert, "id2label", {{"0", "score"}})),
             Contains("one label") && Contains("regression"));
  for (const char* other : {"regression", "multi_label_classification"})
    CHECK_THAT(refusal_of(with(bert, "problem_type", other)), Contains("'problem_type'"));
}

TEST_CASE("T5's configurations of both versions are read, written, and held to what is trained") {
  const json first = fixture_config("t5_v1_0"), later = fixture_config("t5_v1_1");
  auto values = values_of(first);
  CHECK(values["family"] == "t5");
  CHECK(values["layers"] == "4");
  CHECK(values["encoder_layers"] == "2");
  CHECK(values["head_dim"] == "8");
  CHECK(values["sequence"] == "512");
  CHECK(values["buckets"] == "8");
  CHECK(values["bucket_distance"] == "16");
  CHECK(values["end_token"] == "1");
  CHECK(values["gated_mlp"] == "false");
  CHECK(values["tied_tables"] == "true");
  values = values_of(later);
  CHECK(values["layers"] == "3");
  CHECK(values["gated_mlp"] == "true");
  CHECK(values["tied_tables"] == "false");
  // What transformers 5 writes of a version 1.1.
  CHECK(values_of(with(with(later, "tie_word_embeddings", true), "scale_decoder_outputs", false)) ==
        values);
  for (const json& config : {first, later}) {
    const auto text = config_text(parsed(config)->shape, "float32");
    REQUIRE(text.ok());
    CHECK(values_of(json::parse(*text)) == values_of(config));
  }
  CHECK(parsed(with(first, "dropout_rate", 0.2))->shape.dropout.output == 0.2);
  const std::vector<std::pair<std::string, json>> others = {{"is_decoder", true},
                                                            {"is_encoder_decoder", false},
                                                            {"tie_word_embeddings", false},
                                                            {"relative_attention_bias", true},
                                                            {"architectures", {"T5EncoderModel"}}};
  for (const auto& [field, value] : others)
    CHECK_THAT(refusal_of(with(first, field, value)), Contains("'" + field + "'"));
  for (const char* field : {"dense_act_fn", "feed_forward_proj"}) {
    json other = first;
    other.erase("dense_act_fn");
    CHECK_THAT(refusal_of(with(other, field, "gated-silu")), Contains("'feed_forward_proj'"));
  }
}

TEST_CASE("stretched rotary positions, windows and biases are read as transformers has them") {
  auto llama3 = values_of(fixture_config("llama3_rope"));
  CHECK(llama3["rope_scaling"] == "llama3");
  CHECK(llama3["rope_theta"] == "100");
  CHECK(llama3["rope_factor"] == "8");
  CHECK(llama3["rope_original_sequence"] == "32");
  CHECK(llama3["rope_low_frequency"] == "1");
  CHECK(llama3["rope_high_frequency"] == "4");
  CHECK(llama3["head_dim"] == "16");
  auto yarn = values_of(fixture_config("qwen3_yarn"));
  CHECK(yarn["rope_scaling"] == "yarn");
  CHECK(yarn["rope_factor"] == "4");
  CHECK(yarn["rope_original_sequence"] == "32");
  CHECK(yarn["rope_beta_fast"] == "32");
  CHECK(yarn["rope_attention_factor"] == "0");
  auto bias = values_of(fixture_config("llama_bias"));
  for (const char* key : {"qkv_bias", "o_bias", "mlp_bias"}) CHECK(bias[key] == "true");
  auto window = values_of(fixture_config("qwen2_window"));
  CHECK(window["window"] == "5");
  CHECK(window["first_window_block"] == "1");
  CHECK(window["qkv_bias"] == "true");
  CHECK(window["o_bias"] == "false");
}

TEST_CASE(
    "a window is that of layer_types where they are said, and of the class's rule where not") {
  json config = fixture_config("qwen2_window");
  config.erase("layer_types");
  CHECK(values_of(config)["first_window_block"] == "1");
  config["max_window_layers"] = 0;
  CHECK(values_of(config)["first_window_block"] == "0");
  CHECK(values_of(config)["window"] == "5");
  config["max_window_layers"] = 28;
  CHECK(values_of(config)["window"] == "0");
  config["layer_types"] = {"sliding_attention", "full_attention"};
  CHECK_THAT(refusal_of(config), Contains("full_attention in layer 1, behind"));
  config["use_sliding_window"] = false;
  config["layer_types"] = {"full_attention", "sliding_attention"};
  CHECK_THAT(refusal_of(config), Contains("there is no sliding_window"));
}

TEST_CASE("yarn's factor on queries and keys follows from mscale where it is said by that") {
  json config = fixture_config("qwen3_yarn");
  config["rope_parameters"]["mscale"] = 2.0;
  config["rope_parameters"]["mscale_all_dim"] = 1.0;
  const double factor = std::stod(values_of(config)["rope_attention_factor"]);
  CHECK(factor == Approx((0.2 * std::log(4.0) + 1) / (0.1 * std::log(4.0) + 1)));
  config["rope_parameters"]["attention_factor"] = 1.5;
  CHECK(values_of(config)["rope_attention_factor"] == "1.5");
  config["rope_parameters"]["truncate"] = false;
  CHECK_THAT(refusal_of(config), Contains("'truncate' is false"));
}

TEST_CASE("version 4's rotary fields are those of version 5") {
  json config = fixture_config("qwen3");
  config.erase("rope_parameters");
  config["rope_theta"] = 1e6;
  config["rope_scaling"] = nullptr;
  CHECK(values_of(config) == values_of(fixture_config("qwen3")));
  config["rope_scaling"] = {{"type", "default"}};
  CHECK(values_of(config) == values_of(fixture_config("qwen3")));
  config["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", 1e6}};
  CHECK_THAT(refusal_of(config), Contains("both rope_parameters and rope_scaling"));
  config.erase("rope_scaling");
  config["rope_theta"] = 5e5;
  CHECK_THAT(refusal_of(config), Contains("1000000 here and 500000 on top"));
}

TEST_CASE("what a class has when its field is left out is what transformers has") {
  json config = fixture_config("qwen3");
  config.erase("head_dim");
  CHECK(values_of(config)["head_dim"] == "128");
  config = fixture_config("llama");
  config.erase("head_dim");
  config.erase("num_key_value_heads");
  config.erase("rms_norm_eps");
  auto values = values_of(config);
  CHECK(values["head_dim"] == "0");
  CHECK(values["kv_heads"] == "4");
  CHECK(values["norm_eps"] == "1e-06");
  config.erase("hidden_size");
  CHECK_THAT(refusal_of(config), Contains("'hidden_size' is missing"));
}

TEST_CASE("configurations as the hub has them are read, with all that stands in them") {
  const json smollm2 = json::parse(R"({"architectures": ["LlamaForCausalLM"],
    "attention_bias": false, "attention_dropout": 0.0, "bos_token_id": 0, "eos_token_id": 0,
    "hidden_act": "silu", "hidden_size": 576, "initializer_range": 0.041666666666666664,
    "intermediate_size": 1536, "is_llama_config": true, "max_position_embeddings": 8192,
    "model_type": "llama", "num_attention_heads": 9, "num_hidden_layers": 30,
    "num_key_value_heads": 3, "pretraining_tp": 1, "rms_norm_eps": 1e-05,
    "rope_interleaved": false, "rope_scaling": null, "rope_theta": 100000,
    "tie_word_embeddings": true, "torch_dtype": "bfloat16", "transformers_version": "4.40.1",
    "use_cache": true, "vocab_size": 49152})");
  const auto read = parsed(smollm2);
  REQUIRE(read.ok());
  CHECK(read->shape.flat_layout().parameter_count == 134'515'008);
  CHECK(parsed(with(smollm2, "_model_name_or_path", "what a converter called it")).ok());
  const json qwen2 = json::parse(R"({"architectures": ["Qwen2ForCausalLM"],
    "attention_dropout": 0.0, "bos_token_id": 151643, "eos_token_id": 151643,
    "hidden_act": "silu", "hidden_size": 896, "initializer_range": 0.02,
    "intermediate_size": 4864, "max_position_embeddings": 32768, "max_window_layers": 24,
    "model_type": "qwen2", "num_attention_heads": 14, "num_hidden_layers": 24,
    "num_key_value_heads": 2, "rms_norm_eps": 1e-06, "rope_theta": 1000000.0,
    "sliding_window": 32768, "tie_word_embeddings": true, "torch_dtype": "bfloat16",
    "transformers_version": "4.40.1", "use_cache": true, "use_mrope": false,
    "use_sliding_window": false, "vocab_size": 151936})");
  CHECK(parsed(qwen2)->shape.flat_layout().parameter_count == 494'032'768);
}

TEST_CASE("a field that changes the arithmetic is refused by its name") {
  const json llama = fixture_config("llama");
  const json qwen3 = fixture_config("qwen3");
  struct Case {
    json config;
    const char* said;
  };
  const std::vector<Case> cases = {
      {with(llama, "hidden_act", "gelu"), "'hidden_act' is \"gelu\""},
      {with(llama, "pretraining_tp", 2), "'pretraining_tp' is 2"},
      {with(llama, "sliding_window", 8), "'sliding_window' is 8"},
      {with(llama, "partial_rotary_factor", 0.5), "'partial_rotary_factor' is 0.5"},
      {with(llama, "quantization_config", json{{"bits", 4}}), "quantization_config"},
      {with(llama, "architectures", {"LlamaForSequenceClassification"}), "'architectures'"},
      {with(llama, "rms_norm_epss", 1e-5), "did you mean 'rms_norm_eps'"},
      {with(llama, "logit_scale", 2.0), "nothing is known of this field"},
      {with(llama, "num_hidden_layers", 0), "'num_hidden_layers' is 0"},
      {with(llama, "num_hidden_layers", 2.5), "'num_hidden_layers' is 2.5"},
      {with(llama, "num_attention_heads", 3), "'heads'"},
      {with(llama, "tie_word_embeddings", "yes"), "takes true or false"},
      {with(llama, "model_type", "t5"), "'architectures'"},
      {with(llama, "model_type", "mt5"), "model_type 'mt5' is not trained (did you mean 't5'?)"},
      {with(llama, "model_type", "lama"), "did you mean 'llama'"},
      {with(llama, "rope_parameters", {{"rope_type", "dynamic"}, {"factor", 2}}),
       "rope_type 'dynamic' is not trained"},
      {with(llama, "rope_parameters", {{"rope_type", "default"}, {"mrope_section", {1}}}),
       "'mrope_section'"},
      {with(qwen3, "layer_types", {"full_attention", "linear_attention"}), "\"linear_attention\""},
      {with(qwen3, "layer_types", {"full_attention"}), "not one type for each of 2 layers"},
      {with(kGpt2, "n_inner", 100), "'n_inner' is 100"},
      {with(kGpt2, "activation_function", "relu"), "'activation_function' is \"relu\""},
      {with(kGpt2, "layer_norm_epsilon", 1e-6), "'layer_norm_epsilon'"},
      {with(kGpt2, "scale_attn_by_inverse_layer_idx", true), "inverse_layer_idx"},
      {with(kGpt2, "tie_word_embeddings", false), "'tie_word_embeddings' is false"},
  };
  for (const Case& of : cases) CHECK_THAT(refusal_of(of.config), Contains(of.said));
}

TEST_CASE("dropout is read, and noted where training does not do it; harmless fields are not") {
  const auto gpt2 = parsed(with(kGpt2, "resid_pdrop", 0.2));
  REQUIRE(gpt2.ok());
  CHECK(gpt2->notes.empty());
  CHECK(gpt2->shape.dropout.rows == 0.2);
  // What is left out is 0.1, as the class has it.
  json without = kGpt2;
  without.erase("resid_pdrop");
  CHECK(parsed(without)->shape.dropout.rows == 0.1);
  const auto noted = parsed(with(fixture_config("llama"), "attention_dropout", 0.1));
  REQUIRE(noted->notes.size() == 1);
  CHECK_THAT(noted->notes.front(), Contains("attention_dropout is 0.1"));
  const auto llama = parsed(with(fixture_config("llama"), "torch_dtype", "bfloat16"));
  REQUIRE(llama.ok());
  CHECK(llama->notes.empty());
}

TEST_CASE("a configuration that is written for a shape reads as that shape") {
  std::vector<json> configs = {kGpt2, fixture_config("llama"), fixture_config("qwen3")};
  for (const char* name : {"llama3_rope", "qwen3_yarn", "llama_bias", "qwen2_window"}) {
    configs.push_back(fixture_config(name));
  }
  json mistral = fixture_config("llama");
  for (const char* key : {"attention_bias", "mlp_bias", "pretraining_tp"}) mistral.erase(key);
  mistral["model_type"] = "mistral";
  mistral["architectures"] = {"MistralForCausalLM"};
  mistral["sliding_window"] = nullptr;
  configs.push_back(mistral);
  mistral["sliding_window"] = 7;
  configs.push_back(mistral);
  for (const json& config : configs) {
    INFO(config["model_type"]);
    const auto read = parsed(config);
    INFO((read.ok() ? "" : read.error().message()));
    REQUIRE(read.ok());
    const auto text = config_text(read->shape, "float32");
    REQUIRE(text.ok());
    const auto again = parse_config(*text, "m/config.json", "m");
    INFO((again.ok() ? "" : again.error().message()));
    REQUIRE(again.ok());
    CHECK(model::file_values(again->shape) == model::file_values(read->shape));
  }
}

TEST_CASE("a model file that is written for a shape parses to it, whatever its name") {
  auto read = parsed(fixture_config("qwen3"));
  REQUIRE(read.ok());
  for (const char* name : {"true", "12", "a \"b\" \\ c\n", "grün"}) {
    read->shape.name = name;
    const auto values = model::file_values(read->shape);
    const auto again = model::parse_model_shape(model::model_file_text(values), "m.toml");
    INFO((again.ok() ? "" : again.error().message()));
    REQUIRE(again.ok());
    CHECK(model::file_values(*again) == values);
  }
}

}  // namespace sluice::weights
