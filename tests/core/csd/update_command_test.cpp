// The device's kernel with its checks, its memory budget, and what it moves over which link.

#include <catch2/catch.hpp>
#include <cmath>
#include <random>

#include "core/csd/emulated_csd.h"
#include "core/runtime/byte_counters.h"
#include "core/runtime/clocks.h"
#include "core/runtime/sync.h"
#include "storage/state/checksum.h"
#include "tests/core/runtime/test_platform.h"

using namespace sluice;

namespace {

struct Arrays {
  explicit Arrays(std::int64_t count)
      : p(static_cast<std::size_t>(count)), m(p.size()), v(p.size()), g(p.size()), out(p.size()) {
    std::mt19937 random(3);
    std::normal_distribution<float> normal;
    for (std::size_t i = 0; i < p.size(); ++i) {
      p[i] = normal(random);
      m[i] = 0.1f * normal(random);
      v[i] = 0.01f * std::abs(normal(random));
      g[i] = normal(random);
    }
  }
  csd::UpdateCommand command() {
    csd::UpdateCommand command;
    command.subgroup = SubgroupId{4};
    command.scalars = optimizer::adamw_scalars({}, 3, 0.5);
    command.arrays.element_count = std::ssize(p);
    command.arrays.master_weights = p.data();
    command.arrays.exp_avg = m.data();
    command.arrays.exp_avg_sq = v.data();
    command.arrays.gradient = g.data();
    command.arrays.parameters = out.data();
    command.expected = {sum(p), sum(m), sum(v)};
    return command;
  }
  static std::uint64_t sum(const std::vector<float>& values) {
    return state::checksum(std::as_bytes(std::span(values)));
  }
  std::vector<float> p, m, v, g;
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
  for (const std::int64_t count : {1, 100, 16 * 1024, 2 * 16 * 1024 + 1}) {
    Arrays plain(count);
    Arrays tiled(count);
    optimizer::adamw_reference(plain.command().scalars, plain.command().arrays);
    csd::UpdatedChecksums updated{};
    REQUIRE(csd::run_update(tiled.command(), updated).ok());
    REQUIRE(Arrays::sum(tiled.p) == Arrays::sum(plain.p));
    REQUIRE(Arrays::sum(tiled.m) == Arrays::sum(plain.m));
    REQUIRE(Arrays::sum(tiled.v) == Arrays::sum(plain.v));
    REQUIRE(tiled.out == plain.out);
    CHECK(updated[0] == Arrays::sum(plain.p));
    CHECK(updated[1] == Arrays::sum(plain.m));
    CHECK(updated[2] == Arrays::sum(plain.v));
  }
}

TEST_CASE("a flipped bit in any array is refused with subgroup, variable and offset") {
  const io::File file = any_file();
  const char* names[] = {"master_weights", "exp_avg ", "exp_avg_sq", "gradient"};
  for (std::size_t which = 0; which < 4; ++which) {
    Arrays arrays(5000);
    csd::UpdateCommand command = arrays.command();
    const csd::GradientChunkCheck checks[] = {
        {0, 3000, state::checksum(std::as_bytes(std::span(arrays.g).first(3000)))},
        {3000, 2000, state::checksum(std::as_bytes(std::span(arrays.g).subspan(3000)))}};
    command.gradient_checks = checks;
    command.source.state_file = &file;
    command.source.gradient_file = &file;
    command.source.state_offset_bytes = {4096, 8192, 12288, 0};
    command.source.gradient_offset_bytes = 16384;
    std::vector<float>* arrays_by_index[] = {&arrays.p, &arrays.m, &arrays.v, &arrays.g};
    float& element = (*arrays_by_index[which])[3456];
    element = std::bit_cast<float>(std::bit_cast<std::uint32_t>(element) ^ 1u);
    csd::UpdatedChecksums updated{};
    const Status status = csd::run_update(command, updated);
    REQUIRE_FALSE(status.ok());
    CHECK(status.error().code() == ErrorCode::corrupt);
    CHECK_THAT(status.error().message(), Catch::Contains("subgroup 4") &&
                                             Catch::Contains(names[which]) &&
                                             Catch::Contains(file.path()));
    const char* offsets[] = {"offset 4096", "offset 8192", "offset 12288", "offset 28384"};
    CHECK_THAT(status.error().message(), Catch::Contains(offsets[which]));
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
