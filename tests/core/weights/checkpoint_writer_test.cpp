#include "core/weights/checkpoint_writer.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <set>

#include "core/weights/checkpoint.h"
#include "core/weights/kept_model.h"
#include "core/weights/model_folder.h"
#include "tests/core/weights/weights_files.h"
#include "tests/test_folder.h"

namespace sluice::weights {
namespace {

namespace fs = std::filesystem;
using Catch::Contains;

Status pass(std::int64_t /*done*/, std::int64_t /*total*/) { return ok_status(); }

// A checkpoint's own elements, in pieces that end anywhere.
ReadElements elements_of(const Checkpoint& checkpoint) {
  return [&checkpoint](std::int64_t first, std::int64_t count, const TakeElements& take) -> Status {
    constexpr std::int64_t kPiece = 1001;
    std::vector<float> values;
    for (std::int64_t done = 0; done < count; done += kPiece) {
      values.resize(static_cast<std::size_t>(std::min(kPiece, count - done)));
      RETURN_IF_ERROR(checkpoint.fill(first + done, values));
      RETURN_IF_ERROR(take(values));
    }
    return ok_status();
  };
}

std::set<std::string> names_in(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename());
  return names;
}

struct OpenedModel {
  model::ModelShape shape;
  Checkpoint checkpoint;
};

OpenedModel open_model(const std::string& folder) {
  auto shape = load_shape(folder);
  REQUIRE(shape.ok());
  auto checkpoint = Checkpoint::open(folder, *shape);
  INFO((checkpoint.ok() ? "" : checkpoint.error().message()));
  REQUIRE(checkpoint.ok());
  REQUIRE(checkpoint->has_value());
  return {*std::move(shape), **std::move(checkpoint)};
}

Status exported(const OpenedModel& from, const CheckpointFiles& files) {
  const auto written = write_checkpoint(files, from.shape, elements_of(from.checkpoint), pass);
  return written.ok() ? ok_status() : Status(written.error());
}

std::vector<float> all_in(const OpenedModel& opened) {
  std::vector<float> values(static_cast<std::size_t>(opened.shape.flat_layout().parameter_count));
  REQUIRE(opened.checkpoint.fill(0, values).ok());
  return values;
}

}  // namespace

TEST_CASE(
    "what is read, written and read again is the same to the bit; written again, to the byte") {
  const TestFolder folder;
  for (const char* name :
       {"llama", "qwen3", "qwen3_bf16_sharded", "bert", "bert_classify", "t5_v1_0", "t5_v1_1"}) {
    for (const std::int64_t piece_bytes : {kPieceBytes, std::int64_t{9000}}) {
      const std::string once = folder.file(fmt::format("{}-{}", name, piece_bytes));
      INFO(once);
      const std::string source = std::string("tests/fixtures/") + name;
      const OpenedModel from = open_model(source);
      CheckpointFiles files{
          once, ElementType::fp32, read_bytes(source + "/config.json"), {}, piece_bytes};
      REQUIRE(exported(from, files).ok());
      CHECK(names_in(once).contains("model.safetensors.index.json") == (piece_bytes < kPieceBytes));
      const OpenedModel again = open_model(once);
      CHECK(all_in(again) == all_in(from));
      files.folder = once + "-again";
      REQUIRE(exported(again, files).ok());
      REQUIRE(names_in(once) == names_in(files.folder));
      for (const std::string& file : names_in(once)) {
        CHECK(read_bytes(once + "/" + file) == read_bytes(files.folder + "/" + file));
      }
    }
  }
}

TEST_CASE("bf16 weights that are exported as bf16 are what they were") {
  const TestFolder folder;
  const std::string source = "tests/fixtures/qwen3_bf16_sharded";
  const OpenedModel from = open_model(source);
  CheckpointFiles files{
      folder.file("m"), ElementType::bf16, read_bytes(source + "/config.json"), {}, kPieceBytes};
  REQUIRE(exported(from, files).ok());
  CHECK(all_in(open_model(files.folder)) == all_in(from));
  CHECK(open_model(files.folder).checkpoint.description() == "24 tensors of BF16 in 1 file");
}

TEST_CASE("an export appears as a whole or not at all, and over nothing") {
  const TestFolder folder;
  const OpenedModel from = open_model("tests/fixtures/llama");
  const CheckpointFiles files{folder.file("m"), ElementType::fp32, "{}", {}, kPieceBytes};
  int calls = 0;
  const auto stopped = write_checkpoint(
      files, from.shape, elements_of(from.checkpoint), [&](std::int64_t, std::int64_t) {
        return ++calls < 3 ? ok_status()
                           : Status(make_error(ErrorCode::cancelled, "somebody stopped it"));
      });
  REQUIRE_FALSE(stopped.ok());
  CHECK(stopped.error().code() == ErrorCode::cancelled);
  CHECK(names_in(folder.path()).empty());
  fs::create_directory(files.folder);
  const Status there = exported(from, files);
  REQUIRE_FALSE(there.ok());
  CHECK_THAT(there.error().message(), Contains("is there already"));
  CHECK(names_in(folder.path()) == std::set<std::string>{"m"});
}

TEST_CASE("a number that fp16 cannot hold is refused with its tensor") {
  const TestFolder folder;
  const OpenedModel from = open_model("tests/fixtures/llama");
  const model::FlatLayout layout = from.shape.flat_layout();
  std::vector<float> values = all_in(from);
  const model::TensorInfo& info = layout.tensors[2];
  values[static_cast<std::size_t>(info.first) + 5] = 1e5f;
  const ReadElements read = [&](std::int64_t first, std::int64_t count, const TakeElements& take) {
    return take(std::span(values).subspan(static_cast<std::size_t>(first),
                                          static_cast<std::size_t>(count)));
  };
  const auto written = write_checkpoint(
      {folder.file("m"), ElementType::fp16, "{}", {}, kPieceBytes}, from.shape, read, pass);
  REQUIRE_FALSE(written.ok());
  CHECK_THAT(written.error().message(),
             Contains(info.name) && Contains("100000 in element 5") && Contains("fp32"));
}

TEST_CASE("a run keeps its model's shape and the tokenizer, and is found from its state") {
  const TestFolder folder;
  copy_folder("tests/fixtures/qwen3", folder.file("m"));
  write_bytes(folder.file("m/tokenizer.json"), "{}");
  const auto shape = load_shape(folder.file("m"));
  REQUIRE(shape.ok());
  const std::string output = folder.file("out");
  REQUIRE(keep_model(output, folder.file("m"), *shape).ok());
  CHECK(names_in(output + "/kept_model") ==
        std::set<std::string>{"config.json", "model.toml", "tokenizer.json"});
  fs::create_directories(output + "/rank-0/state");
  const auto found = kept_model_above(output + "/rank-0/state");
  REQUIRE(found.has_value());
  const auto kept = load_shape(*found);
  REQUIRE(kept.ok());
  CHECK(model::file_values(*kept) == model::file_values(*shape));
  REQUIRE(keep_model(output, "some/model.toml", *shape).ok());
  CHECK(names_in(output + "/kept_model") == std::set<std::string>{"model.toml"});
}

}  // namespace sluice::weights
