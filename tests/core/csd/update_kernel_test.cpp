// The update kernel on the processor, with its checks and its cost.

#include "core/csd/update_kernel.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <random>

#include "core/compress/sparse_gradient.h"
#include "core/csd/emulated_csd.h"
#include "core/optimizer/split_update.h"
#include "core/runtime/clocks.h"
#include "core/runtime/runtime.h"
#include "storage/state/checksum.h"
#include "tests/core/runtime/test_platform.h"

using namespace sluice;

namespace {

using optimizer::RuleKind;

constexpr RuleKind kRules[] = {RuleKind::adamw, RuleKind::sgd, RuleKind::adagrad};

struct Arrays {
  Arrays(RuleKind rule_kind, std::int64_t count)
      : rule(rule_kind), g(static_cast<std::size_t>(count)), out(g.size()) {
    std::mt19937 random(3);
    std::normal_distribution<float> normal;
    state.resize(static_cast<std::size_t>(optimizer::rule_info(rule).state_count()),
                 std::vector<float>(g.size()));
    for (std::size_t i = 0; i < g.size(); ++i) {
      for (std::vector<float>& array : state) array[i] = 0.1f * normal(random);
      state.back()[i] = std::abs(state.back()[i]);
      g[i] = normal(random);
    }
  }
  csd::UpdateOrder order() {
    csd::UpdateOrder order;
    order.task.subgroup = SubgroupId{4};
    order.task.scalars = optimizer::update_scalars(optimizer::default_options(rule), 3, 0.5);
    order.task.element_count = std::ssize(g);
    order.task.stored = optimizer::stored_arrays(rule, {});
    for (std::size_t v = 0; v < state.size(); ++v) order.check.expected[v] = sum(state[v]);
    return order;
  }
  csd::UpdateMemory memory() {
    csd::UpdateMemory memory;
    for (std::size_t v = 0; v < state.size(); ++v) {
      memory.state[v] = reinterpret_cast<std::byte*>(state[v].data());
    }
    memory.gradient = std::as_bytes(std::span(g));
    memory.parameters = out.data();
    return memory;
  }
  optimizer::UpdateArrays arrays() {
    optimizer::UpdateArrays arrays;
    arrays.element_count = std::ssize(g);
    for (std::size_t v = 0; v < state.size(); ++v) arrays.state[v] = state[v].data();
    arrays.gradient = g.data();
    arrays.parameters = out.data();
    return arrays;
  }
  static std::uint64_t sum(const std::vector<float>& values) {
    return state::checksum(std::as_bytes(std::span(values)));
  }
  RuleKind rule;
  std::vector<std::vector<float>> state;
  std::vector<float> g;
  std::vector<std::uint16_t> out;
};

// A file only to have a name in messages.
io::File any_file() {
  auto file = io::File::open("/proc/self/exe", {io::FileAccess::read_only, io::Caching::buffered});
  if (!file.ok()) throw std::runtime_error(file.error().message());
  return std::move(*file);
}

}  // namespace

TEST_CASE("the tiled update equals the reference on the whole, with the checksums of its result") {
  for (const RuleKind rule : kRules) {
    for (const std::int64_t count : {1, 100, 16 * 1024, 2 * 16 * 1024 + 1}) {
      Arrays plain(rule, count);
      Arrays tiled(rule, count);
      optimizer::update_reference(plain.order().task.scalars, plain.arrays());
      csd::UpdatedChecksums updated{};
      REQUIRE(csd::run_update(tiled.order(), tiled.memory(), updated).ok());
      REQUIRE(tiled.out == plain.out);
      for (std::size_t v = 0; v < plain.state.size(); ++v) {
        REQUIRE(Arrays::sum(tiled.state[v]) == Arrays::sum(plain.state[v]));
        CHECK(updated[v] == Arrays::sum(plain.state[v]));
      }
    }
  }
}

TEST_CASE("a flipped bit in any array is refused with subgroup, variable and offset") {
  const io::File file = any_file();
  for (const RuleKind rule : kRules) {
    const auto names = optimizer::rule_info(rule).state_names;
    for (std::size_t which = 0; which <= names.size(); ++which) {
      const bool is_gradient = which == names.size();
      Arrays arrays(rule, 5000);
      csd::UpdateOrder order = arrays.order();
      const csd::GradientChunkCheck checks[] = {
          {0, 12000, state::checksum(std::as_bytes(std::span(arrays.g).first(3000)))},
          {12000, 8000, state::checksum(std::as_bytes(std::span(arrays.g).subspan(3000)))}};
      order.check.gradient = checks;
      order.source.state_file = &file;
      order.source.gradient_file = &file;
      order.source.state_offset_bytes = {4096, 8192, 12288, 0};
      order.source.gradient_offset_bytes = 16384;
      float& element = (is_gradient ? arrays.g : arrays.state[which])[3456];
      element = std::bit_cast<float>(std::bit_cast<std::uint32_t>(element) ^ 1u);
      csd::UpdatedChecksums updated{};
      const Status status = csd::run_update(order, arrays.memory(), updated);
      REQUIRE_FALSE(status.ok());
      CHECK(status.error().code() == ErrorCode::corrupt);
      const std::int64_t offset_bytes =
          is_gradient ? 28384 : order.source.state_offset_bytes[which];
      const std::string name = is_gradient ? "gradient" : names[which];
      CHECK_THAT(status.error().message(),
                 Catch::Contains("subgroup 4") && Catch::Contains(name + " of subgroup") &&
                     Catch::Contains(file.path()) &&
                     Catch::Contains(fmt::format("offset {} ", offset_bytes)));
    }
  }
}

TEST_CASE("a sparse update equals the dense one, and a corrupt sparse gradient updates nothing") {
  const io::File file = any_file();
  for (const RuleKind rule : kRules) {
    const std::int64_t count = 2 * 16 * 1024 + 77;
    Arrays dense(rule, count);
    Arrays sparse(rule, count);
    std::vector<std::uint32_t> indices;
    std::vector<float> values;
    for (std::uint32_t i = 0; i < count; ++i) {
      if (i % 37 == 0) {
        indices.push_back(i);
        values.push_back(dense.g[i]);
      } else {
        dense.g[i] = 0;
      }
    }
    const std::int64_t room =
        compress::sparse_gradient_bytes(count, std::ssize(indices), optimizer::GradientKind::fp32);
    auto bytes = io::PageAlignedBuffer::allocate(round_up(room, kPageBytes));
    REQUIRE(bytes.ok());
    compress::encode_sparse_gradient({indices, values}, count, optimizer::GradientKind::fp32,
                                     bytes->bytes());
    csd::UpdateOrder order = sparse.order();
    order.task.is_sparse = true;
    csd::UpdateMemory memory = sparse.memory();
    memory.gradient = bytes->bytes();
    order.source.gradient_file = &file;
    order.source.gradient_offset_bytes = 8192;
    csd::UpdatedChecksums updated{};
    csd::UpdatedChecksums wanted{};
    // The first index twice: not ascending. Nothing is touched.
    const auto layout =
        compress::sparse_layout(count, std::ssize(indices), optimizer::GradientKind::fp32);
    auto* stored = reinterpret_cast<std::uint16_t*>(bytes->bytes().data() + layout.indices_offset);
    const std::uint16_t second = stored[1];
    stored[1] = stored[0];
    const Status refused = csd::run_update(order, memory, updated);
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().code() == ErrorCode::corrupt);
    CHECK_THAT(refused.error().message(), Catch::Contains("subgroup 4") &&
                                              Catch::Contains(file.path()) &&
                                              Catch::Contains("offset 8192"));
    for (std::size_t v = 0; v < sparse.state.size(); ++v) {
      CHECK(Arrays::sum(sparse.state[v]) == order.check.expected[v]);
    }
    stored[1] = second;
    REQUIRE(csd::run_update(order, memory, updated).ok());
    REQUIRE(csd::run_update(dense.order(), dense.memory(), wanted).ok());
    CHECK(updated == wanted);
    CHECK(sparse.out == dense.out);
  }
}

TEST_CASE("the update takes as long as the platform's rate for the rule says") {
  platform::Platform platform = test_platform(1);
  for (const RuleKind rule : kRules) {
    const double rate = 1e6 * (1 + static_cast<double>(rule));
    for (platform::Engine& engine : platform.engines)
      engine.rate[optimizer::rule_info(rule).name] = rate;
  }
  for (const RuleKind rule : kRules) {
    runtime::Runtime runtime(
        std::make_unique<runtime::SimulatedClock>(platform, runtime::Disturbance{}));
    csd::EmulatedCsd device({runtime, platform, DeviceId{0}, {1 << 20}, 1 << 20},
                            csd::Payload::none);
    Arrays arrays(rule, 6000);
    const csd::UpdateOrder order = arrays.order();
    const csd::DeviceBuffer gradient;
    csd::UpdateBuffers buffers;
    buffers.gradient = &gradient;
    csd::UpdatedChecksums updated{};
    const auto engine = static_cast<std::size_t>(platform::index_of(platform.devices[0].engine));
    CHECK(device.update(order, buffers, updated).cost.engine_dur_ns ==
          platform.engines[engine].launch_ns + 6'000'000 / (1 + static_cast<TimeNs>(rule)));
  }
}
