// The software SmartSSD without XRT: packets as XRT's core builds them, straight into the device.
// So what one thread hands to another here is all in code that a sanitizer can see.

#include <ert.h>
#include <xrt_mem.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>

#include "soft/smartssd/soft_device.h"

using namespace sluice;
using namespace sluice::soft_smartssd;

namespace {

constexpr unsigned kVaddUnits = 0b11;  // the first two of the xclbin
constexpr unsigned kScaleUnit = 0b100;
constexpr std::chrono::milliseconds kLong{20000};

Status load_kernels(SoftDevice& device) {
  std::ifstream file(SLUICE_TEST_XCLBIN, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  return device.load(std::as_bytes(std::span(bytes)));
}

std::shared_ptr<SoftDevice> opened_bare(const std::string& settings) {
  setenv(kSettingsVariable, settings.c_str(), 1);
  auto device = SoftDevice::open(0);
  unsetenv(kSettingsVariable);
  REQUIRE(device.ok());
  return std::move(*device);
}

std::shared_ptr<SoftDevice> opened(const std::string& settings) {
  auto device = opened_bare(settings);
  REQUIRE(load_kernels(*device).ok());
  return device;
}

template <typename T>
T value_of(Result<T> result) {
  if (!result.ok()) throw std::runtime_error(result.error().message());
  return std::move(*result);
}

BufferHandle device_buffer(SoftDevice& device, std::size_t size_bytes, std::uint32_t word) {
  const BufferHandle handle = value_of(device.allocate(size_bytes, XCL_BO_FLAGS_NONE, nullptr));
  const auto host = value_of(device.buffer(handle))->host_bytes();
  for (std::size_t i = 0; i < size_bytes; i += 4) std::memcpy(host.data() + i, &word, 4);
  if (!device.sync(handle, SyncTo::device, size_bytes, 0).ok()) throw std::runtime_error("sync");
  return handle;
}

std::uint32_t first_word(SoftDevice& device, BufferHandle handle) {
  if (!device.sync(handle, SyncTo::host, 4, 0).ok()) throw std::runtime_error("sync");
  std::uint32_t word;
  std::memcpy(&word, value_of(device.buffer(handle))->host_bytes().data(), 4);
  return word;
}

// A start of one of the units in the mask, its registers from 0x10 on.
class Packet {
 public:
  Packet(SoftDevice& device, unsigned units, const std::vector<std::uint32_t>& arguments)
      : device_(device), handle_(value_of(device.allocate(4096, XCL_BO_FLAGS_EXECBUF, nullptr))) {
    auto* const command = reinterpret_cast<ert_start_kernel_cmd*>(bytes().data());
    command->opcode = ERT_START_CU;
    command->state = ERT_CMD_STATE_NEW;
    command->count = (1 + 4 + arguments.size()) & 0x7ff;
    command->cu_mask = units;
    std::memcpy(bytes().data() + 8 + 16, arguments.data(), 4 * arguments.size());
  }
  ~Packet() { device_.free(handle_); }
  Packet(const Packet&) = delete;
  Packet& operator=(const Packet&) = delete;

  BufferHandle handle() const { return handle_; }
  Status start() { return device_.execute(handle_); }
  int state() const {
    auto& header = *reinterpret_cast<std::uint32_t*>(bytes().data());
    return static_cast<int>(std::atomic_ref(header).load() & 0xf);
  }
  // As XRT's monitor does: look, wait for a notice, look again.
  int wait() {
    std::uint64_t seen = 0;
    while (state() < ERT_CMD_STATE_COMPLETED || state() == ERT_CMD_STATE_SUBMITTED) {
      if (!device_.wait(seen, kLong)) return -1;
    }
    return state();
  }

 private:
  std::span<std::byte> bytes() const { return value_of(device_.buffer(handle_))->host_bytes(); }

  SoftDevice& device_;
  BufferHandle handle_;
};

std::vector<std::uint32_t> address_words(SoftDevice& device, BufferHandle handle) {
  const std::uint64_t address = value_of(device.buffer(handle))->address();
  return {static_cast<std::uint32_t>(address), static_cast<std::uint32_t>(address >> 32), 0};
}

// scale: value 0x10, factor 0x1c, element_count 0x24.
std::vector<std::uint32_t> scale_arguments(SoftDevice& device, BufferHandle value,
                                           std::uint32_t factor, std::uint32_t count) {
  auto words = address_words(device, value);
  words.insert(words.end(), {factor, 0, count, 0});
  return words;
}

}  // namespace

TEST_CASE("threads start runs of the same units, and each has its own result") {
  const auto device = opened("completion_delay_us=200");
  std::atomic<int> right_count{0};
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint32_t i = 0; i < 20; ++i) {
        const BufferHandle a = device_buffer(*device, 4096, 100 * t + i);
        const BufferHandle sum = device_buffer(*device, 4096, 0);
        auto arguments = address_words(*device, a);
        for (const BufferHandle next : {a, sum}) {
          const auto words = address_words(*device, next);
          arguments.insert(arguments.end(), words.begin(), words.end());
        }
        arguments.push_back(1024);
        Packet packet(*device, kVaddUnits, arguments);
        const bool is_right = packet.start().ok() && packet.wait() == ERT_CMD_STATE_COMPLETED &&
                              first_word(*device, sum) == 2 * (100 * t + i);
        if (is_right) ++right_count;
        device->free(a);
        device->free(sum);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(right_count == 80);
}

TEST_CASE("threads that load the same xclbin at once do not end each other's runs") {
  for (int round = 0; round < 10; ++round) {
    const auto device = opened_bare("");
    std::atomic<int> right_count{0};
    std::vector<std::thread> threads;
    for (std::uint32_t t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        if (!load_kernels(*device).ok()) return;
        const BufferHandle value = device_buffer(*device, 4096, 1);
        Packet packet(*device, kScaleUnit, scale_arguments(*device, value, 2, 1));
        if (packet.start().ok() && packet.wait() == ERT_CMD_STATE_COMPLETED) ++right_count;
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(right_count == 4);
  }
}

TEST_CASE("a run that waits, and one that hangs, are aborted") {
  const auto device = opened("fault=hang@1;hang_ms=0");
  const BufferHandle value = device_buffer(*device, 4096, 1);
  Packet hung(*device, kScaleUnit, scale_arguments(*device, value, 2, 1));
  Packet waits(*device, kScaleUnit, scale_arguments(*device, value, 2, 1));
  REQUIRE(hung.start().ok());
  REQUIRE(waits.start().ok());
  for (Packet* packet : {&waits, &hung}) {
    const BufferHandle handle = value_of(device->allocate(4096, XCL_BO_FLAGS_EXECBUF, nullptr));
    auto* const command =
        reinterpret_cast<ert_abort_cmd*>(value_of(device->buffer(handle))->host_bytes().data());
    command->opcode = ERT_ABORT;
    command->exec_bo_handle = packet->handle();
    // A hung run that no unit has taken yet is as one that waits.
    REQUIRE(device->execute(handle).ok());
    CHECK(packet->wait() == ERT_CMD_STATE_ABORT);
  }
  CHECK(first_word(*device, value) == 1);
}

TEST_CASE("a device that ends tells the runs it still has") {
  auto device = opened("fault=hang@1;hang_ms=0");
  const BufferHandle value = device_buffer(*device, 4096, 1);
  const BufferHandle handle = value_of(device->allocate(4096, XCL_BO_FLAGS_EXECBUF, nullptr));
  const std::shared_ptr<Buffer> kept = value_of(device->buffer(handle));
  {
    const auto arguments = scale_arguments(*device, value, 2, 1);
    auto* const command = reinterpret_cast<ert_start_kernel_cmd*>(kept->host_bytes().data());
    command->opcode = ERT_START_CU;
    command->count = (1 + 4 + arguments.size()) & 0x7ff;
    command->cu_mask = kScaleUnit;
    std::memcpy(kept->host_bytes().data() + 24, arguments.data(), 4 * arguments.size());
  }
  REQUIRE(device->execute(handle).ok());
  device.reset();
  const auto* command = reinterpret_cast<const ert_packet*>(kept->host_bytes().data());
  CHECK(command->state == ERT_CMD_STATE_ABORT);
}

TEST_CASE("packets of any content are refused or end, and nothing breaks") {
  const auto device = opened("");
  std::mt19937 random(4);
  for (int round = 0; round < 3000; ++round) {
    const BufferHandle handle = value_of(device->allocate(4096, XCL_BO_FLAGS_EXECBUF, nullptr));
    const auto bytes = value_of(device->buffer(handle))->host_bytes();
    for (std::size_t i = 0; i < 256; ++i) bytes[i] = static_cast<std::byte>(random());
    auto* const command = reinterpret_cast<ert_start_kernel_cmd*>(bytes.data());
    command->opcode = random() % 2 * (random() % 32);  // 0 starts a unit
    command->state = ERT_CMD_STATE_NEW;
    command->cu_mask &= kVaddUnits | kScaleUnit;  // which touch nothing where the count is 0
    const Status status = device->execute(handle);
    if (!status.ok()) CHECK_FALSE(status.error().message().empty());
    device->free(handle);
  }
  const BufferHandle value = device_buffer(*device, 4096, 3);
  Packet packet(*device, kScaleUnit, scale_arguments(*device, value, 2, 1));
  REQUIRE(packet.start().ok());
  CHECK(packet.wait() == ERT_CMD_STATE_COMPLETED);
  CHECK(first_word(*device, value) == 7);
}

TEST_CASE("memory: the lowest place that fits, whole pages, a page between, a budget") {
  const auto memory = value_of(DeviceMemory::create(5 * 4096));
  const std::uint64_t first = value_of(memory->allocate(1));
  const std::uint64_t second = value_of(memory->allocate(4097));
  CHECK(first == 4096);
  CHECK(second == 3 * 4096);
  CHECK(memory->used_bytes() == 3 * 4096);
  CHECK(memory->room_at(first) == 1);
  CHECK(memory->room_at(first + 1) == 0);
  CHECK(memory->room_at(second + 4096) == 1);
  CHECK(memory->room_at(0) == 0);
  CHECK_FALSE(memory->allocate(3 * 4096).ok());
  CHECK_FALSE(memory->allocate(~std::uint64_t{0}).ok());
  CHECK_FALSE(memory->is_overrun(second));
  memory->at(second)[2 * 4096] = std::byte{1};
  CHECK(memory->is_overrun(second));
  CHECK_FALSE(memory->is_overrun(second));
  memory->release(first);
  CHECK(value_of(memory->allocate(4096)) == first);
}
