#include "hls/host/detail/kernel_call.h"

#include <cstring>

#include "core/csd/update_damage.h"

namespace sluice::hls_host {
namespace {

using optimizer::GradientKind;

constexpr std::int64_t kWordBytes = 64;

// The values of the kernels' enums.
enum GradientFormat : std::uint32_t { kFp32 = 0, kBf16 = 1, kFp16 = 2, kSparse = 3 };
enum ParameterFormat : std::uint32_t { kNone = 0, kParametersBf16 = 2, kParametersFp16 = 3 };
enum SplitFormat : std::uint32_t { kExact = 1, kCompact16 = 2, kCompact8 = 3 };
enum UpdateStatus : std::uint32_t {
  kUpdated = 0,
  kBadArguments = 1,
  kForeignGradient = 2,
  kWrongCounts = 3,
  kCutGradient = 4,
  kTileOverfull = 5,
  kBadIndex = 6,
  kNotZero = 7,
};

std::uint32_t gradient_format(const csd::UpdateTask& task) {
  if (task.is_sparse) return kSparse;
  switch (task.gradient_kind) {
    case GradientKind::fp32:
      return kFp32;
    case GradientKind::bf16:
      return kBf16;
    case GradientKind::fp16:
      break;
  }
  return kFp16;
}

std::uint32_t split_format(optimizer::RuleKind rule, const StoredArrays& stored) {
  const auto has = [&](StateFormatKind kind, std::int32_t remainder_bits) {
    return stored == optimizer::stored_arrays(rule, {kind, remainder_bits});
  };
  if (has(StateFormatKind::exact, 16)) return kExact;
  if (has(StateFormatKind::compact, 16)) return kCompact16;
  CHECK(has(StateFormatKind::compact, 8));
  return kCompact8;
}

// The order of UpdateScalars is that of RuleKind.
optimizer::RuleKind rule_of(const csd::UpdateTask& task) {
  return static_cast<optimizer::RuleKind>(task.scalars.index());
}

// Words, counts and indices of the gradient, and each array in and out.
void add_buffers(KernelCall& call, std::int32_t array_count) {
  call.add(Role::gradient, Role::gradient, Role::gradient);
  constexpr std::array kArrays = {Role::state0, Role::state1, Role::state2, Role::state3};
  for (const Role role : std::span(kArrays).first(static_cast<std::size_t>(array_count))) {
    call.add(role, role);
  }
}

void add_scalars(KernelCall& call, const optimizer::AdamWScalars& s) {
  call.add(s.grad_scale, s.beta1, s.one_minus_beta1, s.beta2, s.one_minus_beta2, s.decay,
           s.minus_step_size, s.inverse_sqrt_bias2, s.eps);
}
void add_scalars(KernelCall& call, const optimizer::SgdScalars& s) {
  call.add(s.grad_scale, s.weight_decay, s.momentum, s.minus_lr);
}
void add_scalars(KernelCall& call, const optimizer::AdaGradScalars& s) {
  call.add(s.grad_scale, s.weight_decay, s.minus_lr, s.eps);
}

std::uint64_t lane64(ResultBytes result, std::size_t word, std::size_t lane) {
  std::uint64_t value = 0;
  std::memcpy(&value, result.data() + word * kWordBytes + lane * sizeof value, sizeof value);
  return value;
}

std::uint32_t lane32(ResultBytes result, std::size_t lane) {
  std::uint32_t value = 0;
  std::memcpy(&value, result.data() + lane * sizeof value, sizeof value);
  return value;
}

const char* what_is_wrong(std::uint32_t status) {
  switch (status) {
    case kForeignGradient:
      return "its magic, version, value kind or tile size is foreign";
    case kWrongCounts:
      return "its element, kept or tile count is not this subgroup's";
    case kCutGradient:
      return "it is cut: its header announces more bytes than there are";
    case kTileOverfull:
      return "a tile's count is above what the tile or the rest can have";
    case kBadIndex:
      return "an index is outside its tile, or not above the one before it";
    case kNotZero:
      return "a byte that must be zero is not";
    default:
      return nullptr;
  }
}

Status refused(const csd::UpdateOrder& order, const char* kernel, std::uint32_t status,
               std::uint32_t tile) {
  const char* wrong = what_is_wrong(status);
  if (wrong != nullptr && order.task.is_sparse) {
    return csd::damaged_sparse_gradient(
        order, make_error(ErrorCode::corrupt, "sparse gradient: {} (tile {})", wrong, tile));
  }
  return make_error(ErrorCode::internal,
                    "the kernel {} refused subgroup {} with status {}: the xclbin's kernels and "
                    "this program are not of one version; build them from one checkout",
                    kernel, index_of(order.task.subgroup), status);
}

}  // namespace

const char* update_kernel_name(optimizer::RuleKind rule, bool is_split) {
  switch (rule) {
    case optimizer::RuleKind::adamw:
      return is_split ? "update_adamw_split" : "update_adamw";
    case optimizer::RuleKind::sgd:
      return is_split ? "update_sgd_split" : "update_sgd";
    case optimizer::RuleKind::adagrad:
      break;
  }
  return is_split ? "update_adagrad_split" : "update_adagrad";
}

KernelCall update_call(const csd::UpdateTask& task, std::int64_t gradient_bytes,
                       bool has_parameters) {
  const optimizer::RuleKind rule = rule_of(task);
  KernelCall call;
  call.kernel = update_kernel_name(rule);
  add_buffers(call, optimizer::rule_info(rule).state_count());
  call.add(has_parameters ? Role::parameters : Role::result, Role::result);
  call.add(static_cast<std::uint64_t>(task.element_count),
           static_cast<std::uint64_t>(gradient_bytes / kWordBytes), gradient_format(task));
  const std::uint32_t narrow =
      task.parameter_kind == Float16Kind::bf16 ? kParametersBf16 : kParametersFp16;
  call.add(has_parameters ? narrow : std::uint32_t{kNone});
  std::visit([&call](const auto& scalars) { add_scalars(call, scalars); }, task.scalars);
  return call;
}

KernelCall split_update_call(const csd::UpdateTask& task, std::int64_t gradient_bytes) {
  const optimizer::RuleKind rule = rule_of(task);
  const std::uint32_t format = split_format(rule, task.stored);
  // The kernels round by the hash; the exact format rounds nothing.
  CHECK(task.rounding.is_stochastic() || format == kExact);
  KernelCall call;
  call.kernel = update_kernel_name(rule, true);
  add_buffers(call, task.stored.count);
  call.add(Role::result);
  call.add(static_cast<std::uint64_t>(task.element_count),
           static_cast<std::uint64_t>(gradient_bytes / kWordBytes), gradient_format(task), format);
  call.add(static_cast<std::uint64_t>(task.first_flat_index), task.rounding.key());
  std::visit([&call](const auto& scalars) { add_scalars(call, scalars); }, task.scalars);
  return call;
}

KernelCall checksum_call(const csd::GradientChunkCheck& chunk) {
  KernelCall call;
  call.kernel = kChecksumKernel;
  call.add(Role::gradient, Role::result, static_cast<std::uint64_t>(chunk.offset_bytes),
           static_cast<std::uint64_t>(chunk.size_bytes));
  return call;
}

Status take_update_result(const csd::UpdateOrder& order, const char* kernel, ResultBytes result,
                          csd::UpdatedChecksums& updated) {
  const std::uint32_t status = lane32(result, 0);
  if (status != kUpdated) return refused(order, kernel, status, lane32(result, 1));
  const auto count = static_cast<std::size_t>(order.task.stored.count);
  std::array<std::uint64_t, kMaxStoredArrays> found{};
  for (std::size_t v = 0; v < count; ++v) {
    found[v] = lane64(result, 1, v);
    updated[v] = lane64(result, 2, v);
  }
  return csd::check_state(order, std::span(found).first(count));
}

std::uint64_t checksum_result(ResultBytes result) { return lane64(result, 0, 0); }

}  // namespace sluice::hls_host
