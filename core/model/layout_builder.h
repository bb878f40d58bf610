#pragma once
// Puts a FlatLayout together, tensor by tensor: the families' lists of tensors are written with it.
//
// Thread contract: one owner.

#include <string>
#include <utility>
#include <vector>

#include "core/model/flat_layout.h"

namespace sluice::model {

// All families begin their weights as N(0, 0.02), where their own code does not say otherwise.
inline constexpr double kWeightStd = 0.02;

class LayoutBuilder {
 public:
  void begin_layer(std::string name);  // what is added next belongs to it

  void normal(std::string name, std::vector<std::int64_t> shape, double std_dev = kWeightStd);
  void ones(std::string name, std::int64_t count);
  void zeros(std::string name, std::int64_t count);
  // The two of an adapter (core/model/lora.h), as torch's Linear without a bias begins a matrix,
  // and zeros.
  void adapter(const std::string& name, std::int64_t in, std::int64_t out, std::int64_t rank);

  // NAME.weight and NAME.bias. torch's Linear: the weight is [out, in], so y = x W^T + b.
  void linear(const std::string& name, std::int64_t in, std::int64_t out);
  void layer_norm(const std::string& name, std::int64_t width);

  FlatLayout take() { return std::move(layout_); }

 private:
  void add(std::string name, std::vector<std::int64_t> shape, TensorInfo::Init init,
           double std_dev);

  FlatLayout layout_;
};

}  // namespace sluice::model
