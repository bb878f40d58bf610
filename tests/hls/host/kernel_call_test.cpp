// What the host tells a kernel and reads of it, held to the kernels' own header: the order and the
// types of the arguments, the values of the formats, the words of a result.

#include "hls/host/detail/kernel_call.h"

#include <catch2/catch.hpp>
#include <cstring>

#include "hls/kernels/kernels.h"
#include "tests/core/csd/device_conformance.h"

using namespace sluice;
using namespace sluice::hls_host;
using Catch::Matchers::Contains;
using hls_kernels::Word;

namespace {

// 'b' a buffer, 'i' an unsigned of 32 bits, 'l' of 64, 'f' a float.
template <typename T>
constexpr char letter() {
  if constexpr (std::is_pointer_v<T>) return 'b';
  if constexpr (std::is_same_v<T, std::uint32_t>) return 'i';
  if constexpr (std::is_same_v<T, std::uint64_t>) return 'l';
  if constexpr (std::is_same_v<T, float>) return 'f';
  return '?';
}
template <typename... Arguments>
std::string letters_of(std::type_identity<void(Arguments...)>) {
  return {letter<Arguments>()...};
}
// The kernel need not be there for that.
#define LETTERS_OF(kernel) letters_of(std::type_identity<decltype(hls_kernels::kernel)>())

std::string letters_of(const KernelCall& call) {
  std::string letters;
  for (std::size_t i = 0; i < call.count; ++i) letters += "blif"[call.arguments[i].index()];
  return letters;
}

template <typename T>
T argument(const KernelCall& call, std::size_t index) {
  REQUIRE(std::holds_alternative<T>(call.arguments[index]));
  return std::get<T>(call.arguments[index]);
}

csd::UpdateTask task_of(optimizer::RuleKind rule) {
  csd::UpdateTask task;
  task.scalars = optimizer::update_scalars(optimizer::default_options(rule), 3, 0.5);
  task.element_count = 5000;
  task.stored = optimizer::stored_arrays(rule, {});
  return task;
}

struct MadeResult {
  alignas(64) std::array<Word, hls_kernels::kResultWords> words{};
  ResultBytes bytes() const {
    return ResultBytes(reinterpret_cast<const std::byte*>(words.data()), kResultBytes);
  }
};

}  // namespace

TEST_CASE("a call has the arguments of its kernel, in their order") {
  const auto call = [](optimizer::RuleKind rule) { return update_call(task_of(rule), 4096, true); };
  CHECK(letters_of(call(optimizer::RuleKind::adamw)) == LETTERS_OF(update_adamw));
  CHECK(letters_of(call(optimizer::RuleKind::sgd)) == LETTERS_OF(update_sgd));
  CHECK(letters_of(call(optimizer::RuleKind::adagrad)) == LETTERS_OF(update_adagrad));
  CHECK(letters_of(checksum_call({})) == LETTERS_OF(checksum));
}

TEST_CASE("each scalar of AdamW is where the kernel takes it") {
  const csd::UpdateTask task = task_of(optimizer::RuleKind::adamw);
  const KernelCall call = update_call(task, 640, true);
  const auto& scalars = std::get<optimizer::AdamWScalars>(task.scalars);
  CHECK(std::string(call.kernel) == "update_adamw");
  CHECK(argument<Role>(call, 3) == Role::state0);
  CHECK(argument<Role>(call, 4) == Role::state0);
  CHECK(argument<Role>(call, 8) == Role::state2);
  CHECK(argument<Role>(call, 9) == Role::parameters);
  CHECK(argument<Role>(call, 10) == Role::result);
  CHECK(argument<std::uint64_t>(call, 11) == 5000);
  CHECK(argument<std::uint64_t>(call, 12) == 10);
  CHECK(argument<float>(call, 15) == scalars.grad_scale);
  CHECK(argument<float>(call, 20) == scalars.decay);
  CHECK(argument<float>(call, 23) == scalars.eps);
}

TEST_CASE("a call on split state has the arguments of its kernel, whatever the format") {
  const auto check = [](optimizer::RuleKind rule, const std::string& name,
                        const std::string& letters) {
    for (const auto& [format, value] :
         {std::pair(StateFormat{StateFormatKind::exact, 16}, hls_kernels::kStateExact),
          std::pair(StateFormat{StateFormatKind::compact, 16}, hls_kernels::kStateCompact16),
          std::pair(StateFormat{StateFormatKind::compact, 8}, hls_kernels::kStateCompact8)}) {
      csd::UpdateTask task = task_of(rule);
      task.stored = optimizer::stored_arrays(rule, format);
      task.rounding = CodeRounding::of_step(1, 2);
      const KernelCall call = split_update_call(task, 4096);
      CHECK(call.kernel == name);
      CHECK(letters_of(call) == letters);
      const std::size_t first_scalar = 3 + 2 * static_cast<std::size_t>(task.stored.count) + 1;
      CHECK(argument<Role>(call, first_scalar - 1) == Role::result);
      CHECK(argument<std::uint32_t>(call, first_scalar + 3) == value);
    }
  };
  check(optimizer::RuleKind::adamw, "update_adamw_split", LETTERS_OF(update_adamw_split));
  check(optimizer::RuleKind::sgd, "update_sgd_split", LETTERS_OF(update_sgd_split));
  check(optimizer::RuleKind::adagrad, "update_adagrad_split", LETTERS_OF(update_adagrad_split));
}

TEST_CASE("each scalar of AdamW on split state is where the kernel takes it") {
  csd::UpdateTask task = task_of(optimizer::RuleKind::adamw);
  task.is_sparse = true;
  task.stored = optimizer::stored_arrays(optimizer::RuleKind::adamw, {StateFormatKind::compact, 8});
  task.rounding = CodeRounding::of_step(9, 3);
  task.first_flat_index = std::int64_t{7} << 33;
  const KernelCall call = split_update_call(task, 640);
  CHECK(argument<Role>(call, 2) == Role::gradient);
  CHECK(argument<Role>(call, 3) == Role::state0);
  CHECK(argument<Role>(call, 4) == Role::state0);
  CHECK(argument<Role>(call, 10) == Role::state3);
  CHECK(argument<std::uint64_t>(call, 12) == 5000);
  CHECK(argument<std::uint64_t>(call, 13) == 10);
  CHECK(argument<std::uint32_t>(call, 14) == hls_kernels::kGradientSparse);
  CHECK(argument<std::uint64_t>(call, 16) == std::uint64_t{7} << 33);
  CHECK(argument<std::uint32_t>(call, 17) == task.rounding.key());
  const auto& scalars = std::get<optimizer::AdamWScalars>(task.scalars);
  CHECK(argument<float>(call, 18) == scalars.grad_scale);
  CHECK(argument<float>(call, 26) == scalars.eps);
}

TEST_CASE("formats have the kernels' values") {
  using optimizer::GradientKind;
  csd::UpdateTask task = task_of(optimizer::RuleKind::sgd);
  const auto formats = [&](bool has_parameters) {
    const KernelCall call = update_call(task, 64, has_parameters);
    return std::pair(argument<std::uint32_t>(call, 11), argument<std::uint32_t>(call, 12));
  };
  CHECK(formats(false) == std::pair<std::uint32_t, std::uint32_t>{hls_kernels::kGradientFp32,
                                                                  hls_kernels::kParametersNone});
  CHECK(formats(true).second == hls_kernels::kParametersBf16);
  task.gradient_kind = GradientKind::bf16;
  CHECK(formats(false).first == hls_kernels::kGradientBf16);
  task.gradient_kind = GradientKind::fp16;
  task.parameter_kind = Float16Kind::fp16;
  CHECK(formats(true) == std::pair<std::uint32_t, std::uint32_t>{hls_kernels::kGradientFp16,
                                                                 hls_kernels::kParametersFp16});
  task.is_sparse = true;
  CHECK(formats(true).first == hls_kernels::kGradientSparse);
  STATIC_REQUIRE(kResultBytes == hls_kernels::kResultWords * sizeof(Word));
}

TEST_CASE("a result's checksums are compared, and the new ones taken") {
  csd::HostArrays host(optimizer::RuleKind::adamw, optimizer::GradientKind::fp32, 100);
  csd::UpdateOrder order = host.order();
  auto named = io::File::open("/proc/self/exe", {io::FileAccess::read_only, io::Caching::buffered});
  REQUIRE(named.ok());
  order.source.state_file = &*named;
  MadeResult result;
  for (int v = 0; v < 3; ++v) {
    hls_kernels::set_lane64(result.words[1], v, order.check.expected[static_cast<std::size_t>(v)]);
    hls_kernels::set_lane64(result.words[2], v, 7 + static_cast<std::uint64_t>(v));
  }
  csd::UpdatedChecksums updated{};
  REQUIRE(take_update_result(order, "update_adamw", result.bytes(), updated).ok());
  CHECK(updated[2] == 9);
  hls_kernels::set_lane64(result.words[1], 2, 1);
  const Status damaged = take_update_result(order, "update_adamw", result.bytes(), updated);
  REQUIRE_FALSE(damaged.ok());
  CHECK(damaged.error().code() == ErrorCode::corrupt);
  CHECK_THAT(damaged.error().message(), Contains("exp_avg_sq of subgroup 4"));
}

TEST_CASE("what a kernel refuses is said with its reason") {
  csd::UpdateOrder order;
  order.task = task_of(optimizer::RuleKind::adamw);
  order.task.subgroup = SubgroupId{4};
  order.task.is_sparse = true;
  auto named = io::File::open("/proc/self/exe", {io::FileAccess::read_only, io::Caching::buffered});
  REQUIRE(named.ok());
  order.source.gradient_file = &*named;
  MadeResult result;
  csd::UpdatedChecksums updated{};
  for (const auto& [status, words] :
       {std::pair<std::uint32_t, std::string>{hls_kernels::kForeignGradient, "magic"},
        {hls_kernels::kWrongCounts, "not this subgroup's"},
        {hls_kernels::kCutGradient, "cut"},
        {hls_kernels::kTileOverfull, "tile's count"},
        {hls_kernels::kBadIndex, "index is outside"},
        {hls_kernels::kNotZero, "must be zero"}}) {
    result.words[0][0] = status;
    result.words[0][1] = 12;
    const Status refused = take_update_result(order, "update_adamw", result.bytes(), updated);
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().code() == ErrorCode::corrupt);
    CHECK_THAT(refused.error().message(), Contains("the sparse gradient of subgroup 4") &&
                                              Contains(words) && Contains("(tile 12)"));
  }
  result.words[0][0] = hls_kernels::kBadArguments;
  const Status strange = take_update_result(order, "update_adamw", result.bytes(), updated);
  REQUIRE_FALSE(strange.ok());
  CHECK_THAT(strange.error().message(), Contains("not of one version"));
}
