#include "tests/core/weights/weights_files.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/float16.h"

namespace sluice::weights {
namespace {

std::string bytes_of_values(const MadeTensorData& tensor) {
  if (tensor.dtype == "F32") {
    return {reinterpret_cast<const char*>(tensor.values.data()), tensor.values.size() * 4};
  }
  std::string bytes;
  const Float16Kind kind = tensor.dtype == "BF16" ? Float16Kind::bf16 : Float16Kind::fp16;
  for (const float value : tensor.values) {
    const std::uint16_t bits = float16_from_float(kind, value);
    bytes.append(reinterpret_cast<const char*>(&bits), 2);
  }
  return bytes;
}

}  // namespace

std::string safetensors_bytes(const MadeTensorsData& tensors) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  std::string data;
  for (const auto& [name, tensor] : tensors) {
    const std::string bytes = bytes_of_values(tensor);
    header[name] = {{"dtype", tensor.dtype},
                    {"shape", tensor.shape},
                    {"data_offsets", {data.size(), data.size() + bytes.size()}}};
    data += bytes;
  }
  const std::string text = header.dump();
  const std::uint64_t size = text.size();
  return std::string(reinterpret_cast<const char*>(&size), sizeof size) + text + data;
}

void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary);
  file << bytes;
  REQUIRE(file.good());
}

std::string read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  INFO(path);
  REQUIRE(file.good());
  return {std::istreambuf_iterator<char>(file), {}};
}

void copy_folder(const std::string& from, const std::string& to) {
  std::filesystem::copy(from, to, std::filesystem::copy_options::recursive);
}

void replace_in_file(const std::string& path, const std::string& from, const std::string& to) {
  std::string text = read_bytes(path);
  const std::size_t at = text.find(from);
  INFO(path << " has no " << from);
  REQUIRE(at != std::string::npos);
  write_bytes(path, text.replace(at, from.size(), to));
}

}  // namespace sluice::weights
