// The update kernel on split state: what it makes is the definition's, the copy goes where its
// order says, and damage has the name of the stored array.

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <random>

#include "core/compress/sparse_gradient.h"
#include "core/csd/update_kernel.h"
#include "storage/io/page_aligned_buffer.h"
#include "storage/state/checksum.h"
#include "tests/core/csd/device_conformance.h"

namespace sluice::csd {
namespace {

using optimizer::GradientKind;
using optimizer::RuleKind;
using Bytes = std::vector<std::byte>;

constexpr RuleKind kSplitRules[] = {RuleKind::adamw, RuleKind::sgd, RuleKind::adagrad};
constexpr std::int64_t kTileCount = 16 * 1024;

class SplitHost : public SplitHostArrays {
 public:
  using SplitHostArrays::SplitHostArrays;

  UpdateMemory memory() {
    UpdateMemory memory;
    for (std::size_t v = 0; v < arrays.size(); ++v) memory.state[v] = arrays[v].data();
    memory.gradient = gradient;
    return memory;
  }
  // And the copy elsewhere, from where it was.
  UpdateMemory memory(std::vector<std::uint16_t>& copy) {
    copy.resize(static_cast<std::size_t>(count));
    std::memcpy(copy.data(), arrays[0].data(), arrays[0].size());
    UpdateMemory memory = this->memory();
    memory.parameters = copy.data();
    return memory;
  }
  // The second half of two blocks.
  SplitHost second_block() const {
    SplitHost second = *this;
    second.count = kBlockElements;
    second.first_flat_index += kBlockElements;
    for (Bytes& array : second.arrays)
      array.erase(array.begin(), array.begin() + std::ssize(array) / 2);
    second.gradient.erase(second.gradient.begin(),
                          second.gradient.begin() + std::ssize(gradient) / 2);
    return second;
  }
};

Bytes bytes_of(const std::vector<std::uint16_t>& values) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

io::File file_with_a_name() {
  auto file = io::File::open("/proc/self/exe", {io::FileAccess::read_only, io::Caching::buffered});
  if (!file.ok()) throw std::runtime_error(file.error().message());
  return std::move(*file);
}

void check_same(const SplitHostArrays& found, const SplitHostArrays& wanted,
                const UpdatedChecksums& updated) {
  for (std::size_t v = 0; v < wanted.arrays.size(); ++v) {
    REQUIRE(found.arrays[v] == wanted.arrays[v]);
    CHECK(updated[v] == state::checksum(wanted.arrays[v]));
  }
}

TEST_CASE("the tiled update of split state is the definition's, with its checksums") {
  for (const RuleKind rule : kSplitRules) {
    for (const StateFormat& format : kSplitFormats) {
      for (const GradientKind kind : {GradientKind::fp32, GradientKind::bf16}) {
        for (const std::int64_t count : {1L, 100L, kTileCount, 2 * kTileCount + 4096 + 65}) {
          CAPTURE(static_cast<int>(rule), format_text(format), count);
          SplitHost tiled(rule, format, kind, count);
          SplitHost wanted = tiled;
          wanted.update();
          UpdatedChecksums updated{};
          REQUIRE(run_update(tiled.order(), tiled.memory(), updated).ok());
          check_same(tiled, wanted, updated);
        }
      }
    }
  }
}

TEST_CASE("an exact update is the fp32 one, state and copy, to the bit") {
  for (const RuleKind rule : kSplitRules) {
    for (const std::int64_t count : {100L, kTileCount + 77}) {
      SplitHost exact(rule, {.kind = StateFormatKind::exact}, GradientKind::bf16, count);
      HostArrays plain(rule, GradientKind::bf16, count);
      plain.state = exact.decoded();
      plain.gradient = exact.gradient;
      UpdatedChecksums updated{};
      for (int step = 0; step < 3; ++step) {
        REQUIRE(run_update(exact.order(), exact.memory(), updated).ok());
        plain.update();
        REQUIRE(exact.decoded() == plain.state);
        REQUIRE(exact.arrays[0] == bytes_of(plain.copy));
      }
    }
  }
}

TEST_CASE("codes are rounded by the place in the whole model, so that cuts change nothing") {
  constexpr std::int64_t kFirst = std::int64_t{1} << 32;  // in the upper half of flat indices
  const StateFormat compact{.kind = StateFormatKind::compact, .remainder_bits = 8};
  SplitHost whole(RuleKind::adamw, compact, GradientKind::fp32, 2 * kBlockElements);
  whole.first_flat_index = kFirst - kBlockElements;
  SplitHost second = whole.second_block();
  UpdatedChecksums updated{};
  REQUIRE(run_update(whole.order(), whole.memory(), updated).ok());
  REQUIRE(run_update(second.order(), second.memory(), updated).ok());
  for (std::size_t v = 0; v < whole.arrays.size(); ++v) {
    const Bytes& array = whole.arrays[v];
    CHECK(std::equal(array.begin() + std::ssize(array) / 2, array.end(), second.arrays[v].begin(),
                     second.arrays[v].end()));
  }
}

TEST_CASE("a sparse update of split state is the dense one") {
  for (const RuleKind rule : kSplitRules) {
    for (const StateFormat& format : kSplitFormats) {
      CAPTURE(static_cast<int>(rule), format_text(format));
      SplitHost dense(rule, format, GradientKind::fp32, 2 * kTileCount + 77);
      SplitHost sparse = dense;
      const io::PageAlignedBuffer encoded = keep_some(dense.gradient);
      dense.update();
      UpdateOrder order = sparse.order();
      order.task.is_sparse = true;
      UpdateMemory memory = sparse.memory();
      memory.gradient = encoded.bytes();
      UpdatedChecksums updated{};
      REQUIRE(run_update(order, memory, updated).ok());
      check_same(sparse, dense, updated);
    }
  }
}

TEST_CASE("a flipped bit in a stored array is refused with the name of what is stored") {
  const io::File file = file_with_a_name();
  for (const RuleKind rule : kSplitRules) {
    for (const StateFormat& format : kSplitFormats) {
      const std::vector<std::string> names = optimizer::stored_names(rule, format);
      CHECK(names[0] == "parameters");
      CHECK(names[1] == "remainder");
      for (std::size_t which = 0; which < names.size(); ++which) {
        SplitHost host(rule, format, GradientKind::fp32, kTileCount + 500);
        UpdateOrder order = host.order();
        order.source.state_file = &file;
        order.source.state_offset_bytes = {4096, 8192, 12288, 16384};
        host.arrays[which].back() ^= std::byte{1};
        UpdatedChecksums updated{};
        const Status status = run_update(order, host.memory(), updated);
        REQUIRE_FALSE(status.ok());
        CHECK(status.error().code() == ErrorCode::corrupt);
        CHECK_THAT(
            status.error().message(),
            Catch::StartsWith(fmt::format("{}: {} of subgroup 4 at offset {} ", file.path(),
                                          names[which], order.source.state_offset_bytes[which])));
      }
    }
  }
}

TEST_CASE("a copy that is elsewhere is updated there, and passes to the state when it is told to") {
  for (const bool comes : {false, true}) {
    for (const bool goes : {false, true}) {
      CAPTURE(comes, goes);
      SplitHost host(RuleKind::adamw, {.kind = StateFormatKind::compact}, GradientKind::bf16,
                     2 * kTileCount + 77);
      SplitHost wanted = host;
      UpdateOrder order = host.order();
      order.copy = {.comes_from_state = comes, .goes_to_state = goes};
      std::vector<std::uint16_t> copy;
      const UpdateMemory memory = host.memory(copy);
      const Bytes strange(host.arrays[0].size(), std::byte{0x5a});
      if (comes) {
        std::memset(copy.data(), 0x77, copy.size() * 2);
      } else {
        host.arrays[0] = strange;
      }
      const Bytes before = host.arrays[0];
      UpdatedChecksums updated{};
      REQUIRE(run_update(order, {memory.state, memory.gradient, copy.data()}, updated).ok());
      wanted.update();
      CHECK(bytes_of(copy) == wanted.arrays[0]);
      CHECK(host.arrays[0] == (goes ? wanted.arrays[0] : before));
      for (std::size_t v = 0; v < wanted.arrays.size(); ++v) {
        if (v > 0) CHECK(host.arrays[v] == wanted.arrays[v]);
        CHECK(updated[v] == state::checksum(wanted.arrays[v]));
      }
    }
  }
}

TEST_CASE("a copy that nothing passes to needs no array, and damage to it is found") {
  const io::File file = file_with_a_name();
  SplitHost host(RuleKind::sgd, {.kind = StateFormatKind::exact}, GradientKind::fp32, 1000);
  UpdateOrder order = host.order();
  order.source.state_file = &file;
  std::vector<std::uint16_t> copy;
  UpdateMemory memory = host.memory(copy);
  memory.state[0] = nullptr;
  copy[777] ^= 4;
  UpdatedChecksums updated{};
  const Status damaged = run_update(order, memory, updated);
  REQUIRE_FALSE(damaged.ok());
  CHECK_THAT(damaged.error().message(), Catch::Contains("parameters of subgroup 4"));
  SplitHost again(RuleKind::sgd, {.kind = StateFormatKind::exact}, GradientKind::fp32, 1000);
  memory = again.memory(copy);
  memory.state[0] = nullptr;
  REQUIRE(run_update(order, memory, updated).ok());
  again.arrays[0] = bytes_of(copy);
  CHECK(updated[0] == state::checksum(again.arrays[0]));
}

TEST_CASE("stretches of parameters that are read later have the checksums of the copy") {
  SplitHost host(RuleKind::adamw, {.kind = StateFormatKind::compact}, GradientKind::bf16, 6000);
  ParameterStretch stretches[] = {{0, 8192}, {8192, 3808}};
  UpdateOrder order = host.order();
  order.parameters = stretches;
  UpdatedChecksums updated{};
  REQUIRE(run_update(order, host.memory(), updated).ok());
  const std::span<const std::byte> copy(host.arrays[0]);
  CHECK(stretches[0].checksum == state::checksum(copy.first(8192)));
  CHECK(stretches[1].checksum == state::checksum(copy.subspan(8192)));
}

TEST_CASE("an update costs what its state's format is said to, or else what fp32 does") {
  platform::Engine engine;
  engine.rate = {{"adamw", 1e9}, {"adamw_compact", 5e8}, {"sgd", 2e9}};
  const auto cost_of = [&engine](RuleKind rule, StateFormatKind format) {
    UpdateTask task;
    task.scalars = optimizer::update_scalars(optimizer::default_options(rule), 1, 1.0);
    task.element_count = 1000;
    task.stored = optimizer::stored_arrays(rule, {.kind = format});
    return update_cost(task, platform::EngineId{0}, engine).engine_dur_ns;
  };
  CHECK(cost_of(RuleKind::adamw, StateFormatKind::fp32) == 1000);
  CHECK(cost_of(RuleKind::adamw, StateFormatKind::compact) == 2000);
  CHECK(cost_of(RuleKind::adamw, StateFormatKind::exact) == 1000);
  CHECK(cost_of(RuleKind::sgd, StateFormatKind::compact) == 500);
}

}  // namespace
}  // namespace sluice::csd
