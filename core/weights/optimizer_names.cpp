#include "core/weights/optimizer_names.h"

namespace sluice::weights {

std::string torch_name(const std::string& array) { return array == "sum_sq" ? "sum" : array; }

std::string moment_name(const std::string& array, const std::string& parameter) {
  return torch_name(array) + "." + parameter;
}

}  // namespace sluice::weights
