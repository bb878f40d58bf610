// A run's life: waiting_ -> a unit's thread -> (hang | kernel, checks, model time) -> tell(). The
// mutex is held only between these, never while a kernel runs.

#include "soft/smartssd/compute_units.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "base/split_mix.h"

namespace sluice::soft_smartssd {

namespace {

// The control register of an ap_ctrl_hs kernel.
constexpr std::uint32_t kStartBit = 1;
constexpr std::uint32_t kDoneBit = 2;
constexpr std::uint32_t kIdleBit = 4;

constexpr std::size_t kRegisterCount = hls_link::kUnitRangeBytes / 4;

std::uint64_t scalar_at(const Run& run, const SluiceSoftArgument& argument) {
  std::uint64_t value = 0;
  std::memcpy(&value, run.registers.data() + argument.offset_bytes / 4, argument.size_bytes);
  return value;
}

std::span<const SluiceSoftArgument> arguments_of(const SluiceSoftKernel& kernel) {
  return {kernel.arguments, static_cast<std::size_t>(kernel.argument_count)};
}

void* place_in_memory(void* memory, std::uint64_t address) {
  const auto& device = *static_cast<const DeviceMemory*>(memory);
  return device.room_at(address) == 0 ? nullptr : device.at(address);
}

}  // namespace

void log_soft_device(std::string_view message) {
  fmt::print(stderr, "SOFTWARE SmartSSD (a stand-in, no hardware): {}\n", message);
}

ComputeUnits::ComputeUnits(hls_link::SoftBitstream bitstream,
                           std::vector<hls_link::ComputeUnit> units, const Settings& settings,
                           const Rates& rates, DeviceMemory& memory, Completions& completions)
    : bitstream_(std::move(bitstream)),
      settings_(settings),
      rates_(rates),
      memory_(memory),
      completions_(completions),
      units_(units.size()) {
  for (std::size_t i = 0; i < units.size(); ++i) {
    units_[i].name = units[i].instance;
    units_[i].kernel = bitstream_.kernel_named(units[i].kernel);
    units_[i].registers.resize(kRegisterCount);
  }
  for (int i = 0; i < count(); ++i)
    units_[static_cast<std::size_t>(i)].thread = std::thread([this, i] { serve(i); });
}

ComputeUnits::~ComputeUnits() {
  {
    MutexLock lock(mutex_);
    is_ending_ = true;
    for (const Run& run : waiting_) tell(run, ERT_CMD_STATE_ABORT);
    waiting_.clear();
  }
  changed_.notify_all();
  for (Unit& unit : units_) unit.thread.join();
}

void ComputeUnits::start(Run run) {
  run.registers.resize(kRegisterCount);
  {
    MutexLock lock(mutex_);
    waiting_.push_back(std::move(run));
  }
  changed_.notify_all();
}

void ComputeUnits::abort(const Buffer* packet) {
  {
    MutexLock lock(mutex_);
    const auto found = std::find_if(waiting_.begin(), waiting_.end(),
                                    [&](const Run& run) { return run.packet.get() == packet; });
    if (found != waiting_.end()) {
      tell(*found, ERT_CMD_STATE_ABORT);
      waiting_.erase(found);
    } else if (std::any_of(units_.begin(), units_.end(),
                           [&](const Unit& unit) { return unit.packet == packet; })) {
      aborted_.push_back(packet);
    }
  }
  changed_.notify_all();
}

void ComputeUnits::serve(int unit) {
  for (Run run; take(unit, run);) {
    execute(units_[static_cast<std::size_t>(unit)], run);
    let_go(unit);
  }
}

bool ComputeUnits::take(int index, Run& run) {
  Unit& unit = units_[static_cast<std::size_t>(index)];
  MutexLock lock(mutex_);
  while (!is_ending_) {
    const auto found = std::find_if(waiting_.begin(), waiting_.end(), [&](const Run& waiting) {
      return waiting.eligible[static_cast<std::size_t>(index)];
    });
    if (found != waiting_.end()) {
      run = std::move(*found);
      waiting_.erase(found);
      unit.packet = run.packet.get();
      unit.is_busy = true;
      return true;
    }
    changed_.wait(mutex_);
  }
  return false;
}

void ComputeUnits::let_go(int index) {
  Unit& unit = units_[static_cast<std::size_t>(index)];
  MutexLock lock(mutex_);
  std::erase(aborted_, unit.packet);
  unit.packet = nullptr;
  unit.is_busy = false;
  unit.is_done = true;
}

void ComputeUnits::execute(const Unit& unit, const Run& run) {
  const SteadyTime begin = std::chrono::steady_clock::now();
  if (run.packet != nullptr) set_packet_state(*run.packet, ERT_CMD_STATE_RUNNING);
  if (run.hangs) {
    log_soft_device(fmt::format("run {} on {} hangs, as was asked for", run.number, unit.name));
    hang(run);
    return;
  }
  const ert_cmd_state state = call_kernel(unit, run);
  wait_for_model_time(unit, run, begin);
  tell(run, state);
}

void ComputeUnits::hang(const Run& run) {
  const SteadyTime end =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(settings_.hang_ms);
  ert_cmd_state state = ERT_CMD_STATE_TIMEOUT;
  {
    MutexLock lock(mutex_);
    for (;;) {
      const bool is_aborted =
          std::find(aborted_.begin(), aborted_.end(), run.packet.get()) != aborted_.end();
      if (is_ending_ || is_aborted) {
        state = ERT_CMD_STATE_ABORT;
        break;
      }
      const auto left = end - std::chrono::steady_clock::now();
      if (settings_.hang_ms != 0 && left <= left.zero()) break;
      changed_.wait_for(mutex_, settings_.hang_ms != 0 ? left : std::chrono::hours(1));
    }
  }
  tell(run, state);
}

ert_cmd_state ComputeUnits::call_kernel(const Unit& unit, const Run& run) {
  const SluiceSoftMemory memory{&memory_, &place_in_memory};
  if (!unit.kernel->run(run.registers.data(), &memory)) {
    log_soft_device(fmt::format("run {} on {}: an argument's address is in no live buffer",
                                run.number, unit.name));
    return ERT_CMD_STATE_ERROR;
  }
  return check_buffers(unit, run);
}

ert_cmd_state ComputeUnits::check_buffers(const Unit& unit, const Run& run) {
  ert_cmd_state state = ERT_CMD_STATE_COMPLETED;
  std::uint64_t broken = 0;
  for (const SluiceSoftArgument& argument : arguments_of(*unit.kernel)) {
    const std::uint64_t address = argument.is_buffer != 0 ? scalar_at(run, argument) : 0;
    if (address == 0) continue;
    broken = address;
    if (memory_.is_overrun(address)) {
      log_soft_device(fmt::format("run {} on {} wrote behind the buffer of its argument {}",
                                  run.number, unit.name, argument.name));
      state = ERT_CMD_STATE_ERROR;
    }
  }
  const std::uint64_t words = memory_.room_at(broken) / 8;
  if (run.breaks_memory && words > 0) {
    const std::uint64_t address = broken + run.random % words * 8;
    std::byte* const word = memory_.at(address);
    for (int i = 0; i < 8; ++i) word[i] ^= std::byte{0x5a};
    log_soft_device(
        fmt::format("run {} on {}: uncorrectable memory error at {:#x}, as was asked for",
                    run.number, unit.name, address));
    state = ERT_CMD_STATE_ERROR;
  }
  return state;
}

void ComputeUnits::wait_for_model_time(const Unit& unit, const Run& run, SteadyTime begin) {
  Rates::KernelStart start{unit.kernel->name};
  for (const SluiceSoftArgument& argument : arguments_of(*unit.kernel)) {
    const std::string_view name = argument.name;
    if (name == "element_count") start.element_count = scalar_at(run, argument);
    if (name == "gradient_format") start.is_sparse = scalar_at(run, argument) == kSparseGradient;
  }
  const SteadyTime end = begin + std::chrono::nanoseconds(rates_.kernel_ns(start));
  MutexLock lock(mutex_);
  while (!is_ending_ && std::chrono::steady_clock::now() < end)
    changed_.wait_for(mutex_, end - std::chrono::steady_clock::now());
}

void ComputeUnits::tell(const Run& run, ert_cmd_state state) {
  if (run.packet == nullptr) return;
  const auto delays = static_cast<std::uint64_t>(settings_.completion_delay_us) + 1;
  const auto delay = std::chrono::microseconds(mix64(run.random) % delays);
  completions_.publish(run.packet, state, std::chrono::steady_clock::now() + delay);
}

Result<std::uint32_t> ComputeUnits::read_register(int index, std::uint32_t offset_bytes) {
  if (index < 0 || index >= count() || offset_bytes / 4 >= kRegisterCount || offset_bytes % 4 != 0)
    return make_error(ErrorCode::config, "unit {} has no register {:#x}", index, offset_bytes);
  MutexLock lock(mutex_);
  Unit& unit = units_[static_cast<std::size_t>(index)];
  if (offset_bytes != 0) return unit.registers[offset_bytes / 4];
  const std::uint32_t control =
      (unit.is_busy ? kStartBit : kIdleBit) | (unit.is_done ? kDoneBit : 0);
  unit.is_done = false;
  return control;
}

Result<bool> ComputeUnits::write_register(int index, std::uint32_t offset_bytes,
                                          std::uint32_t value) {
  if (index < 0 || index >= count() || offset_bytes / 4 >= kRegisterCount || offset_bytes % 4 != 0)
    return make_error(ErrorCode::config, "unit {} has no register {:#x}", index, offset_bytes);
  MutexLock lock(mutex_);
  Unit& unit = units_[static_cast<std::size_t>(index)];
  if (offset_bytes != 0) unit.registers[offset_bytes / 4] = value;
  const bool starts = offset_bytes == 0 && (value & kStartBit) != 0;
  if (starts) unit.is_busy = true;
  return starts;
}

Run ComputeUnits::run_of_registers(int index) {
  MutexLock lock(mutex_);
  Run run;
  run.registers = units_[static_cast<std::size_t>(index)].registers;
  run.eligible.set(static_cast<std::size_t>(index));
  return run;
}

}  // namespace sluice::soft_smartssd
