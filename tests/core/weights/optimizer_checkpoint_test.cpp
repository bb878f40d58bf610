#include "core/weights/optimizer_checkpoint.h"

#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "core/weights/checkpoint_writer.h"
#include "core/weights/model_folder.h"
#include "core/weights/optimizer_names.h"
#include "core/weights/tensor_names.h"
#include "tests/core/weights/weights_files.h"
#include "tests/test_folder.h"

namespace sluice::weights {
namespace {

namespace fs = std::filesystem;
using Catch::Contains;
using nlohmann::ordered_json;

constexpr std::array kAdamW = {"exp_avg", "exp_avg_sq"};
constexpr std::array kAdaGrad = {"sum_sq"};

model::ModelShape llama() {
  auto shape = load_shape("tests/fixtures/llama");
  REQUIRE(shape.ok());
  return *std::move(shape);
}

// The arrays lie one behind the other, and so do their elements.
float value_of(std::int64_t element) { return static_cast<float>(element) * 0.25f; }

Status read_made(std::int64_t first, std::int64_t count, const TakeElements& take) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    values[static_cast<std::size_t>(i)] = value_of(first + i);
  }
  return take(values);
}

OptimizerArrays adamw_arrays() { return {"adamw", 300, {"exp_avg", "exp_avg_sq"}, read_made}; }

void export_to(const std::string& folder, const OptimizerArrays& arrays,
               std::int64_t piece_bytes = kPieceBytes) {
  CheckpointFiles files{folder, ElementType::fp32, "{}", {}, piece_bytes, arrays};
  std::int64_t done_bytes = 0;
  std::int64_t total_bytes = 0;
  const auto written =
      write_checkpoint(files, llama(), read_made, [&](std::int64_t done, std::int64_t total) {
        CHECK(done > done_bytes);
        done_bytes = done;
        total_bytes = total;
        return ok_status();
      });
  REQUIRE(written.ok());
  CHECK(done_bytes == total_bytes);
  CHECK(total_bytes == written->size_bytes + written->optimizer_bytes);
}

Result<OptimizerCheckpoint> open_moments(const std::string& folder,
                                         const std::string& optimizer = "adamw",
                                         std::span<const char* const> arrays = kAdamW) {
  return OptimizerCheckpoint::open(folder,
                                   {.shape = llama(), .optimizer = optimizer, .arrays = arrays});
}

std::string moments_refusal(const std::string& folder, const std::string& optimizer = "adamw") {
  const auto opened = open_moments(folder, optimizer);
  return opened.ok() ? "read" : opened.error().message();
}

// The header of a file, changed, before the same tensors.
void change_header(const std::string& path, const std::function<void(ordered_json&)>& change) {
  const std::string bytes = read_bytes(path);
  std::uint64_t size = 0;
  std::memcpy(&size, bytes.data(), sizeof size);
  ordered_json header = ordered_json::parse(bytes.substr(8, size));
  change(header);
  const std::string text = header.dump();
  const std::uint64_t new_size = text.size();
  write_bytes(path, std::string(reinterpret_cast<const char*>(&new_size), sizeof new_size) + text +
                        bytes.substr(8 + size));
}

// An export whose header is changed, and the words with which it is refused.
std::string changed_refusal(const std::function<void(ordered_json&)>& change) {
  const TestFolder folder;
  export_to(folder.file("m"), adamw_arrays());
  change_header(folder.file("m/optimizer.safetensors"), change);
  return moments_refusal(folder.file("m"));
}

void rename(ordered_json& header, const std::string& from, const std::string& to) {
  header[to] = header.at(from);
  header.erase(from);
}

}  // namespace

TEST_CASE("an optimizer's arrays that are written come back to the bit, from any element on") {
  const TestFolder folder;
  const model::FlatLayout layout = llama().flat_layout();
  for (const std::int64_t piece_bytes : {kPieceBytes, std::int64_t{9000}}) {
    const std::string path = folder.file(fmt::format("{}", piece_bytes));
    export_to(path, adamw_arrays(), piece_bytes);
    CHECK(fs::exists(path + "/optimizer.safetensors.index.json") == (piece_bytes < kPieceBytes));
    CHECK(fs::exists(path + "/optimizer.safetensors") == (piece_bytes == kPieceBytes));
    const auto opened = open_moments(path);
    INFO((opened.ok() ? "" : opened.error().message()));
    REQUIRE(opened.ok());
    CHECK(opened->step() == 300);
    CHECK_THAT(opened->description(), Contains("adamw after 300 updates"));
    for (const std::size_t array : {0, 1}) {
      for (const std::int64_t first : {std::int64_t{0}, std::int64_t{777}}) {
        std::vector<float> values(static_cast<std::size_t>(layout.parameter_count - first));
        REQUIRE(opened->fill(array, first, values).ok());
        const std::int64_t begin =
            static_cast<std::int64_t>(array) * layout.parameter_count + first;
        std::int64_t wrong = 0;
        for (std::size_t i = 0; i < values.size(); ++i) {
          wrong += values[i] != value_of(begin + static_cast<std::int64_t>(i)) ? 1 : 0;
        }
        CHECK(wrong == 0);
      }
    }
  }
}

TEST_CASE("the tensors have torch's names of state before the names and shapes of the parameters") {
  const TestFolder folder;
  export_to(folder.file("m"), {"adagrad", 7, {"sum_sq"}, read_made});
  const auto weights = SafetensorsFile::open(folder.file("m/model.safetensors"));
  const auto sums = SafetensorsFile::open(folder.file("m/optimizer.safetensors"));
  REQUIRE(weights.ok());
  REQUIRE(sums.ok());
  CHECK(sums->metadata() == std::map<std::string, std::string>{{"format", "sluice-optimizer"},
                                                               {"optimizer", "adagrad"},
                                                               {"step", "7"}});
  REQUIRE(sums->tensors().size() == weights->tensors().size());
  for (std::size_t t = 0; t < sums->tensors().size(); ++t) {
    const StoredTensor& sum = sums->tensors()[t];
    CHECK(sum.name == "sum." + weights->tensors()[t].name);
    CHECK(sum.shape == weights->tensors()[t].shape);
    CHECK(sum.dtype == "F32");
  }
  CHECK(open_moments(folder.file("m"), "adagrad", kAdaGrad).ok());
  CHECK(moment_name("momentum_buffer", "a.weight") == "momentum_buffer.a.weight");
}

TEST_CASE("an export without the optimizer has none, and a folder without one says how it comes") {
  const TestFolder folder;
  const auto written =
      write_checkpoint({folder.file("m"), ElementType::fp32, "{}", {}, kPieceBytes, {}}, llama(),
                       read_made, [](std::int64_t, std::int64_t) { return ok_status(); });
  REQUIRE(written.ok());
  CHECK(written->optimizer_file_count == 0);
  CHECK_THAT(moments_refusal(folder.file("m")),
             Contains("has no optimizer.safetensors") && Contains("--optimizer"));
}

TEST_CASE("tensors that are missing, left over or of another shape are refused with their names") {
  const std::string name = "exp_avg.model.layers.0.mlp.up_proj.weight";
  CHECK_THAT(
      changed_refusal([&](ordered_json& h) { rename(h, name, name.substr(0, name.size() - 1)); }),
      Contains(name + " missing") && Contains("did you mean '" + name.substr(0, name.size() - 1)));
  CHECK_THAT(changed_refusal([&](ordered_json& h) {
               h["exp_avg.odd"] = {{"dtype", "F32"}, {"shape", {0}}, {"data_offsets", {0, 0}}};
             }),
             Contains("exp_avg.odd of no tensor of the model"));
  CHECK_THAT(changed_refusal([&](ordered_json& h) {
               auto& shape = h[name]["shape"];
               std::swap(shape[0], shape[1]);
             }),
             Contains(name + " has the shape") && Contains("its parameter has"));
  CHECK_THAT(changed_refusal([&](ordered_json& h) {
               h[name]["dtype"] = "BF16";
               h[name]["shape"][0] = h[name]["shape"][0].get<int>() * 2;
               h[name]["shape"][1] = h[name]["shape"][1].get<int>();
             }),
             Contains(name));
}

TEST_CASE("a dtype of 16 bits is refused for an optimizer's arrays") {
  const TestFolder folder;
  const model::FlatLayout layout = llama().flat_layout();
  MadeTensorsData tensors;
  for (const char* const array : kAdamW) {
    for (const model::TensorInfo& info : layout.tensors) {
      MadeTensorData& made = tensors[moment_name(array, name_in_files(llama().family, info.name))];
      made = {info.shape, std::vector<float>(static_cast<std::size_t>(info.count)), "BF16"};
    }
  }
  fs::create_directory(folder.file("m"));
  write_bytes(folder.file("m/optimizer.safetensors"), safetensors_bytes(tensors));
  CHECK_THAT(moments_refusal(folder.file("m")), Contains("__metadata__ has no 'format'"));
  change_header(folder.file("m/optimizer.safetensors"), [](ordered_json& header) {
    header["__metadata__"] = {
        {"format", "sluice-optimizer"}, {"optimizer", "adamw"}, {"step", "1"}};
  });
  CHECK_THAT(moments_refusal(folder.file("m")),
             Contains("has the dtype BF16") && Contains("torch.float32"));
}

TEST_CASE("another optimizer, format or step than a run can go on with is refused") {
  const auto with = [](const char* key, const char* value) {
    return changed_refusal([=](ordered_json& header) { header["__metadata__"][key] = value; });
  };
  CHECK_THAT(with("optimizer", "sgd"),
             Contains("is the state of sgd") && Contains("is adamw") && Contains("optimizer=sgd"));
  CHECK_THAT(with("format", "pt"), Contains("format = 'pt'") && Contains("'sluice-optimizer'"));
  for (const char* step : {"", "-1", "1.5", "9007199254740993", "99999999999999999999", "7 "}) {
    CHECK_THAT(with("step", step), Contains(fmt::format("step = '{}'", step)));
  }
  CHECK(with("step", "9007199254740992") == "read");
  CHECK_THAT(changed_refusal([](ordered_json& h) { rename(h["__metadata__"], "step", "steps"); }),
             Contains("has no 'step'") && Contains("did you mean 'steps'"));
}

TEST_CASE("pieces of two exports are refused") {
  const TestFolder folder;
  export_to(folder.file("m"), adamw_arrays(), 9000);
  for (const auto& entry : fs::directory_iterator(folder.file("m"))) {
    const std::string name = entry.path().filename();
    if (!name.starts_with("optimizer-00002")) continue;
    change_header(entry.path(), [](ordered_json& h) { h["__metadata__"]["step"] = "301"; });
  }
  CHECK_THAT(moments_refusal(folder.file("m")),
             Contains("is of step 301") && Contains("of step 300"));
}

TEST_CASE("numbers that no optimizer has are refused with their tensor and element") {
  const TestFolder folder;
  const model::FlatLayout layout = llama().flat_layout();
  const model::TensorInfo& info = layout.tensors[3];
  float bad = 0;
  std::size_t bad_array = 0;
  const auto fill_with = [&](const std::string& path) {
    const ReadElements read = [&](std::int64_t first, std::int64_t count,
                                  const TakeElements& take) {
      return read_made(first, count, [&](std::span<const float> made) {
        std::vector<float> values(made.begin(), made.end());
        const std::int64_t at =
            static_cast<std::int64_t>(bad_array) * layout.parameter_count + info.first + 5 - first;
        if (at >= 0 && at < count) values[static_cast<std::size_t>(at)] = bad;
        return take(values);
      });
    };
    export_to(path, {"adamw", 1, {"exp_avg", "exp_avg_sq"}, read});
    const auto opened = open_moments(path);
    REQUIRE(opened.ok());
    std::vector<float> values(static_cast<std::size_t>(layout.parameter_count));
    const Status filled = opened->fill(bad_array, 0, values);
    return filled.ok() ? std::string("read") : filled.error().message();
  };
  bad = std::nanf("");
  CHECK_THAT(fill_with(folder.file("a")),
             Contains("exp_avg.") && Contains(info.name) && Contains("nan in element 5"));
  bad = -1;
  CHECK(fill_with(folder.file("b")) == "read");
  bad_array = 1;
  CHECK_THAT(fill_with(folder.file("c")),
             Contains("exp_avg_sq.") && Contains(info.name) && Contains("-1 in element 5"));
}

}  // namespace sluice::weights
