#include "hls/host/detail/xrt_csd.h"

#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "base/log.h"
#include "core/csd/update_kernel.h"
#include "hls/host/pairing.h"

namespace sluice::hls_host {
namespace {

// How long a run that was given up has to be aborted, by the driver or the card.
constexpr TimeNs kAbortNs = 5'000'000'000;

// When the program ends XRT waits for its threads, and those for a run that never ends. So after
// such a run the program ends with its exit code, before the libraries' destructors.
void end_without_waiting() {
  static const bool is_asked_for = on_exit(
                                       [](int code, void*) {
                                         std::fflush(nullptr);
                                         _exit(code);
                                       },
                                       nullptr) == 0;
  static_cast<void>(is_asked_for);
}

}  // namespace

XrtCsd::XrtCsd(const csd::DeviceRequest& request, std::shared_ptr<Card> card,
               std::shared_ptr<CardList> list, TimeNs patience_ns)
    : CsdDevice(request.runtime, request.platform.device(request.device), request.device,
                request.drive),
      engine_(request.platform.engine(device_.engine)),
      card_(card),
      list_(std::move(list)),
      patience_ns_(patience_ns),
      memory_(device_.name, request.memory_bytes, card),
      runs_(std::make_unique<UpdateRuns>(device_.name, std::move(card))) {
  CHECK(!device_.internal_route.empty());
}

void XrtCsd::stop() {
  if (runs_ == nullptr) return;
  if (runs_->stop(kAbortNs)) {
    runs_.reset();
    return;
  }
  // The run still has its buffers, and XRT's thread its flight: they stay as they are.
  memory_.abandon();
  static_cast<void>(runs_.release());
  static_cast<void>(new std::shared_ptr<Card>(card_));
  end_without_waiting();
  log_warning(fmt::format(
      "{}: a run of card {} could not be ended; its memory is not given back before the program "
      "ends. `xbutil reset --device {}` resets the card",
      device_.name, card_->facts.address, card_->facts.address));
}

Status XrtCsd::check_files() {
  for (const auto which : {stages::DriveFile::state, stages::DriveFile::gradients}) {
    const io::File* file = files().find(which);
    if (file != nullptr) RETURN_IF_ERROR(check_file(*file));
  }
  const io::File* state = files().find(stages::DriveFile::state);
  if (state == nullptr) return ok_status();
  PairingRequest request{device_.name, card_->facts.address, {}, state->path()};
  for (const CardFacts& card : list_->cards) request.cards.push_back(card.address);
  bool is_checked = false;
  RETURN_IF_ERROR(check_pairing(request, "/sys", is_checked));
  if (!is_checked && !list_->has_said_unchecked) {
    list_->has_said_unchecked = true;
    log_info(fmt::format(
        "pairing of cards and drives not checked: {} ({}) is no PCI device of this machine",
        card_->facts.name, card_->facts.address));
  }
  return ok_status();
}

// A card's memory is reached by the drive itself, which a page cache has no part in.
Status XrtCsd::check_file(const io::File& file) const {
  if (file.caching() != io::Caching::direct) {
    return make_error(ErrorCode::config,
                      "{}: backend=xrt moves {}'s state between drive and card, and "
                      "caching=buffered would take it through host memory; use caching=direct",
                      file.path(), device_.name);
  }
  struct statfs volume = {};
  if (fstatfs(file.fd(), &volume) != 0) return ok_status();  // whoever writes to it will be told
  if (volume.f_type != TMPFS_MAGIC && volume.f_type != RAMFS_MAGIC) return ok_status();
  return make_error(ErrorCode::unsupported,
                    "{}: lies in memory (tmpfs), not on a drive; choose a state_dir on the drive "
                    "beside {}",
                    file.path(), device_.name);
}

std::span<std::byte> XrtCsd::window(const csd::DeviceTransfer& transfer) const {
  CHECK(!transfer.buffer->bytes().empty());  // parameters never meet the drive
  return transfer.buffer->bytes();
}

runtime::Operation XrtCsd::read(const csd::TransferLabel& label,
                                const csd::DeviceTransfer& transfer) {
  return transfer_over(device_.internal_route, platform::Direction::read, label,
                       {transfer.offset_bytes, window(transfer), transfer.size_bytes});
}

runtime::Operation XrtCsd::write(const csd::TransferLabel& label,
                                 const csd::DeviceTransfer& transfer) {
  return transfer_over(device_.internal_route, platform::Direction::write, label,
                       {transfer.offset_bytes, window(transfer), transfer.size_bytes});
}

runtime::Operation XrtCsd::update(const csd::UpdateOrder& order, const csd::UpdateBuffers& buffers,
                                  csd::UpdatedChecksums& updated) {
  runtime::Operation operation;
  operation.runtime = &runtime_;
  operation.label = {stages::Stage::update, id_, order.task.subgroup};
  operation.label.step = order.step;
  operation.cost = csd::update_cost(order.task, device_.engine, engine_);
  operation.work.kind = runtime::WorkKind::external;
  operation.work.patience_ns = patience_ns_;
  operation.work.start = [this, &order, buffers, &updated](runtime::Completion completion) {
    return start_update(order, buffers, updated, std::move(completion));
  };
  operation.work.finish = [this, results = &updated](Status noted) {
    return runs_->finish(*results, std::move(noted));
  };
  return operation;
}

Status XrtCsd::start_update(const csd::UpdateOrder& order, const csd::UpdateBuffers& buffers,
                            csd::UpdatedChecksums& updated, runtime::Completion completion) {
  RoleBuffers given{};
  const auto give = [&](Role role, const csd::DeviceBuffer* buffer) {
    if (buffer == nullptr) return;
    given[static_cast<std::size_t>(role)] = &memory_.piece(*buffer).buffer;
  };
  give(Role::gradient, buffers.gradient);
  give(Role::state0, buffers.state[0]);
  give(Role::state1, buffers.state[1]);
  give(Role::state2, buffers.state[2]);
  give(Role::state3, buffers.state[3]);
  give(Role::parameters, buffers.parameters);
  const std::int64_t gradient_bytes = round_up(buffers.gradient->size_bytes(), kPageBytes);
  return runs_->start(order, given, gradient_bytes, updated, std::move(completion));
}

runtime::Operation XrtCsd::sync_from_device(const csd::TransferLabel& label,
                                            const csd::DeviceRange& device,
                                            std::span<std::byte> host, std::int64_t size_bytes) {
  runtime::Operation operation = copy(label, platform::Direction::read, size_bytes);
  operation.work.function = [piece = &memory_.piece(*device.buffer),
                             offset_bytes = device.offset_bytes,
                             to = host.first(static_cast<std::size_t>(size_bytes))] {
    return XrtMemory::fetch(*piece, offset_bytes, to);
  };
  return operation;
}

runtime::Operation XrtCsd::sync_to_device(const csd::TransferLabel& label,
                                          std::span<const std::byte> host,
                                          const csd::DeviceRange& device, std::int64_t size_bytes) {
  runtime::Operation operation = copy(label, platform::Direction::write, size_bytes);
  operation.work.function = [piece = &memory_.piece(*device.buffer),
                             offset_bytes = device.offset_bytes,
                             from = host.first(static_cast<std::size_t>(size_bytes))] {
    return XrtMemory::put(*piece, offset_bytes, from);
  };
  return operation;
}

// As an emulated device charges and records it.
runtime::Operation XrtCsd::copy(const csd::TransferLabel& label, platform::Direction direction,
                                std::int64_t size_bytes) const {
  runtime::Operation operation;
  operation.runtime = &runtime_;
  operation.label = {label.stage, id_, label.subgroup, label.layer, size_bytes};
  operation.label.step = label.step;
  operation.cost.route = device_.memory_route;
  operation.cost.direction = direction;
  operation.work.kind = runtime::WorkKind::function;
  return operation;
}

}  // namespace sluice::hls_host
