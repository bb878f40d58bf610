// The device's kernel with its checks, its memory budget, and what it moves over which link.

#include <catch2/catch.hpp>
#include <cmath>
#include <random>

#include "core/compress/sparse_gradient.h"
#include "core/csd/emulated_csd.h"
#include "core/runtime/byte_counters.h"
#include "core/runtime/clocks.h"
#include "core/runtime/sync.h"
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
  csd::UpdateCommand command() {
    csd::UpdateCommand command;
    command.subgroup = SubgroupId{4};
    command.scalars = optimizer::update_scalars(optimizer::default_options(rule), 3, 0.5);
    command.arrays.element_count = std::ssize(g);
    for (std::size_t v = 0; v < state.size(); ++v) {
      command.arrays.state[v] = state[v].data();
      command.expected[v] = sum(state[v]);
    }
    command.arrays.gradient = g.data();
    command.arrays.parameters = out.data();
    return command;
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
      optimizer::update_reference(plain.command().scalars, plain.command().arrays);
      csd::UpdatedChecksums updated{};
      REQUIRE(csd::run_update(tiled.command(), updated).ok());
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
      csd::UpdateCommand command = arrays.command();
      const csd::GradientChunkCheck checks[] = {
          {0, 12000, state::checksum(std::as_bytes(std::span(arrays.g).first(3000)))},
          {12000, 8000, state::checksum(std::as_bytes(std::span(arrays.g).subspan(3000)))}};
      command.gradient_checks = checks;
      command.source.state_file = &file;
      command.source.gradient_file = &file;
      command.source.state_offset_bytes = {4096, 8192, 12288, 0};
      command.source.gradient_offset_bytes = 16384;
      float& element = (is_gradient ? arrays.g : arrays.state[which])[3456];
      element = std::bit_cast<float>(std::bit_cast<std::uint32_t>(element) ^ 1u);
      csd::UpdatedChecksums updated{};
      const Status status = csd::run_update(command, updated);
      REQUIRE_FALSE(status.ok());
      CHECK(status.error().code() == ErrorCode::corrupt);
      const std::int64_t offset_bytes =
          is_gradient ? 28384 : command.source.state_offset_bytes[which];
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
    csd::UpdateCommand command = sparse.command();
    command.is_sparse = true;
    command.sparse_gradient = bytes->bytes();
    command.arrays.gradient = nullptr;
    command.source.gradient_file = &file;
    command.source.gradient_offset_bytes = 8192;
    csd::UpdatedChecksums updated{};
    csd::UpdatedChecksums wanted{};
    // The first index twice: not ascending. Nothing is touched.
    const auto layout =
        compress::sparse_layout(count, std::ssize(indices), optimizer::GradientKind::fp32);
    auto* stored = reinterpret_cast<std::uint16_t*>(bytes->bytes().data() + layout.indices_offset);
    const std::uint16_t second = stored[1];
    stored[1] = stored[0];
    const Status refused = csd::run_update(command, updated);
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().code() == ErrorCode::corrupt);
    CHECK_THAT(refused.error().message(), Catch::Contains("subgroup 4") &&
                                              Catch::Contains(file.path()) &&
                                              Catch::Contains("offset 8192"));
    for (std::size_t v = 0; v < sparse.state.size(); ++v) {
      CHECK(Arrays::sum(sparse.state[v]) == command.expected[v]);
    }
    stored[1] = second;
    REQUIRE(csd::run_update(command, updated).ok());
    REQUIRE(csd::run_update(dense.command(), wanted).ok());
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
    csd::EmulatedCsd device(runtime, platform, platform.devices[0], DeviceId{0}, 1 << 20,
                            csd::Payload::none);
    Arrays arrays(rule, 6000);
    const csd::UpdateCommand command = arrays.command();
    csd::UpdatedChecksums updated{};
    const auto engine = static_cast<std::size_t>(platform::index_of(platform.devices[0].engine));
    CHECK(device.update(command, updated).cost.engine_dur_ns ==
          platform.engines[engine].launch_ns + 6'000'000 / (1 + static_cast<TimeNs>(rule)));
  }
}

TEST_CASE("device memory never exceeds its budget") {
  for (const csd::Payload payload : {csd::Payload::real, csd::Payload::none}) {
    csd::DeviceMemory memory("csd0", 10 * kPageBytes, payload);
    std::mt19937 random(1);
    int refused = 0;
    for (int i = 0; i < 40; ++i) {
      const auto size_bytes = static_cast<std::int64_t>(random() % (3 * kPageBytes)) + 1;
      const auto buffer = memory.allocate(size_bytes);
      if (!buffer.ok()) {
        ++refused;
        CHECK(buffer.error().code() == ErrorCode::memory);
        CHECK_THAT(buffer.error().message(), Catch::Contains("csd0"));
        CHECK(memory.used_bytes() + round_up(size_bytes, kPageBytes) > memory.budget_bytes());
      }
      CHECK(memory.used_bytes() <= memory.budget_bytes());
    }
    CHECK(refused > 0);
    CHECK(memory.regions().empty() == (payload == csd::Payload::none));
  }
}

TEST_CASE("state stays off the host link; gradients go down it and parameters come up") {
  const platform::Platform platform = test_platform(1);
  runtime::Runtime runtime(
      std::make_unique<runtime::SimulatedClock>(platform, runtime::Disturbance{}));
  runtime::ByteCounters bytes(platform.links.size());
  runtime.add_sink(&bytes);
  csd::EmulatedCsd device(runtime, platform, platform.devices[0], DeviceId{0}, 1 << 20,
                          csd::Payload::none);
  auto step = [&]() -> runtime::Task<Status> {
    const csd::Owner owner{};
    Status down = co_await device.host_write(owner, {{}, {}, 400});
    Status read = co_await device.read(owner, {{}, {}, 1600});
    Status written = co_await device.write(owner, {{}, {}, 1200});
    Status up = co_await device.sync_from_device(owner, {}, {}, 404);
    co_return ok_status();
  };
  REQUIRE(runtime.run(step()).ok());
  const auto& links = bytes.links();
  CHECK(links[0].size_bytes == std::array<std::int64_t, 2>{404, 400});    // host: up, down
  CHECK(links[1].size_bytes == std::array<std::int64_t, 2>{1600, 1600});  // drive
  CHECK(links[2].size_bytes == std::array<std::int64_t, 2>{1600, 1200});  // internal
  CHECK(links[1].padding_bytes[1] == (4096 - 400) + (4096 - 1200));
}
