#include "core/csd/drive.h"

namespace sluice::csd {

namespace {

runtime::DriveFile file_of(runtime::Stage stage) {
  return stage == runtime::Stage::gradient_down || stage == runtime::Stage::gradient_read
             ? runtime::DriveFile::gradients
             : runtime::DriveFile::state;
}

}  // namespace

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
  operation.cost.file = file_of(owner.stage);
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
