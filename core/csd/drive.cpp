#include "core/csd/drive.h"

#include "base/check.h"

namespace sluice::csd {

runtime::Operation Drive::host_read(const Owner& owner, const Transfer& transfer) const {
  return transfer_over(device_.host_route, platform::Direction::read, owner, transfer);
}

runtime::Operation Drive::host_write(const Owner& owner, const Transfer& transfer) const {
  return transfer_over(device_.host_route, platform::Direction::write, owner, transfer);
}

runtime::Operation Drive::transfer_over(std::span<const platform::LinkId> route,
                                        platform::Direction direction, const Owner& owner,
                                        const Transfer& transfer) const {
  runtime::Operation operation;
  operation.runtime = &runtime_;
  operation.label.stage = owner.stage;
  operation.label.device = id_;
  operation.label.subgroup = owner.subgroup;
  operation.label.layer = owner.layer;
  operation.label.step = owner.step;
  operation.label.size_bytes = transfer.size_bytes;
  operation.label.padding_bytes = round_up(transfer.size_bytes, kPageBytes) - transfer.size_bytes;
  operation.label.place_bytes = transfer.place.offset_bytes;
  operation.cost.route = route;
  operation.cost.direction = direction;
  const std::optional<runtime::DriveFile> file = runtime::stage_info(owner.stage).file;
  CHECK(file.has_value());  // a stage that does not say which file of the drive it moves
  operation.cost.file = *file;
  operation.cost.inflight_bytes = inflight_bytes_;
  if (transfer.place.file != nullptr) {
    operation.work.kind = runtime::WorkKind::transfer;
    operation.work.file = transfer.place.file;
    operation.work.offset_bytes = transfer.place.offset_bytes;
    operation.work.data =
        transfer.bytes.first(static_cast<std::size_t>(round_up(transfer.size_bytes, kPageBytes)));
    operation.work.direction =
        direction == platform::Direction::read ? io::IoDirection::read : io::IoDirection::write;
  }
  return operation;
}

}  // namespace sluice::csd
