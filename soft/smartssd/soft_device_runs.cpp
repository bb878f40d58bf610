// Loading an xclbin, and the packets that start its units.

#include <ert.h>

#include <cstring>

#include "base/split_mix.h"
#include "hls/link/xclbin.h"
#include "soft/smartssd/soft_device.h"

namespace sluice::soft_smartssd {

namespace {

// Words behind the header; the packet's buffer has room for them, or it is empty.
std::span<const std::uint32_t> payload_of(const Buffer& packet, std::uint32_t count) {
  const auto bytes = packet.host_bytes();
  if (bytes.size() < 4 * (std::size_t{count} + 1)) return {};
  return {reinterpret_cast<const std::uint32_t*>(bytes.data()) + 1, count};
}

template <typename Packet>
const Packet* packet_as(const Buffer& packet) {
  return packet.host_bytes().size() < sizeof(Packet)
             ? nullptr
             : reinterpret_cast<const Packet*>(packet.host_bytes().data());
}

// ert_start_kernel_cmd: mask words, then the unit's registers.
Result<Run> decoded_run(std::shared_ptr<Buffer> packet, int unit_count) {
  const auto* command = packet_as<ert_start_kernel_cmd>(*packet);
  if (command == nullptr) return make_error(ErrorCode::config, "a packet without a header");
  const std::size_t mask_words = 1 + command->extra_cu_masks;
  const auto payload = payload_of(*packet, command->count);
  if (payload.size() < mask_words) return make_error(ErrorCode::config, "a packet that is cut");
  Run run;
  for (std::size_t bit = 0; bit < 32 * mask_words; ++bit) {
    if ((payload[bit / 32] >> (bit % 32) & 1) != 0 && bit < static_cast<std::size_t>(unit_count))
      run.eligible.set(bit);
  }
  if (run.eligible.none()) return make_error(ErrorCode::config, "a packet for no compute unit");
  run.registers.assign(payload.begin() + static_cast<std::ptrdiff_t>(mask_words), payload.end());
  run.packet = std::move(packet);
  return run;
}

}  // namespace

Status SoftDevice::load(std::span<const std::byte> file) {
  RETURN_IF_ERROR(check_present());
  ASSIGN_OR_RETURN(const hls_link::Xclbin xclbin, hls_link::read_xclbin(file, "xclbin"));
  MutexLock loading(loading_);
  {
    MutexLock lock(mutex_);
    if (units_ != nullptr && uuid_ == xclbin.uuid) return ok_status();
    for (const auto& [unit, access] : contexts_) {
      if (access.is_exclusive || access.shared_count > 0)
        return make_error(ErrorCode::busy, "compute unit {} of the loaded xclbin is in use", unit);
    }
  }
  ASSIGN_OR_RETURN(hls_link::SoftBitstream bitstream,
                   hls_link::SoftBitstream::open(xclbin.bitstream, "xclbin"));
  for (const hls_link::ComputeUnit& unit : xclbin.compute_units) {
    if (bitstream.kernel_named(unit.kernel) == nullptr)
      return make_error(ErrorCode::corrupt, "xclbin: its kernels have no {}", unit.kernel);
  }
  auto units = std::make_shared<ComputeUnits>(std::move(bitstream), xclbin.compute_units, settings_,
                                              rates_, *memory_, completions_);
  MutexLock lock(mutex_);
  units_.swap(units);
  uuid_ = xclbin.uuid;
  contexts_.clear();
  return ok_status();
}

Result<std::shared_ptr<ComputeUnits>> SoftDevice::units() const {
  MutexLock lock(mutex_);
  if (units_ == nullptr) return make_error(ErrorCode::config, "no xclbin is loaded");
  return units_;
}

void SoftDevice::finish(std::shared_ptr<Buffer> packet, ert_cmd_state state) {
  completions_.publish(std::move(packet), state, std::chrono::steady_clock::now());
}

void SoftDevice::draw_faults(Run& run) {
  run.number = ++run_count_;
  run.random = faults_.number_for(FaultKind::memory_error, static_cast<std::int64_t>(run.number));
  run.hangs = faults_.strikes(FaultKind::hang);
  run.breaks_memory = faults_.strikes(FaultKind::memory_error);
  if (faults_.strikes(FaultKind::lost)) {
    is_lost_ = true;
    log_soft_device(
        fmt::format("{} is lost at run {}, as was asked for", bdf_text(index_), run.number));
  }
}

Status SoftDevice::start(std::shared_ptr<Buffer> packet) {
  ASSIGN_OR_RETURN(const std::shared_ptr<ComputeUnits> units, this->units());
  ASSIGN_OR_RETURN(Run run, decoded_run(std::move(packet), units->count()));
  draw_faults(run);
  if (is_lost_) {
    finish(run.packet, ERT_CMD_STATE_NORESPONSE);
  } else {
    units->start(std::move(run));
  }
  return ok_status();
}

Status SoftDevice::copy_by_packet(const Buffer& packet) {
  const auto* command = packet_as<ert_start_copybo_cmd>(packet);
  if (command == nullptr) return make_error(ErrorCode::config, "a packet that is cut");
  const auto wide = [](std::uint32_t high, std::uint32_t low) {
    return std::uint64_t{high} << 32 | low;
  };
  return copy({.to = command->dst_bo_hdl,
               .from = command->src_bo_hdl,
               .to_offset_bytes = wide(command->dst_addr_hi, command->dst_addr_lo),
               .from_offset_bytes = wide(command->src_addr_hi, command->src_addr_lo),
               .count_bytes = wide(command->size_hi, command->size)});
}

Status SoftDevice::execute(BufferHandle handle) {
  RETURN_IF_ERROR(check_present());
  ASSIGN_OR_RETURN(std::shared_ptr<Buffer> packet, buffer(handle));
  if (packet->kind() != BufferKind::command)
    return make_error(ErrorCode::config, "buffer {} is no command", handle);
  const auto* header = packet_as<ert_packet>(*packet);
  if (header == nullptr) return make_error(ErrorCode::config, "a packet without a header");
  if (header->opcode == ERT_START_CU) return start(std::move(packet));
  ert_cmd_state state = ERT_CMD_STATE_COMPLETED;
  if (header->opcode == ERT_START_COPYBO) {
    if (!copy_by_packet(*packet).ok()) state = ERT_CMD_STATE_ERROR;
  } else if (header->opcode == ERT_ABORT) {
    const auto* command = packet_as<ert_abort_cmd>(*packet);
    ASSIGN_OR_RETURN(const std::shared_ptr<ComputeUnits> units, this->units());
    if (command != nullptr) {
      const auto target = buffer(static_cast<BufferHandle>(command->exec_bo_handle));
      if (target.ok()) units->abort(target->get());
    }
  } else {
    log_soft_device(fmt::format("a packet with opcode {}, which no SmartSSD has",
                                static_cast<unsigned>(header->opcode)));
    state = ERT_CMD_STATE_ERROR;
  }
  finish(std::move(packet), state);
  return ok_status();
}

// Nothing more will end on a lost device, and its driver's poll says so at once.
bool SoftDevice::wait(std::uint64_t& seen, std::chrono::milliseconds timeout) {
  if (is_lost_) return true;
  return completions_.wait(seen, timeout);
}

Result<std::uint32_t> SoftDevice::read_register(unsigned unit, std::uint32_t offset_bytes) {
  RETURN_IF_ERROR(check_present());
  ASSIGN_OR_RETURN(const std::shared_ptr<ComputeUnits> units, this->units());
  return units->read_register(static_cast<int>(unit), offset_bytes);
}

Status SoftDevice::write_register(unsigned unit, std::uint32_t offset_bytes, std::uint32_t value) {
  RETURN_IF_ERROR(check_present());
  ASSIGN_OR_RETURN(const std::shared_ptr<ComputeUnits> units, this->units());
  ASSIGN_OR_RETURN(const bool starts,
                   units->write_register(static_cast<int>(unit), offset_bytes, value));
  if (!starts) return ok_status();
  Run run = units->run_of_registers(static_cast<int>(unit));
  draw_faults(run);
  if (!is_lost_) units->start(std::move(run));
  return ok_status();
}

}  // namespace sluice::soft_smartssd
