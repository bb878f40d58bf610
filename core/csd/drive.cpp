#include "core/csd/drive.h"

#include "base/check.h"
#include "base/units.h"

namespace sluice::csd {

runtime::Operation Drive::host_read(const TransferLabel& label,
                                    const HostTransfer& transfer) const {
  return transfer_over(device_.host_route, platform::Direction::read, label, transfer);
}

runtime::Operation Drive::host_write(const TransferLabel& label,
                                     const HostTransfer& transfer) const {
  return transfer_over(device_.host_route, platform::Direction::write, label, transfer);
}

runtime::Operation Drive::transfer_over(std::span<const platform::LinkId> route,
                                        platform::Direction direction, const TransferLabel& label,
                                        const HostTransfer& transfer) const {
  const std::optional<stages::DriveFile> which = stages::stage_info(label.stage).file;
  CHECK(which.has_value());  // a stage that does not say which file of the drive it moves
  const std::int64_t padded_bytes = round_up(transfer.size_bytes, kPageBytes);
  runtime::Operation operation;
  operation.runtime = &runtime_;
  operation.label.stage = label.stage;
  operation.label.device = id_;
  operation.label.subgroup = label.subgroup;
  operation.label.layer = label.layer;
  operation.label.step = label.step;
  operation.label.size_bytes = transfer.size_bytes;
  operation.label.padding_bytes = padded_bytes - transfer.size_bytes;
  operation.label.place_bytes = transfer.offset_bytes;
  operation.cost.route = route;
  operation.cost.direction = direction;
  operation.cost.file = *which;
  operation.cost.inflight_bytes = options_.inflight_bytes;
  const io::File* file = files_.find(*which);
  if (file == nullptr) return operation;
  operation.work.kind = runtime::WorkKind::transfer;
  operation.work.file = file;
  operation.work.offset_bytes = transfer.offset_bytes;
  operation.work.data = transfer.bytes.first(static_cast<std::size_t>(padded_bytes));
  operation.work.direction =
      direction == platform::Direction::read ? io::IoDirection::read : io::IoDirection::write;
  return operation;
}

}  // namespace sluice::csd
