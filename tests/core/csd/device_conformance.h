#pragma once
// What the schedule relies on of a CsdDevice. Every implementation is run through it:
//
//   TEST_CASE("the emulated device is a CsdDevice") {
//     EmulatedFactory factory(Payload::real);
//     check_device(factory);
//   }
//
// Data goes in and out by sync_to_device and sync_from_device, so a device whose memory the host
// cannot see passes as well. A platform of one device stands behind it, and the real clock.

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <random>

#include "core/compress/sparse_gradient.h"
#include "core/csd/device_factory.h"
#include "core/optimizer/gradient_stats.h"
#include "core/optimizer/split_update.h"
#include "core/runtime/byte_counters.h"
#include "core/runtime/clocks.h"
#include "core/runtime/sync.h"
#include "storage/state/checksum.h"
#include "tests/core/runtime/test_platform.h"
#include "tests/test_folder.h"

namespace sluice::csd {

class DeviceBench {
 public:
  static constexpr std::int64_t kMemoryBytes = 8 << 20;

  explicit DeviceBench(DeviceFactory& factory)
      : platform(test_platform(1)), bytes(platform.links.size()) {
    auto engine = io::open_io_engine({.kind = io::IoEngineKind::posix});
    REQUIRE(engine.ok());
    auto executor = runtime::WorkExecutor::make(std::move(*engine), {});
    REQUIRE(executor.ok());
    runtime = std::make_unique<runtime::Runtime>(
        std::make_unique<runtime::RealClock>(std::move(*executor)));
    runtime->add_sink(&bytes);
    auto made = factory.make({*runtime, platform, DeviceId{0}, {1 << 20}, kMemoryBytes});
    REQUIRE(made.ok());
    device = std::move(*made);
    const auto file = device->files().make_scratch(stages::DriveFile::gradients, folder.path(),
                                                   io::Caching::buffered, 1 << 20);
    REQUIRE(file.ok());
  }

  // Awaits one operation.
  Status await(const runtime::Operation& operation) { return runtime->run(await_task(operation)); }
  DeviceBuffer allocate(std::int64_t size_bytes, Placement placement = Placement::state) {
    auto buffer = device->memory().allocate(size_bytes, placement);
    REQUIRE(buffer.ok());
    return std::move(*buffer);
  }
  void put(const DeviceBuffer& buffer, std::int64_t offset_bytes, std::span<const std::byte> host) {
    REQUIRE(await(device->sync_to_device({stages::Stage::move_state}, host, {&buffer, offset_bytes},
                                         std::ssize(host)))
                .ok());
  }
  std::vector<std::byte> get(const DeviceBuffer& buffer, std::int64_t offset_bytes,
                             std::int64_t size_bytes) {
    std::vector<std::byte> host(static_cast<std::size_t>(size_bytes));
    REQUIRE(await(device->sync_from_device({stages::Stage::parameters_up}, {&buffer, offset_bytes},
                                           host, size_bytes))
                .ok());
    return host;
  }

  TestFolder folder;
  platform::Platform platform;
  runtime::ByteCounters bytes;
  std::unique_ptr<runtime::Runtime> runtime;
  std::unique_ptr<CsdDevice> device;

 private:
  static runtime::Task<Status> await_task(runtime::Operation operation) {
    Status status = co_await operation;
    co_return status;
  }
};

inline std::vector<std::byte> random_bytes(std::int64_t size_bytes, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> bytes(static_cast<std::size_t>(size_bytes));
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

// One subgroup's arrays on the host, and what is to become of them.
struct HostArrays {
  HostArrays(optimizer::RuleKind rule_kind, optimizer::GradientKind gradient_kind,
             std::int64_t element_count)
      : rule(rule_kind), kind(gradient_kind), count(element_count) {
    std::mt19937 random(5);
    std::normal_distribution<float> normal;
    const auto n = static_cast<std::size_t>(count);
    state.resize(static_cast<std::size_t>(optimizer::rule_info(rule).state_count()),
                 std::vector<float>(n));
    for (std::vector<float>& array : state) {
      for (float& value : array) value = 0.1f * normal(random);
    }
    for (float& value : state.back()) value = std::abs(value);
    std::vector<float> values(n);
    for (float& value : values) value = normal(random);
    gradient.resize(n * static_cast<std::size_t>(bytes_of(kind)));
    if (kind == optimizer::GradientKind::fp32) {
      std::memcpy(gradient.data(), values.data(), gradient.size());
    } else {
      optimizer::narrow(values.data(), kind16(), reinterpret_cast<std::uint16_t*>(gradient.data()),
                        count);
    }
    copy.resize(n);
  }
  Float16Kind kind16() const {
    return kind == optimizer::GradientKind::fp16 ? Float16Kind::fp16 : Float16Kind::bf16;
  }
  UpdateOrder order() const {
    UpdateOrder order;
    order.task.subgroup = SubgroupId{4};
    order.task.scalars = optimizer::update_scalars(optimizer::default_options(rule), 3, 0.5);
    order.task.element_count = count;
    order.task.gradient_kind = kind;
    order.task.parameter_kind = kind16();
    order.task.stored = optimizer::stored_arrays(rule, {});
    for (std::size_t v = 0; v < state.size(); ++v) order.check.expected[v] = sum(v);
    return order;
  }
  std::uint64_t sum(std::size_t variable) const {
    return state::checksum(std::as_bytes(std::span(state[variable])));
  }
  // The reference, in place.
  void update() {
    optimizer::UpdateArrays arrays;
    arrays.element_count = count;
    for (std::size_t v = 0; v < state.size(); ++v) arrays.state[v] = state[v].data();
    arrays.gradient = gradient.data();
    arrays.gradient_kind = kind;
    arrays.parameters = copy.data();
    arrays.parameter_kind = kind16();
    optimizer::update_reference(order().task.scalars, arrays);
  }

  optimizer::RuleKind rule;
  optimizer::GradientKind kind;
  std::int64_t count;
  std::vector<std::vector<float>> state;
  std::vector<std::byte> gradient;
  std::vector<std::uint16_t> copy;
};

// One subgroup's split state, and what is to become of it.
struct SplitHostArrays {
  SplitHostArrays(optimizer::RuleKind rule_kind, const StateFormat& format,
                  optimizer::GradientKind gradient_kind, std::int64_t element_count)
      : rule(rule_kind),
        stored(optimizer::stored_arrays(rule_kind, format)),
        kind(gradient_kind),
        count(element_count) {
    const HostArrays plain(rule, kind, count);
    gradient = plain.gradient;
    for (std::int32_t v = 0; v < stored.count; ++v) {
      const ArrayCode code = stored.codes[static_cast<std::size_t>(v)];
      arrays.emplace_back(static_cast<std::size_t>(array_bytes(code, count)));
    }
    const std::vector<std::span<const float>> values(plain.state.begin(), plain.state.end());
    encode(values, CodeRounding::nearest(), 0, span());
  }
  StoredSpan span() {
    StoredSpan span{stored, {}, count};
    for (std::size_t v = 0; v < arrays.size(); ++v) span.data[v] = arrays[v].data();
    return span;
  }
  std::vector<std::vector<float>> decoded() {
    std::vector<std::vector<float>> values;
    for (std::int32_t v = 0; v < stored.decoded_count(); ++v) {
      decode(span(), v, 0, values.emplace_back(static_cast<std::size_t>(count)));
    }
    return values;
  }
  UpdateOrder order() const {
    UpdateOrder order;
    order.task.subgroup = SubgroupId{4};
    order.task.scalars = optimizer::update_scalars(optimizer::default_options(rule), 3, 0.5);
    order.task.element_count = count;
    order.task.gradient_kind = kind;
    order.task.stored = stored;
    order.task.rounding = rounding;
    order.task.first_flat_index = first_flat_index;
    for (std::size_t v = 0; v < arrays.size(); ++v) {
      order.check.expected[v] = state::checksum(arrays[v]);
    }
    return order;
  }
  // The definition, in place.
  void update() {
    optimizer::update_reference(order().task.scalars,
                                {span(), gradient.data(), kind, rounding, first_flat_index});
  }

  optimizer::RuleKind rule;
  StoredArrays stored;
  optimizer::GradientKind kind;
  std::int64_t count;
  std::vector<std::vector<std::byte>> arrays;
  std::vector<std::byte> gradient;
  CodeRounding rounding = CodeRounding::of_step(42, 3);
  std::int64_t first_flat_index = 7 * kBlockElements;
};

inline constexpr StateFormat kSplitFormats[] = {
    {.kind = StateFormatKind::exact},
    {.kind = StateFormatKind::compact},
    {.kind = StateFormatKind::compact, .remainder_bits = 8}};

// Sets all but every 37th element of a gradient in fp32 to 0; returns it as a sparse one.
inline io::PageAlignedBuffer keep_some(std::span<std::byte> gradient) {
  auto* values = reinterpret_cast<float*>(gradient.data());
  const std::int64_t count = std::ssize(gradient) / 4;
  std::vector<std::uint32_t> kept_indices;
  std::vector<float> kept_values;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (i % 37 != 0) {
      values[i] = 0;
      continue;
    }
    kept_indices.push_back(i);
    kept_values.push_back(values[i]);
  }
  constexpr auto kKind = optimizer::GradientKind::fp32;
  auto sparse = io::PageAlignedBuffer::allocate(
      compress::sparse_gradient_bytes(count, std::ssize(kept_indices), kKind));
  REQUIRE(sparse.ok());
  compress::encode_sparse_gradient({kept_indices, kept_values}, count, kKind, sparse->bytes());
  return std::move(*sparse);
}

// The same arrays in the device's memory.
struct DeviceArrays {
  DeviceArrays(DeviceBench& bench, const HostArrays& host,
               std::span<const std::byte> gradient_bytes)
      : gradient(bench.allocate(std::ssize(gradient_bytes), Placement::gradient)),
        copy(bench.allocate(host.count * 2, Placement::parameters)) {
    bench.put(gradient, 0, gradient_bytes);
    state.reserve(host.state.size());
    for (std::size_t v = 0; v < host.state.size(); ++v) {
      state.push_back(bench.allocate(host.count * 4));
      bench.put(state.back(), 0, std::as_bytes(std::span(host.state[v])));
      buffers.state[v] = &state.back();
    }
    buffers.gradient = &gradient;
    buffers.parameters = &copy;
  }
  std::vector<DeviceBuffer> state;
  DeviceBuffer gradient;
  DeviceBuffer copy;
  UpdateBuffers buffers;
};

inline void check_memory(DeviceFactory& factory) {
  DeviceBench bench(factory);
  DeviceMemory& memory = bench.device->memory();
  CHECK(memory.budget_bytes() == DeviceBench::kMemoryBytes);
  std::mt19937 random(1);
  std::vector<DeviceBuffer> held;
  int refused = 0;
  for (int i = 0; i < 200; ++i) {
    if (!held.empty() && random() % 3 == 0) held.erase(held.begin());
    const auto size_bytes = static_cast<std::int64_t>(random() % (2 << 20)) + 1;
    const std::int64_t used_bytes = memory.used_bytes();
    auto buffer = memory.allocate(size_bytes, static_cast<Placement>(i % 3));
    if (buffer.ok()) {
      CHECK(buffer->size_bytes() == size_bytes);
      held.push_back(std::move(*buffer));
    } else {
      ++refused;
      CHECK(buffer.error().code() == ErrorCode::memory);
      CHECK(used_bytes + round_up(size_bytes, kPageBytes) > memory.budget_bytes());
      CHECK(memory.used_bytes() == used_bytes);
    }
    CHECK(memory.used_bytes() <= memory.budget_bytes());
  }
  CHECK(refused > 0);
  held.clear();
  CHECK(memory.used_bytes() == 0);
  // All of it can be had again.
  CHECK(memory.allocate(memory.budget_bytes(), Placement::state).ok());
}

inline void check_transfers(DeviceFactory& factory) {
  DeviceBench bench(factory);
  const std::vector<std::byte> filling = random_bytes(5 * kPageBytes, 9);
  for (const std::int64_t size_bytes : {1L, 100L, kPageBytes - 4, kPageBytes, 3 * kPageBytes + 4}) {
    const std::vector<std::byte> wanted = random_bytes(size_bytes, 3);
    const DeviceBuffer from = bench.allocate(5 * kPageBytes);
    const DeviceBuffer to = bench.allocate(5 * kPageBytes);
    bench.put(from, 0, wanted);
    bench.put(to, 0, filling);
    const TransferLabel label{stages::Stage::gradient_read, SubgroupId{2}};
    REQUIRE(bench.await(bench.device->write(label, {2 * kPageBytes, &from, size_bytes})).ok());
    REQUIRE(bench.await(bench.device->read(label, {2 * kPageBytes, &to, size_bytes})).ok());
    REQUIRE(bench.get(to, 0, size_bytes) == wanted);
    // Past the last page that the transfer fills nothing has changed.
    const std::int64_t end_bytes = round_up(size_bytes, kPageBytes);
    REQUIRE(bench.get(to, end_bytes, 100) ==
            std::vector<std::byte>(filling.begin() + end_bytes, filling.begin() + end_bytes + 100));
    // The host sees the same bytes in the file.
    auto host = io::PageAlignedBuffer::allocate(end_bytes);
    REQUIRE(host.ok());
    REQUIRE(bench.await(bench.device->host_read(label, {2 * kPageBytes, host->bytes(), size_bytes}))
                .ok());
    REQUIRE(std::equal(wanted.begin(), wanted.end(), host->bytes().begin()));
  }
}

inline void check_copies(DeviceFactory& factory) {
  DeviceBench bench(factory);
  const std::vector<std::byte> filling = random_bytes(3 * kPageBytes, 1);
  const DeviceBuffer buffer = bench.allocate(3 * kPageBytes);
  for (const std::int64_t offset_bytes : {0L, 4L, kPageBytes, kPageBytes + 400}) {
    bench.put(buffer, 0, filling);
    const std::vector<std::byte> part = random_bytes(kPageBytes + 40, 2);
    bench.put(buffer, offset_bytes, part);
    std::vector<std::byte> wanted = filling;
    std::copy(part.begin(), part.end(), wanted.begin() + offset_bytes);
    REQUIRE(bench.get(buffer, 0, std::ssize(wanted)) == wanted);
    REQUIRE(bench.get(buffer, offset_bytes, std::ssize(part)) == part);
  }
}

inline void check_update(DeviceFactory& factory) {
  using optimizer::GradientKind;
  using optimizer::RuleKind;
  for (const RuleKind rule : {RuleKind::adamw, RuleKind::sgd, RuleKind::adagrad}) {
    for (const GradientKind kind : {GradientKind::fp32, GradientKind::bf16, GradientKind::fp16}) {
      for (const std::int64_t count : {1L, 100L, 16 * 1024L, 2 * 16 * 1024L + 1}) {
        DeviceBench bench(factory);
        HostArrays host(rule, kind, count);
        const DeviceArrays arrays(bench, host, host.gradient);
        const GradientChunkCheck whole[] = {
            {0, std::ssize(host.gradient), state::checksum(host.gradient)}};
        UpdateOrder order = host.order();
        order.check.gradient = whole;
        UpdatedChecksums updated{};
        REQUIRE(bench.await(bench.device->update(order, arrays.buffers, updated)).ok());
        host.update();
        for (std::size_t v = 0; v < host.state.size(); ++v) {
          const std::vector<std::byte> values = bench.get(arrays.state[v], 0, count * 4);
          REQUIRE(std::ranges::equal(values, std::as_bytes(std::span(host.state[v]))));
          REQUIRE(updated[v] == host.sum(v));
        }
        const std::vector<std::byte> copy = bench.get(arrays.copy, 0, count * 2);
        REQUIRE(std::ranges::equal(copy, std::as_bytes(std::span(host.copy))));
      }
    }
  }
}

inline void check_sparse_update(DeviceFactory& factory) {
  constexpr std::int64_t kCount = 2 * 16 * 1024 + 77;
  DeviceBench bench(factory);
  HostArrays host(optimizer::RuleKind::adamw, optimizer::GradientKind::fp32, kCount);
  const io::PageAlignedBuffer sparse = keep_some(host.gradient);
  const DeviceArrays arrays(bench, host, sparse.bytes());
  UpdateOrder order = host.order();
  order.task.is_sparse = true;
  UpdatedChecksums updated{};
  REQUIRE(bench.await(bench.device->update(order, arrays.buffers, updated)).ok());
  host.update();
  for (std::size_t v = 0; v < host.state.size(); ++v) REQUIRE(updated[v] == host.sum(v));
}

// For devices that take split state.
inline void check_split_update(DeviceFactory& factory) {
  using optimizer::RuleKind;
  for (const RuleKind rule : {RuleKind::adamw, RuleKind::sgd, RuleKind::adagrad}) {
    for (const StateFormat& format : kSplitFormats) {
      for (const bool is_sparse : {false, true}) {
        DeviceBench bench(factory);
        SplitHostArrays host(rule, format, optimizer::GradientKind::fp32, 16 * 1024 + 77);
        UpdateOrder order = host.order();
        order.task.is_sparse = is_sparse;
        std::vector<std::byte> sent = host.gradient;
        if (is_sparse) {
          const io::PageAlignedBuffer sparse = keep_some(host.gradient);
          sent.assign(sparse.bytes().begin(), sparse.bytes().end());
        }
        const DeviceBuffer gradient = bench.allocate(std::ssize(sent), Placement::gradient);
        bench.put(gradient, 0, sent);
        std::vector<DeviceBuffer> state;
        for (const std::vector<std::byte>& array : host.arrays) {
          bench.put(state.emplace_back(bench.allocate(std::ssize(array))), 0, array);
        }
        UpdateBuffers buffers;
        buffers.gradient = &gradient;
        for (std::size_t v = 0; v < state.size(); ++v) buffers.state[v] = &state[v];
        UpdatedChecksums updated{};
        REQUIRE(bench.await(bench.device->update(order, buffers, updated)).ok());
        host.update();
        for (std::size_t v = 0; v < host.arrays.size(); ++v) {
          REQUIRE(bench.get(state[v], 0, std::ssize(host.arrays[v])) == host.arrays[v]);
          REQUIRE(updated[v] == state::checksum(host.arrays[v]));
        }
      }
    }
  }
}

inline void check_damage(DeviceFactory& factory) {
  auto named = io::File::open("/proc/self/exe", {io::FileAccess::read_only, io::Caching::buffered});
  REQUIRE(named.ok());
  for (const bool in_gradient : {false, true}) {
    DeviceBench bench(factory);
    const HostArrays host(optimizer::RuleKind::adamw, optimizer::GradientKind::fp32, 5000);
    UpdateOrder order = host.order();
    const GradientChunkCheck whole[] = {
        {0, std::ssize(host.gradient), state::checksum(host.gradient)}};
    order.check.gradient = whole;
    order.source.state_file = order.source.gradient_file = &*named;
    HostArrays damaged = host;
    auto& hit =
        in_gradient ? damaged.gradient[12] : *reinterpret_cast<std::byte*>(&damaged.state[1][3456]);
    hit ^= std::byte{1};
    const DeviceArrays arrays(bench, damaged, damaged.gradient);
    UpdatedChecksums updated{};
    const Status status = bench.await(bench.device->update(order, arrays.buffers, updated));
    REQUIRE_FALSE(status.ok());
    CHECK(status.error().code() == ErrorCode::corrupt);
    CHECK_THAT(status.error().message(), Catch::Contains("subgroup 4"));
    CHECK_THAT(status.error().message(), Catch::Contains(in_gradient ? "gradient" : "exp_avg"));
  }
}

// State stays off the host link; gradients go down it and parameters come up.
inline void check_links(DeviceFactory& factory) {
  DeviceBench bench(factory);
  const DeviceBuffer buffer = bench.allocate(4 * kPageBytes);
  auto host = io::PageAlignedBuffer::allocate(4 * kPageBytes);
  REQUIRE(host.ok());
  const TransferLabel label{stages::Stage::gradient_down};
  const TransferLabel up{stages::Stage::parameters_up};
  REQUIRE(bench.await(bench.device->host_write(label, {0, host->bytes(), 400})).ok());
  REQUIRE(bench.await(bench.device->read(label, {0, &buffer, 1600})).ok());
  REQUIRE(bench.await(bench.device->write(label, {0, &buffer, 1200})).ok());
  REQUIRE(bench.await(bench.device->sync_from_device(up, {&buffer, 0}, host->bytes(), 404)).ok());
  const auto& links = bench.bytes.links();
  CHECK(links[0].size_bytes == std::array<std::int64_t, 2>{404, 400});    // host: up, down
  CHECK(links[1].size_bytes == std::array<std::int64_t, 2>{1600, 1600});  // drive
  CHECK(links[2].size_bytes == std::array<std::int64_t, 2>{1600, 1200});  // internal
  CHECK(links[1].padding_bytes[1] == (4096 - 400) + (4096 - 1200));
}

inline void check_labels(DeviceFactory& factory) {
  DeviceBench bench(factory);
  const HostArrays host(optimizer::RuleKind::sgd, optimizer::GradientKind::fp32, 10);
  const DeviceArrays arrays(bench, host, host.gradient);
  UpdateOrder order = host.order();
  order.step = 12;
  UpdatedChecksums updated{};
  const runtime::Operation update = bench.device->update(order, arrays.buffers, updated);
  CHECK(update.label.stage == stages::Stage::update);
  CHECK(update.label.device == DeviceId{0});
  CHECK(update.label.subgroup == SubgroupId{4});
  CHECK(update.label.step == 12);
  const runtime::Operation read = bench.device->read(
      {stages::Stage::state_read, SubgroupId{7}, kNoLayer, 3}, {kPageBytes, &arrays.gradient, 40});
  CHECK(read.label.subgroup == SubgroupId{7});
  CHECK(read.label.step == 3);
  CHECK(read.label.place_bytes == kPageBytes);
  CHECK(read.label.size_bytes == 40);
}

// All of it; each a section, so that one failure does not hide another.
inline void check_device(DeviceFactory& factory) {
  SECTION("its memory is a budget that buffers give back") { check_memory(factory); }
  SECTION("what is written is read, whole pages and no more") { check_transfers(factory); }
  SECTION("copies reach their part of a buffer alone") { check_copies(factory); }
  SECTION("an update is the reference's, with its checksums") { check_update(factory); }
  SECTION("a sparse update is the dense one") { check_sparse_update(factory); }
  SECTION("damage is refused by name") { check_damage(factory); }
  SECTION("each byte is counted on the links that it takes") { check_links(factory); }
  SECTION("an operation says what it is part of") { check_labels(factory); }
}

}  // namespace sluice::csd
