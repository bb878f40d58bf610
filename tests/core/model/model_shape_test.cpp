#include "core/model/model_shape.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>

namespace sluice::model {
namespace {

using Catch::Matchers::Contains;
namespace fs = std::filesystem;

const fs::path kModels = fs::path(SLUICE_SOURCE_DIR) / "sample_models/models";

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

std::string replaced(const std::string& from, const std::string& to) {
  std::string text = kGood;
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
      {kGood + "dropout = 0.1\n", ".toml:7:", "no key 'dropout'"},
  };
  for (const Case& wrong : cases) {
    const Result<ModelShape> shape = load(wrong.text);
    REQUIRE_FALSE(shape.ok());
    CHECK(shape.error().code() == ErrorCode::config);
    CHECK_THAT(shape.error().message(), Contains(wrong.line) && Contains(wrong.says));
  }
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

TEST_CASE("GPT-2 small has its published number of parameters") {
  const Result<ModelShape> shape = load_model_shape((kModels / "gpt2-124m.toml").string());
  REQUIRE(shape.ok());
  CHECK(shape->flat_layout().parameter_count == 124'439'808);
}

TEST_CASE("the sample models hold what their names promise, within 3 %") {
  int counted = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(kModels)) {
    INFO(entry.path());
    const Result<ModelShape> shape = load_model_shape(entry.path().string());
    REQUIRE(shape.ok());
    CHECK(shape->name == entry.path().stem().string());
    const std::size_t dash = shape->name.rfind('-');
    if (dash == std::string::npos) continue;  // a name without a size
    std::size_t used = 0;
    double promised = std::stod(shape->name.substr(dash + 1), &used);
    const char unit = shape->name.at(dash + 1 + used);
    REQUIRE((unit == 'm' || unit == 'b'));
    promised *= unit == 'm' ? 1e6 : 1e9;
    const auto count = static_cast<double>(shape->flat_layout().parameter_count);
    CHECK(std::abs(count / promised - 1) < 0.03);
    ++counted;
  }
  CHECK(counted >= 9);
}

}  // namespace
}  // namespace sluice::model
