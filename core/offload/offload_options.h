#pragma once
// How the optimizer state is offloaded; validated by core/settings.
//
// Thread contract: plain data.

#include <cstdint>

#include "base/parameter_span.h"
#include "base/state_format.h"
#include "core/optimizer/update_rule.h"

namespace sluice::offload {

enum class Method : std::uint8_t {
  host,  // state to host memory, update on the CPU, and back
  csd,   // update on the device; only gradients and parameters cross the host link
};
enum class Wire : std::uint8_t {
  fp32,    // gradients down and parameters up in fp32, as Smart-Infinity's paper sends them
  native,  // in the type they have: 16 bits where that loses nothing
};
enum class GradientTier : std::uint8_t {
  storage,  // gradients wait on the drives for the update
  memory,   // in host memory, all of them (method=host only)
};
enum class ParameterTier : std::uint8_t {
  memory,   // the parameters of the whole model are in host memory
  storage,  // on the drives; a window of them is in host memory (parameter_carrier.h)
};
enum class Pipeline : std::uint8_t {
  serial,    // one subgroup a device at a time: read, update, write
  handover,  // one buffer a variable, handed from a subgroup to the next as it becomes free
  nbuffer,   // several subgroups under way, each in a buffer set of its own
};

enum class GradientWork : std::uint8_t {
  host,         // checks and selects; all of a layer's gradients come to it
  accelerator,  // does so where they are, and what is sent comes to the host
};

enum class Overlap : std::uint8_t {
  off,    // a subgroup's update waits for the gradients of all
  exact,  // it begins as soon as its own are final, by the decision that is expected
  local,  // and so, clipped by its own norm: other numbers than `off` where anything is clipped
};

// The settings of the offload, under "offload" of docs/settings.md. The settings of a run contain
// these, so a new one is a row of core/settings/setting_table.cpp, a member here, and its use.
struct OffloadSettings {
  Method method = Method::csd;
  Pipeline pipeline = Pipeline::nbuffer;
  Wire wire = Wire::fp32;
  std::int64_t buffers = 3;  // nbuffer: subgroups in flight on a device
  GradientTier gradient_tier = GradientTier::storage;
  double density = 1;  // part of the gradient's elements that is sent; 1: all, uncompressed
  bool error_feedback = false;  // density < 1: what is not sent is added to the next gradient
  GradientWork gradient_work = GradientWork::host;
  Overlap overlap = Overlap::off;
  bool prefetch = true;  // nbuffer: read state during forward and backward, as buffers allow
  std::int64_t commit_every = 1;  // steps from one commit to the next
  // Memory for state that stays between steps: the host's in all (method=host), or each device's
  // (method=csd). In settings also kAutomatic, what the memory plan leaves.
  std::int64_t state_cache_bytes = 0;
  ParameterTier parameters = ParameterTier::memory;
  std::int64_t parameter_buffer_bytes = 0;  // ParameterTier::storage; 0: twice the widest layer
  StateFormat state_format = {};            // of what is stored

  bool operator==(const OffloadSettings&) const = default;

  // Buffer sets a device.
  std::int32_t set_count() const {
    return pipeline == Pipeline::nbuffer ? static_cast<std::int32_t>(buffers) : 1;
  }
  // Whether the step with this number (0 = the very first) ends with a commit.
  bool commits(std::int32_t step) const { return (step + 1) % commit_every == 0; }
  bool is_sparse() const { return density < 1; }
  bool has_feedback() const { return is_sparse() && error_feedback; }
  // The part of a loss scale that is still contained in the gradients on the drives; 1 with error
  // feedback, which divides it out.
  double remaining_loss_scale(double loss_scale) const { return has_feedback() ? 1 : loss_scale; }
  bool works_on_accelerator() const { return gradient_work == GradientWork::accelerator; }
  bool streams_parameters() const { return parameters == ParameterTier::storage; }
  // The residual, and the memory to select with, are the host's.
  bool selects_on_host() const { return is_sparse() && !works_on_accelerator(); }
};

// And what follows from the other settings of a run (core/plan/run_plan.cpp).
struct OffloadOptions : OffloadSettings {
  optimizer::GradientKind gradient_kind = optimizer::GradientKind::bf16;  // as the model gives them
  ParameterKind parameter_kind = ParameterKind::bf16;
  std::int64_t bounce_bytes = 4 << 20;
  std::int32_t bounce_count = 8;
  std::int64_t first_flat_index = 0;  // of this rank's state in the whole model
  bool ranks_sum_squares = false;     // gradients are added up over ranks, each of which has a part

  bool operator==(const OffloadOptions&) const = default;

  // The sums of squares of a layer's blocks come with its gradients (StepGradients::block_sums()).
  bool sums_come() const { return works_on_accelerator() || ranks_sum_squares; }
  // Parameters of 16 bits that the update makes, of its own beside the state: split state has them
  // already.
  bool has_16bit_copy() const { return has_16_bits(parameter_kind) && !state_format.is_split(); }
  // Split state's copy is the parameters in host memory: a step reads it from there, and only a
  // commit needs it on the drive.
  bool has_copy_in_memory() const {
    return state_format.is_split() && method == Method::host && !streams_parameters();
  }
  // With feedback the values are sums, which 16 bits would round.
  optimizer::GradientKind wire_gradient_kind() const {
    return wire == Wire::fp32 || has_feedback() ? optimizer::GradientKind::fp32 : gradient_kind;
  }
};

}  // namespace sluice::offload
