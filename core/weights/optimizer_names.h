#pragma once
// The names in optimizer.safetensors: of a state's arrays those of torch, each before the name of a
// parameter ("exp_avg.model.norm.weight"), and the keys of the header's __metadata__.
//
// Thread contract: free functions.

#include <string>

namespace sluice::weights {

inline constexpr const char* kOptimizerStem = "optimizer";
inline constexpr const char* kFormatKey = "format";
inline constexpr const char* kOptimizerFormat = "sluice-optimizer";
inline constexpr const char* kOptimizerKey = "optimizer";
inline constexpr const char* kStepKey = "step";  // updates that were made, in decimal

// torch's name of a state's array: "sum" of "sum_sq"; the others are the same.
std::string torch_name(const std::string& array);
// `parameter` is its name in the files.
std::string moment_name(const std::string& array, const std::string& parameter);

}  // namespace sluice::weights
