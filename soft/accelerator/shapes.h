#pragma once
// The shapes of an operator's outputs before it has run, so that there is memory for them when its
// job is enqueued.
//
// Thread contract: any thread.

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace sluice::soft_accelerator {

struct OutputShape {
  bool is_defined = true;  // an output that was not asked for is not
  std::vector<std::int64_t> sizes = {};
  std::vector<std::int64_t> strides = {};
  at::ScalarType dtype = at::kFloat;
};

// One for each return. Nothing where the values decide (nonzero), where a return is no tensor, or
// where the arguments are wrong: the kernel then says in which way.
std::optional<std::vector<OutputShape>> output_shapes(const c10::OperatorHandle& op,
                                                      const torch::jit::Stack& arguments);

}  // namespace sluice::soft_accelerator
