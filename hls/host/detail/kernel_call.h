#pragma once
// One call of a kernel: its name, and its arguments in the order of the kernel's own
// (hls/kernels/kernels.h; tests/hls/host/kernel_call_test.cpp holds the two together). And what its
// result means.
//
// Thread contract: plain values.

#include <array>
#include <cstdint>
#include <span>
#include <variant>

#include "base/check.h"
#include "core/csd/update_task.h"
#include "core/optimizer/split_update.h"

namespace sluice::hls_host {

// The buffers that an update is given, by what they are.
enum class Role : std::uint8_t { gradient, state0, state1, state2, state3, parameters, result };
inline constexpr std::size_t kGivenRoles = static_cast<std::size_t>(Role::result);

using Argument = std::variant<Role, std::uint64_t, std::uint32_t, float>;

struct KernelCall {
  static constexpr std::size_t kArgumentsMax = 27;  // update_adamw_split's

  const char* kernel = "";
  std::array<Argument, kArgumentsMax> arguments;
  std::size_t count = 0;

  template <typename... Values>
  void add(Values... values) {
    CHECK_LE(count + sizeof...(values), kArgumentsMax);
    ((arguments[count++] = values), ...);
  }
};

// The kernels that a run may call: an update kernel a rule, for fp32 or for split state, and the
// checksum.
const char* update_kernel_name(optimizer::RuleKind rule, bool is_split = false);
inline constexpr const char* kChecksumKernel = "checksum";

// `gradient_bytes`: of the gradient's buffer, whole words.
KernelCall update_call(const csd::UpdateTask& task, std::int64_t gradient_bytes,
                       bool has_parameters);
// The same on split state, the first of whose arrays, the bf16 copy, is the parameters.
KernelCall split_update_call(const csd::UpdateTask& task, std::int64_t gradient_bytes);
KernelCall checksum_call(const csd::GradientChunkCheck& chunk);

// Three words of 64 bytes; a checksum's result is one.
inline constexpr std::size_t kResultBytes = 192;
using ResultBytes = std::span<const std::byte, kResultBytes>;

// The meaning of an update's result: ok with the new checksums, or why it is worthless, in the
// words of core/csd. `kernel` is named where the kernel itself is at odds with the host.
Status take_update_result(const csd::UpdateOrder& order, const char* kernel, ResultBytes result,
                          csd::UpdatedChecksums& updated);
std::uint64_t checksum_result(ResultBytes result);

}  // namespace sluice::hls_host
