#include "core/weights/checkpoint.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/weights/model_folder.h"
#include "core/weights/tensor_names.h"
#include "tests/core/weights/weights_files.h"
#include "tests/test_folder.h"

namespace sluice::weights {
namespace {

using Catch::Contains;
using nlohmann::json;

std::string fixture(const std::string& name) { return "tests/fixtures/" + name; }

Checkpoint opened(const std::string& folder) {
  const auto shape = load_shape(folder);
  INFO((shape.ok() ? "" : shape.error().message()));
  REQUIRE(shape.ok());
  auto checkpoint = Checkpoint::open(folder, *shape);
  INFO((checkpoint.ok() ? "" : checkpoint.error().message()));
  REQUIRE(checkpoint.ok());
  REQUIRE(checkpoint->has_value());
  return **std::move(checkpoint);
}

std::string refusal(const std::string& folder) {
  const auto shape = load_shape(folder);
  if (!shape.ok()) return shape.error().message();
  const auto checkpoint = Checkpoint::open(folder, *shape);
  return checkpoint.ok() ? "read" : checkpoint.error().message();
}

// A file's tensors, read without the code under test. F32 alone.
std::map<std::string, std::vector<float>> plain_tensors(const std::string& path) {
  const std::string bytes = read_bytes(path);
  std::uint64_t size = 0;
  std::memcpy(&size, bytes.data(), 8);
  const json header = json::parse(bytes.substr(8, size));
  std::map<std::string, std::vector<float>> tensors;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    const auto begin = entry["data_offsets"][0].get<std::size_t>();
    const auto end = entry["data_offsets"][1].get<std::size_t>();
    std::vector<float> values((end - begin) / 4);
    std::memcpy(values.data(), bytes.data() + 8 + size + begin, end - begin);
    tensors[name] = std::move(values);
  }
  return tensors;
}

std::vector<float> all_of(const Checkpoint& checkpoint, const model::FlatLayout& layout) {
  std::vector<float> values(static_cast<std::size_t>(layout.parameter_count));
  REQUIRE(checkpoint.fill(0, values).ok());
  return values;
}

constexpr const char* kNanoGpt2Config = R"({"model_type": "gpt2", "n_layer": 1, "n_embd": 4,
  "n_head": 2, "n_positions": 8, "vocab_size": 5, "attn_pdrop": 0.1})";

// As the hub's own gpt2 has them: no prefix, and the mask of attention beside the weights.
MadeTensorsData nano_gpt2(const std::string& prefix, bool has_buffers) {
  model::ModelShape shape;
  shape.layers = 1;
  shape.hidden = 4;
  shape.heads = 2;
  shape.sequence = 8;
  shape.vocabulary = 5;
  MadeTensorsData tensors;
  float next = 0;
  for (const model::TensorInfo& info : shape.flat_layout().tensors) {
    MadeTensorData& tensor = tensors[prefix + info.name];
    tensor.shape = info.shape;
    for (std::int64_t i = 0; i < info.count; ++i) tensor.values.push_back(next += 1);
  }
  if (has_buffers) {
    tensors[prefix + "h.0.attn.bias"] = {{1, 1, 8, 8}, std::vector<float>(64, 1.0f)};
    tensors[prefix + "h.0.attn.masked_bias"] = {{}, {-1e4f}};
  }
  return tensors;
}

std::string gpt2_folder(const TestFolder& folder, const MadeTensorsData& tensors) {
  const std::string path = folder.file("gpt2");
  std::filesystem::create_directories(path);
  write_bytes(path + "/config.json", kNanoGpt2Config);
  write_bytes(path + "/model.safetensors", safetensors_bytes(tensors));
  return path;
}

// What BERT's pretraining has written for a fixture's tensors: names without the prefix, older
// words for those of a norm, a copy of the tied table, positions, and the head for the next
// sentence.
MadeTensorsData old_bert(const model::FlatLayout& layout, const std::vector<float>& values) {
  MadeTensorsData tensors;
  for (const model::TensorInfo& info : layout.tensors) {
    std::string name = info.name;
    const std::size_t norm = name.find("LayerNorm.");
    if (norm != std::string::npos)
      name = name.substr(0, norm) + (name.ends_with("bias") ? "LayerNorm.beta" : "LayerNorm.gamma");
    tensors[name] = {info.shape,
                     {values.begin() + info.first, values.begin() + info.first + info.count}};
  }
  tensors["cls.predictions.decoder.weight"] = tensors["embeddings.word_embeddings.weight"];
  tensors["embeddings.position_ids"] = {{1, 3}, {0, 1, 2}};
  tensors["pooler.dense.weight"] = {{2, 2}, {1, 2, 3, 4}};
  tensors["cls.seq_relationship.bias"] = {{2}, {1, 2}};
  return tensors;
}

}  // namespace

TEST_CASE("weights of transformers' own files are the flat parameters, tensor by tensor") {
  for (const char* name :
       {"llama", "qwen3", "llama3_rope", "qwen3_yarn", "llama_bias", "qwen2_window"}) {
    INFO(name);
    const auto shape = load_shape(fixture(name));
    REQUIRE(shape.ok());
    const Checkpoint checkpoint = opened(fixture(name));
    const model::FlatLayout layout = shape->flat_layout();
    const std::vector<float> flat = all_of(checkpoint, layout);
    const auto plain = plain_tensors(fixture(name) + "/model.safetensors");
    REQUIRE(plain.size() == layout.tensors.size());
    for (const model::TensorInfo& info : layout.tensors) {
      INFO(info.name);
      const std::vector<float>& expected = plain.at(name_in_files(shape->family, info.name));
      REQUIRE(std::ssize(expected) == info.count);
      CHECK(std::memcmp(expected.data(), flat.data() + info.first, expected.size() * 4) == 0);
    }
  }
}

TEST_CASE("any stretch of the parameters is that of the whole, from several threads at once") {
  const auto shape = load_shape(fixture("qwen3_bf16_sharded"));
  REQUIRE(shape.ok());
  const Checkpoint checkpoint = opened(fixture("qwen3_bf16_sharded"));
  CHECK(checkpoint.description() == "24 tensors of BF16 in 3 files");
  const std::vector<float> whole = all_of(checkpoint, shape->flat_layout());
  std::vector<float> pieced(whole.size(), 99.0f);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t first = t * 37; first < whole.size(); first += 4 * 37) {
        const std::size_t count = std::min<std::size_t>(37, whole.size() - first);
        const Status filled = checkpoint.fill(static_cast<std::int64_t>(first),
                                              std::span(pieced).subspan(first, count));
        static_cast<void>(filled);  // what is missing is found below
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(std::memcmp(pieced.data(), whole.data(), whole.size() * 4) == 0);
}

TEST_CASE("the pieces in bf16 are the whole file, rounded") {
  const auto shape = load_shape(fixture("qwen3"));
  const std::vector<float> exact = all_of(opened(fixture("qwen3")), shape->flat_layout());
  const std::vector<float> rounded =
      all_of(opened(fixture("qwen3_bf16_sharded")), shape->flat_layout());
  REQUIRE(exact.size() == rounded.size());
  for (std::size_t i = 0; i < exact.size(); ++i) {
    REQUIRE(std::abs(exact[i] - rounded[i]) <= std::abs(exact[i]) / 256);
  }
}

TEST_CASE("GPT-2's files have its tensors with and without a prefix, and masks beside them") {
  const TestFolder folder;
  const std::string with = gpt2_folder(folder, nano_gpt2("transformer.", false));
  const auto shape = load_shape(with);
  REQUIRE(shape.ok());
  const std::vector<float> of_class = all_of(opened(with), shape->flat_layout());
  const std::string without = gpt2_folder(folder, nano_gpt2("", true));
  const std::vector<float> of_hub = all_of(opened(without), shape->flat_layout());
  CHECK(of_class == of_hub);
  // A Conv1D holds [in, out], and so does the layout: the order is that of the file.
  for (std::size_t i = 0; i < of_hub.size(); ++i) REQUIRE(of_hub[i] == static_cast<float>(i + 1));
}

TEST_CASE(
    "files of BERT's pretraining have the same tensors by other names, and more beside them") {
  const TestFolder folder;
  const auto shape = load_shape(fixture("bert"));
  REQUIRE(shape.ok());
  const model::FlatLayout layout = shape->flat_layout();
  const std::vector<float> values = all_of(opened(fixture("bert")), layout);
  const std::string old = folder.file("old");
  std::filesystem::create_directories(old);
  write_bytes(old + "/config.json", read_bytes(fixture("bert") + "/config.json"));
  MadeTensorsData tensors = old_bert(layout, values);
  write_bytes(old + "/model.safetensors", safetensors_bytes(tensors));
  CHECK(all_of(opened(old), layout) == values);

  tensors["cls.predictions.decoder.weight"].values[3] += 1;
  write_bytes(old + "/model.safetensors", safetensors_bytes(tensors));
  CHECK_THAT(refusal(old), Contains("cls.predictions.decoder.weight differs in element 3") &&
                               Contains("ties the two (tie_word_embeddings): take "));
}

TEST_CASE("a classifier begins with what was pretrained, and says what is new") {
  const TestFolder folder;
  const auto shape = load_shape(fixture("bert_classify"));
  REQUIRE(shape.ok());
  const model::FlatLayout layout = shape->flat_layout();
  const std::vector<float> values = all_of(opened(fixture("bert_classify")), layout);
  const std::string base = folder.file("base");
  std::filesystem::create_directories(base);
  write_bytes(base + "/config.json", read_bytes(fixture("bert_classify") + "/config.json"));
  const auto begun = [&](std::vector<std::string> left_out) {
    MadeTensorsData tensors = old_bert(layout, values);
    tensors["pooler.dense.weight"] = {{16, 16}, std::vector<float>(256, 2)};
    for (const std::string& name : left_out) tensors.erase(name);
    write_bytes(base + "/model.safetensors", safetensors_bytes(tensors));
  };
  const std::vector<std::string> classifier = {"classifier.weight", "classifier.bias"};
  begun(classifier);
  CHECK(opened(base).new_tensors() == classifier);
  CHECK_THAT(opened(base).description(),
             Contains("39 tensors of F32 in 1 file, and new classifier.weight, classifier.bias"));
  REQUIRE(opened(base).sample().ok());
  std::vector<float> read(values.size(), 7);
  REQUIRE(opened(base).fill(0, read).ok());
  for (const model::TensorInfo& info : layout.tensors) {
    INFO(info.name);
    const float first = read[static_cast<std::size_t>(info.first)];
    CHECK(first == (info.name.starts_with("classifier.") ? 7
                    : info.name == "pooler.dense.weight"
                        ? 2
                        : values[static_cast<std::size_t>(info.first)]));
  }
  begun({"classifier.weight", "classifier.bias", "pooler.dense.weight", "pooler.dense.bias"});
  CHECK(opened(base).new_tensors().size() == 4);
  // Half of a head is a mistake, and so is a pooler that is not there beside a classifier.
  begun({"classifier.bias"});
  CHECK_THAT(refusal(base), Contains("classifier.bias missing"));
  begun({"pooler.dense.weight", "pooler.dense.bias"});
  CHECK_THAT(refusal(base), Contains("pooler.dense.weight") && Contains("missing"));
}

TEST_CASE("a weight that is missing, left over, of another shape or there twice is named") {
  const TestFolder folder;
  MadeTensorsData tensors = nano_gpt2("", true);
  tensors["h.0.attn.c_attm.weight"] = tensors["h.0.attn.c_attn.weight"];
  tensors.erase("h.0.attn.c_attn.weight");
  CHECK_THAT(refusal(gpt2_folder(folder, tensors)),
             Contains("transformer.h.0.attn.c_attn.weight missing") &&
                 Contains("h.0.attn.c_attm.weight of no tensor"));
  tensors = nano_gpt2("", false);
  tensors["wpe.weight"].shape = {4, 8};
  CHECK_THAT(refusal(gpt2_folder(folder, tensors)),
             Contains("wpe.weight has the shape [4, 8]") && Contains("[8, 4]"));
  tensors = nano_gpt2("", false);
  tensors["transformer.wpe.weight"] = tensors["wpe.weight"];
  CHECK_THAT(refusal(gpt2_folder(folder, tensors)), Contains("keep one of them"));
}

TEST_CASE("an output table that is tied is passed over if it is the same, and refused if not") {
  const TestFolder folder;
  MadeTensorsData tensors = nano_gpt2("transformer.", false);
  tensors["lm_head.weight"] = tensors["transformer.wte.weight"];
  CHECK(refusal(gpt2_folder(folder, tensors)) == "read");
  tensors["lm_head.weight"].values[7] += 1;
  CHECK_THAT(refusal(gpt2_folder(folder, tensors)),
             Contains("differs in element 7") && Contains("tie_word_embeddings"));
}

TEST_CASE("an index is held to its files, and keeps to its folder") {
  const TestFolder folder;
  const std::string path = folder.file("m");
  copy_folder(fixture("qwen3_bf16_sharded"), path);
  const std::string index_path = path + "/model.safetensors.index.json";
  const json good = json::parse(read_bytes(index_path));
  const auto refusal_of = [&](const char* tensor, const char* file) {
    json index = good;
    index["weight_map"][tensor] = file;
    write_bytes(index_path, index.dump());
    return refusal(path);
  };
  CHECK_THAT(refusal_of("model.norm.weight", "model-00001-of-00003.safetensors"),
             Contains("model.norm.weight"));
  CHECK_THAT(refusal_of("model.norm.weight", "model-00009-of-00003.safetensors"),
             Contains("names a file that is missing"));
  for (const char* file : {"../m/model-00003-of-00003.safetensors", "/etc/x.safetensors", "..",
                           "config.json", "a/b.safetensors"}) {
    CHECK_THAT(refusal_of("model.norm.weight", file), Contains("in the folder of the index"));
  }
  CHECK_THAT(refusal_of("model.more.weight", "model-00003-of-00003.safetensors"),
             Contains("has no tensor model.more.weight"));
  json index = good;
  index["weight_map"].erase("model.norm.weight");
  write_bytes(index_path, index.dump());
  CHECK_THAT(refusal(path), Contains("does not list"));
}

TEST_CASE("weights in another form are refused, and a configuration alone is a model") {
  const TestFolder folder;
  const std::string path = folder.file("m");
  std::filesystem::create_directories(path);
  write_bytes(path + "/config.json", kNanoGpt2Config);
  const auto shape = load_shape(path);
  REQUIRE(shape.ok());
  CHECK(shape->name == "m");
  const auto none = Checkpoint::open(path, *shape);
  REQUIRE(none.ok());
  CHECK_FALSE(none->has_value());
  write_bytes(path + "/pytorch_model.bin", "x");
  CHECK_THAT(refusal(path), Contains("pytorch_model.bin") && Contains("save_pretrained"));
  std::filesystem::remove(path + "/pytorch_model.bin");
  copy_folder(fixture("qwen3_bf16_sharded"), folder.file("both"));
  write_bytes(folder.file("both/model.safetensors"), "x");
  CHECK_THAT(refusal(folder.file("both")), Contains("which of them is the one to read"));
}

}  // namespace sluice::weights
