// Every file in sample_models/models: it loads, and has as many parameters as its name and its
// comment say.

#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "core/model/model_shape.h"

namespace sluice::model {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> model_files() {
  std::vector<fs::path> paths;
  const fs::path folder = fs::path(SLUICE_SOURCE_DIR) / "sample_models/models";
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    paths.push_back(entry.path());
  }
  return paths;
}

// "gpt2-4.0b" promises 4.0e9; a name without a size, 0.
double promised_by_name(const std::string& name) {
  if (name == "llama-30b") return 32.5e9;  // as others call what its authors call 33B
  // Their authors' own figures beside the name.
  if (name == "llama-3.2-1b") return 1.23e9;
  if (name == "llama-3.2-3b") return 3.21e9;
  if (name == "qwen3-14b") return 14.8e9;
  const std::size_t dash = name.rfind('-');
  if (dash == std::string::npos) return 0;
  std::size_t used = 0;
  const double number = std::stod(name.substr(dash + 1), &used);
  const char unit = name.at(dash + 1 + used);
  REQUIRE((unit == 'm' || unit == 'b'));
  return number * (unit == 'm' ? 1e6 : 1e9);
}

struct Said {
  double count = 0;
  double tolerance = 0;  // relative
};

// The first "1,234 parameters" or "1.23 billion parameters" of the file.
Said said_by_comment(const fs::path& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  std::string before, unit, word;  // "... 4.07 billion parameters", "... 559,214,592 parameters."
  while (text >> word && !word.starts_with("parameters")) {
    before = std::exchange(unit, word);
  }
  REQUIRE(word.starts_with("parameters"));
  const bool is_rounded = unit == "billion" || unit == "million";
  std::string digits = is_rounded ? before : unit;
  std::erase(digits, ',');
  if (!is_rounded) return {std::stod(digits), 0};
  return {std::stod(digits) * (unit == "million" ? 1e6 : 1e9), 0.005};
}

TEST_CASE("the sample models hold what their names promise, within 5 %") {
  int counted = 0;
  for (const fs::path& path : model_files()) {
    INFO(path);
    const Result<ModelShape> shape = load_model_shape(path.string());
    REQUIRE(shape.ok());
    CHECK(shape->name == path.stem().string());
    const double promised = promised_by_name(shape->name);
    if (promised == 0) continue;
    const auto count = static_cast<double>(shape->flat_layout().parameter_count);
    CHECK(std::abs(count / promised - 1) < 0.05);
    ++counted;
  }
  CHECK(counted >= 16);
}

TEST_CASE("the sample models hold what their comments say") {
  for (const fs::path& path : model_files()) {
    INFO(path);
    const Result<ModelShape> shape = load_model_shape(path.string());
    REQUIRE(shape.ok());
    const Said said = said_by_comment(path);
    const auto count = static_cast<double>(shape->flat_layout().parameter_count);
    CHECK(std::abs(count / said.count - 1) <= said.tolerance);
  }
}

TEST_CASE("the samples of published models hold their sources' number of parameters") {
  // The source is the weights as published, or the paper or log that the model file names.
  const std::vector<std::pair<std::string, std::int64_t>> published = {
      {"bert-0.34b", 336'226'108},   {"bloom-3b", 3'002'557'440},     {"bloom-7.1b", 7'069'016'064},
      {"gpt2-0.34b", 354'823'168},   {"gpt2-0.77b", 774'030'080},     {"gpt2-1.6b", 1'557'611'200},
      {"gpt2-124m", 124'439'808},    {"llama-106b", 105'885'147'136}, {"llama-13b", 13'015'864'320},
      {"llama-30b", 32'528'943'616}, {"llama-3.2-3b", 3'212'749'824}, {"llama-44b", 44'278'226'944},
      {"llama-7b", 6'738'415'616},   {"qwen3-32b", 32'762'123'264},   {"qwen3-4b", 4'022'468'096},
      {"t5-223m", 222'903'552},      {"vit-0.30b", 304'326'632},      {"vit-0.63b", 632'045'800}};
  for (const auto& [name, count] : published) {
    INFO(name);
    const Result<ModelShape> shape = load_model_shape(
        (fs::path(SLUICE_SOURCE_DIR) / "sample_models/models" / (name + ".toml")).string());
    REQUIRE(shape.ok());
    CHECK(shape->flat_layout().parameter_count == count);
  }
}

TEST_CASE("there is a sample of each family") {
  std::vector<std::string> families = family_names();
  for (const fs::path& path : model_files()) {
    std::erase(families, family_name(load_model_shape(path.string())->family));
  }
  CHECK(families.empty());
}

}  // namespace
}  // namespace sluice::model
