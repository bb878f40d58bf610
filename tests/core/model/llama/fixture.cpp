#include "tests/core/model/llama/fixture.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

namespace sluice::model {
namespace {

template <typename Value>
std::vector<Value> values_at(const std::string& bytes, std::size_t begin, std::size_t end) {
  std::vector<Value> values((end - begin) / sizeof(Value));
  std::memcpy(values.data(), bytes.data() + begin, end - begin);
  return values;
}

// The row's names have no "model." in front.
std::string name_in_file(const std::string& name) {
  return name.starts_with("lm_head") ? name : "model." + name;
}

}  // namespace

std::map<std::string, FixtureTensor> read_safetensors(const std::string& path) {
  INFO(path);
  std::ifstream file(path, std::ios::binary);
  REQUIRE(file.good());
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  std::uint64_t header_bytes = 0;
  REQUIRE(bytes.size() > sizeof(header_bytes));
  std::memcpy(&header_bytes, bytes.data(), sizeof(header_bytes));
  const auto header = nlohmann::json::parse(bytes.substr(sizeof(header_bytes), header_bytes));
  std::map<std::string, FixtureTensor> tensors;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    const std::size_t data = sizeof(header_bytes) + header_bytes;
    const std::size_t begin = data + entry["data_offsets"][0].get<std::size_t>();
    const std::size_t end = data + entry["data_offsets"][1].get<std::size_t>();
    FixtureTensor tensor{entry["shape"].get<std::vector<std::int64_t>>(), {}, {}};
    if (entry["dtype"] == "F32") tensor.values = values_at<float>(bytes, begin, end);
    if (entry["dtype"] == "I64") tensor.integers = values_at<std::int64_t>(bytes, begin, end);
    tensors[name] = std::move(tensor);
  }
  return tensors;
}

Fixture::Fixture(const std::string& name, const ModelShape& shape) {
  const std::string folder = "tests/fixtures/" + name + "/";
  const auto model = read_safetensors(folder + "model.safetensors");
  const auto expected = read_safetensors(folder + "expected.safetensors");
  for (const TensorInfo& info : shape.flat_layout().tensors) {
    INFO(info.name);
    const FixtureTensor& tensor = model.at(name_in_file(info.name));
    REQUIRE(tensor.shape == info.shape);
    parameters.insert(parameters.end(), tensor.values.begin(), tensor.values.end());
    const FixtureTensor& of_it = expected.at("grad." + name_in_file(info.name));
    gradient.insert(gradient.end(), of_it.values.begin(), of_it.values.end());
  }
  REQUIRE(model.size() == shape.flat_layout().tensors.size());
  loss = double{expected.at("loss").values.front()};
  const FixtureTensor& ids = expected.at("input_ids");
  const FixtureTensor& labels = expected.at("labels");
  batch = ids.shape[0];
  const std::int64_t length = ids.shape[1];
  sequence = length - 1;
  for (std::int64_t row = 0; row < batch; ++row) {
    for (std::int64_t i = 0; i < sequence; ++i) {
      const auto at = static_cast<std::size_t>(row * length + i);
      inputs.push_back(static_cast<std::int32_t>(ids.integers[at]));
      targets.push_back(static_cast<std::int32_t>(labels.integers[at + 1]));
    }
  }
}

}  // namespace sluice::model
