#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "core/model/model_shape.h"

namespace sluice::model {
namespace {

using Catch::Matchers::Contains;
namespace fs = std::filesystem;

// Loads a model file of the given lines.
Result<ModelShape> load(const std::string& text) {
  const fs::path path = fs::temp_directory_path() / fmt::format("sluice-shape-{}.toml", ::getpid());
  std::ofstream(path) << text;
  Result<ModelShape> shape = load_model_shape(path.string());
  fs::remove(path);
  return shape;
}

const std::string kGood =
    "layers = 2\nhidden = 12\nheads = 3\nsequence = 16\nvocabulary = 256\nname = \"x\"\n";

const std::string kVit =
    "family = \"vit\"\nlayers = 2\nhidden = 12\nheads = 3\nimage = 32\npatch = 8\nchannels = 3\n"
    "classes = 10\n";

const std::string kLlama =
    "family = \"llama\"\nlayers = 2\nhidden = 16\nheads = 4\nkv_heads = 2\nffn = 20\n"
    "sequence = 16\nvocabulary = 256\nname = \"x\"\n";

std::string replaced(const std::string& from, const std::string& to, std::string text = kGood) {
  return text.replace(text.find(from), from.size(), to);
}

TEST_CASE("a model file gives a shape") {
  const Result<ModelShape> shape = load(kGood);
  REQUIRE(shape.ok());
  CHECK(shape->name == "x");
  CHECK(shape->layers == 2);
  CHECK(shape->hidden == 12);
  CHECK(shape->heads == 3);
  CHECK(shape->sequence == 16);
  CHECK(shape->vocabulary == 256);
  CHECK(shape->family == Family::gpt2);
}

TEST_CASE("a model file may name its family") {
  for (const std::string name : {"gpt2", "bert", "bloom"}) {
    const Result<ModelShape> shape = load(kGood + fmt::format("family = \"{}\"\n", name));
    REQUIRE(shape.ok());
    CHECK(family_name(shape->family) == name);
    CHECK(shape->vocabulary == 256);
    CHECK(shape->image == 0);
  }
}

TEST_CASE("the sequence of a vit is its patches and the class token") {
  const Result<ModelShape> shape = load(kVit);
  REQUIRE(shape.ok());
  CHECK(shape->family == Family::vit);
  CHECK(shape->patch == 8);
  CHECK(shape->channels == 3);
  CHECK(shape->classes == 10);
  CHECK(shape->sequence == 4 * 4 + 1);
  CHECK(shape->vocabulary == 0);
}

TEST_CASE("a llama has heads of keys and values, and a width of its MLP") {
  const Result<ModelShape> shape = load(kLlama);
  REQUIRE(shape.ok());
  CHECK(shape->family == Family::llama);
  CHECK(shape->is_causal());
  CHECK(shape->kv_heads == 2);
  CHECK(shape->kv_width() == 8);
  CHECK(shape->ffn == 20);
  CHECK(load(kGood)->kv_width() == 12);
}

TEST_CASE("a llama may have heads of a width of their own, one table, biases and norms of heads") {
  const Result<ModelShape> plain = load(kLlama);
  REQUIRE(plain.ok());
  CHECK(plain->head_width() == 4);
  CHECK(plain->attention_width() == 16);
  CHECK_FALSE((plain->tied_tables || plain->qkv_bias || plain->qk_norm));
  CHECK(plain->has_own_output_table());
  const Result<ModelShape> shape =
      load(kLlama + "head_dim = 6\ntied_tables = true\nqkv_bias = true\nqk_norm = true\n");
  REQUIRE(shape.ok());
  CHECK(shape->head_width() == 6);
  CHECK(shape->attention_width() == 24);
  CHECK(shape->kv_width() == 12);
  CHECK((shape->tied_tables && shape->qkv_bias && shape->qk_norm));
  CHECK_FALSE(shape->has_own_output_table());
  // Heads of their own width need not share the model's.
  const Result<ModelShape> odd =
      load(replaced("heads = 4\nkv_heads = 2", "heads = 3\nkv_heads = 3\nhead_dim = 8", kLlama));
  REQUIRE(odd.ok());
  CHECK(odd->attention_width() == 24);
}

TEST_CASE("the values of a shape are those of its file, every key of its family among them") {
  const std::string given =
      "name = \"x\"\nfamily = \"llama\"\nlayers = 2\nhidden = 32\nheads = 4\nsequence = 16\n"
      "vocabulary = 100\nkv_heads = 2\nffn = 88\nhead_dim = 16\nwindow = 8\n"
      "first_window_block = 1\nrope_original_sequence = 8192\nrope_theta = 500000\n"
      "rope_factor = 8\nrope_low_frequency = 1.5\nrope_high_frequency = 5\nrope_beta_fast = 33\n"
      "rope_beta_slow = 2\nrope_attention_factor = 1.25\nnorm_eps = 1e-06\ntied_tables = true\n"
      "qkv_bias = true\no_bias = true\nmlp_bias = true\nqk_norm = true\nrope_scaling = "
      "\"llama3\"\n";
  const Result<ModelShape> shape = load(given);
  REQUIRE(shape.ok());
  std::string text;
  for (const auto& [key, value] : file_values(*shape)) {
    const bool is_word = key == "name" || key == "family" || key == "rope_scaling";
    text +=
        is_word ? fmt::format("{} = \"{}\"\n", key, value) : fmt::format("{} = {}\n", key, value);
  }
  CHECK(text == given);
  for (const auto& [key, value] : file_values(*load(kGood))) CHECK(key != "kv_heads");
}

TEST_CASE("rotary positions are scaled by a rule that is known, with the numbers it needs") {
  const auto message = [](const std::string& lines) {
    const Result<ModelShape> shape = load(kLlama + lines);
    return shape.ok() ? std::string() : shape.error().message();
  };
  CHECK(message("rope_scaling = \"linear\"\nrope_factor = 2\n").empty());
  CHECK_THAT(message("rope_scaling = \"linera\"\n"),
             Contains("'rope_scaling' must be one of none, linear, llama3, yarn") &&
                 Contains("did you mean 'linear'"));
  CHECK_THAT(message("rope_scaling = \"yarn\"\nrope_factor = 4\n"),
             Contains("needs 'rope_original_sequence'"));
  CHECK_THAT(message("rope_factor = 4\n"), Contains("'rope_factor' needs 'rope_scaling'"));
  CHECK_THAT(message("rope_scaling = \"llama3\"\nrope_original_sequence = 64\n"
                     "rope_high_frequency = 1\n"),
             Contains("'rope_high_frequency' must be above 'rope_low_frequency'"));
}

TEST_CASE("how long a sequence may be depends on where positions come from") {
  const auto check = [](const std::string& text, std::int64_t sequence) {
    const Status status = load(text)->check_sequence(sequence);
    return status.ok() ? std::string() : status.error().message();
  };
  const std::string bert = kGood + "family = \"bert\"\n";
  const std::string bloom = kGood + "family = \"bloom\"\n";
  CHECK(check(kGood, 16).empty());
  CHECK_THAT(check(kGood, 17), Contains("longer than model x allows (16)"));
  CHECK_THAT(check(bert, 17), Contains("longer than model x allows (16)"));
  CHECK(check(bloom, 17).empty());
  CHECK(check(kLlama, 17).empty());
  CHECK(check(kVit, 17).empty());
  CHECK_THAT(check(kVit, 16), Contains("always 17 tokens"));
  CHECK_THAT(check(kVit, 18), Contains("always 17 tokens"));
}

TEST_CASE("training knows GPT-2, BERT, Llama and T5, and says so") {
  CHECK(check_trainable(*load(kGood)).ok());
  CHECK(check_trainable(*load(kLlama)).ok());
  const Status status = check_trainable(*load(kVit + "name = \"x\"\n"));
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().code() == ErrorCode::config);
  CHECK_THAT(
      status.error().message(),
      Contains(
          "model x: vit models can be simulated and tuned; training knows gpt2, bert, llama, t5"));
}

TEST_CASE("a bert is trained with its head for masked tokens alone") {
  const std::string bert = kGood + "family = \"bert\"\n";
  const Result<ModelShape> both = load(bert);
  REQUIRE(both.ok());
  CHECK(both->norm_eps == 1e-12);
  CHECK(both->segment_count() == 2);
  CHECK(both->mlp_width() == 4 * both->hidden);
  CHECK_THAT(check_trainable(*both).error().message(), Contains("'masked_head = true'"));
  const Result<ModelShape> masked =
      load(bert + "masked_head = true\nffn = 20\nsegments = 3\nnorm_eps = 1e-6\n");
  REQUIRE(masked.ok());
  CHECK(check_trainable(*masked).ok());
  CHECK(masked->mlp_width() == 20);
  CHECK(masked->segment_count() == 3);
  CHECK(masked->norm_eps == 1e-6);
}

TEST_CASE("a bert is trained with a head that classifies, of two classes or more") {
  const std::string bert = kGood + "family = \"bert\"\n";
  const Result<ModelShape> shape =
      load(bert + "classes = 3\ndropout = 0.2\nclassifier_dropout = 0.3\n");
  REQUIRE(shape.ok());
  CHECK(check_trainable(*shape).ok());
  CHECK(shape->classifies());
  CHECK(answer_count(*shape) == 3);
  CHECK(shape->target_sequence(16) == 1);
  CHECK(shape->dropout.output == 0.3);
  for (const auto& [lines, word] :
       {std::pair{"classes = 1\n", "regression"},
        {"classes = 3\nmasked_head = true\n", "two heads of a bert"},
        {"classifier_dropout = 0.1\n", "'classifier_dropout' is of a head that classifies"}}) {
    const Result<ModelShape> wrong = load(bert + lines);
    REQUIRE_FALSE(wrong.ok());
    CHECK_THAT(wrong.error().message(), Contains(word));
  }
}

TEST_CASE(
    "a t5 has an encoder and a decoder, and its other numbers follow where they are not said") {
  const std::string t5 = kGood + "family = \"t5\"\nffn = 20\nencoder_layers = ";
  const Result<ModelShape> shape = load(t5 + "1\n");
  REQUIRE(shape.ok());
  CHECK(check_trainable(*shape).ok());
  CHECK(shape->decoder_layers() == 1);
  CHECK(shape->bucket_count() == 32);
  CHECK(shape->bucket_distance() == 128);
  CHECK(shape->end_token() == 1);
  CHECK(shape->norm_eps == 1e-6);
  CHECK(shape->target_sequence(512) == 114);
  CHECK(shape->looked_up_sequence(512) == 626);
  CHECK_THAT(shape->check_sequence(2).error().message(), Contains("3 at least"));
  const auto refusal = [&](const std::string& text) { return load(text).error().message(); };
  CHECK_THAT(refusal(t5 + "2\n"), Contains("at least one must be left for the decoder"));
  CHECK_THAT(refusal(t5 + "1\nbuckets = 6\n"), Contains("a multiple of 4"));
  CHECK_THAT(refusal(t5 + "1\nbucket_distance = 16\n"), Contains("more than half of them"));
  CHECK_THAT(refusal(t5 + "1\nend_token = 256\n"), Contains("no token of a vocabulary of 256"));
}

TEST_CASE("errors of a model file name file, line and key") {
  struct Case {
    std::string text;
    std::string line;
    std::string says;
  };
  const std::vector<Case> cases = {
      {replaced("hidden", "hiden"), ".toml:2:", "did you mean 'hidden'"},
      {replaced("heads = 3\n", ""), ".toml: ", "'heads' is missing"},
      {replaced("layers = 2", "layers = 0"), ".toml:1:", "'layers' must be a whole number"},
      {replaced("layers = 2", "layers = 2.5"), ".toml:1:", "'layers' must be a whole number"},
      {replaced("layers = 2", "layers = \"2\""), ".toml:1:", "'layers' must be a whole number"},
      {replaced("sequence = 16", "sequence = -1"), ".toml:4:", "'sequence'"},
      {replaced("= 256", "= 99999999999"), ".toml:5:", "'vocabulary'"},
      {replaced("heads = 3", "heads = 5"), ".toml:3:", "not a multiple"},
      {replaced("\"x\"", "7"), ".toml:6:", "'name'"},
      {replaced("heads = 3", "heads = "), ".toml:3:", "not valid TOML"},
      {kGood + "momentum = 0.1\n", ".toml:7:", "no key 'momentum'"},
      {kGood + "family = \"blom\"\n", ".toml:7:", "not 'blom' (did you mean 'bloom'?)"},
      {kGood + "family = \"mamba\"\n",
       ".toml:7:", "one of gpt2, bert, bloom, vit, llama, t5, not 'mamba'"},
      {kGood + "family = 2\n", ".toml:7:", "'family' must be one of gpt2, bert, bloom, vit, llama"},
      {kGood + "family = \"\"\n", ".toml:7:", "'family' must be one of gpt2, bert, bloom, vit"},
      {kGood + "patch = 8\n", ".toml:7:", "a gpt2 model has no key 'patch' (family = \"vit\" has)"},
      {kVit + "sequence = 17\n", ".toml:9:", "a vit model has no key 'sequence'"},
      {kVit + "vocabulary = 256\n",
       ".toml:9:", "(family = \"gpt2\" or \"bert\" or \"bloom\" or \"llama\" or \"t5\" has)"},
      {kGood + "ffn = 20\n",
       ".toml:7:", "a gpt2 model has no key 'ffn' (family = \"bert\" or \"llama\" or \"t5\" has)"},
      {kGood + "head_dim = 4\n",
       ".toml:7:", "a gpt2 model has no key 'head_dim' (family = \"llama\" or \"t5\" has)"},
      {kVit + "tied_tables = true\n",
       ".toml:9:", "a vit model has no key 'tied_tables' (family = \"llama\" or \"t5\" has)"},
      {kGood + "family = \"bert\"\nqkv_bias = true\n",
       ".toml:8:", "a bert model has no key 'qkv_bias'"},
      {kGood + "family = \"bloom\"\nqk_norm = true\n",
       ".toml:8:", "a bloom model has no key 'qk_norm'"},
      {kLlama + "qk_norm = 1\n", ".toml:10:", "'qk_norm' must be true or false"},
      {kLlama + "head_dim = 5\n", ".toml:10:", "its width must be even"},
      {kLlama + "head_dim = 0\n", ".toml:10:", "'head_dim' must be a whole number from 1"},
      {kLlama + "head_width = 4\n", ".toml:10:", "a llama model has no key 'head_width'"},
      {replaced("heads = 4\nkv", "heads = 3\nkv", kLlama),
       ".toml:4:", "unless 'head_dim' says how wide one is"},
      {replaced("ffn = 20\n", "", kLlama), ".toml: ", "'ffn' is missing"},
      {replaced("kv_heads = 2\n", "", kLlama), ".toml: ", "'kv_heads' is missing"},
      {replaced("ffn = 20", "ffn = 4000001", kLlama), ".toml:6:", "from 1 to 4000000"},
      {replaced("kv_heads = 2", "kv_heads = 3", kLlama),
       ".toml:5:", "'heads' = 4 is not a multiple of 'kv_heads' = 3"},
      {replaced("classes", "clases", kVit), ".toml:8:", "did you mean 'classes'"},
      {replaced("classes = 10\n", "", kVit), ".toml: ", "'classes' is missing"},
      {replaced("image = 32\n", "", kVit), ".toml: ", "'image' is missing"},
      {replaced("patch = 8", "patch = 0", kVit), ".toml:6:", "'patch' must be a whole number"},
      {replaced("patch = 8", "patch = 7", kVit), ".toml:6:", "not a multiple of 'patch' = 7"},
      {replaced("patch = 8", "patch = 64", kVit), ".toml:6:", "not a multiple of 'patch' = 64"},
      {replaced("image = 32", "image = 8008", kVit), ".toml:6:", "more than 1000 times 'patch'"},
      {replaced("heads = 3", "heads = 5", kVit), ".toml:4:", "not a multiple of 'heads' = 5"},
  };
  for (const Case& wrong : cases) {
    const Result<ModelShape> shape = load(wrong.text);
    REQUIRE_FALSE(shape.ok());
    CHECK(shape.error().code() == ErrorCode::config);
    CHECK_THAT(shape.error().message(), Contains(wrong.line) && Contains(wrong.says));
  }
}

TEST_CASE(
    "extents that are each within their range may not make more parameters than are counted") {
  const std::string wide = "layers = 100000\nhidden = 1000000\nheads = 1000\nsequence = 16\n";
  const Result<ModelShape> shape = load(wide + "vocabulary = 256\n");
  REQUIRE_FALSE(shape.ok());
  CHECK_THAT(shape.error().message(),
             Contains("has 1200001") && Contains("and it may have 1000000000000000"));
  CHECK(
      load("layers = 50\nhidden = 1000000\nheads = 1000\nsequence = 16\nvocabulary = 256\n").ok());
}

TEST_CASE("a missing model file is named") {
  const Result<ModelShape> shape = load_model_shape("/no/such/model.toml");
  REQUIRE_FALSE(shape.ok());
  CHECK(shape.error().code() == ErrorCode::not_found);
  CHECK_THAT(shape.error().message(), Contains("/no/such/model.toml"));
}

TEST_CASE("a file without a name takes the file's") {
  const fs::path path = fs::temp_directory_path() / fmt::format("sluice-name-{}.toml", ::getpid());
  std::ofstream(path) << replaced("name = \"x\"\n", "");
  const Result<ModelShape> shape = load_model_shape(path.string());
  fs::remove(path);
  REQUIRE(shape.ok());
  CHECK(shape->name == path.stem().string());
}

}  // namespace
}  // namespace sluice::model
