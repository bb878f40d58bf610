#pragma once
// Small safetensors files and folders, made as a user of the format would.
//
// Thread contract: free functions.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace sluice::weights {

struct MadeTensorData {
  std::vector<std::int64_t> shape;
  std::vector<float> values;
  std::string dtype = "F32";  // or BF16, F16
};
using MadeTensorsData = std::map<std::string, MadeTensorData>;

std::string safetensors_bytes(const MadeTensorsData& tensors);
void write_bytes(const std::string& path, const std::string& bytes);
std::string read_bytes(const std::string& path);
void copy_folder(const std::string& from, const std::string& to);
// Replaces the first `from` in a file by `to`; fails the test where there is none.
void replace_in_file(const std::string& path, const std::string& from, const std::string& to);

}  // namespace sluice::weights
