#include "core/offload/initial_state.h"

#include <algorithm>
#include <cstring>

#include "base/units.h"
#include "core/offload/buffer_pool.h"
#include "core/offload/host_kernels.h"
#include "core/offload/parameter_writing.h"
#include "core/offload/split_pieces.h"
#include "core/offload/state_versions.h"
#include "core/offload/step_update.h"
#include "storage/state/checksum.h"

namespace sluice::offload {
namespace {

// Some are on their way to the drive, or from it, while another is made or taken.
constexpr int kAtOnce = 4;

runtime::OperationLabel label_of(stages::Stage stage, SubgroupId subgroup) {
  runtime::OperationLabel label;
  label.stage = stage;
  label.subgroup = subgroup;
  return label;
}

}  // namespace

bool InitialState::is_split() const { return parts_.options.state_format.is_split(); }

std::int64_t InitialState::chunk_elements() const {
  return written_elements(parts_.options.bounce_bytes);
}

// The parameters of the floats that are in the bounce buffer go to the drive that they are read
// from.
runtime::Task<Status> InitialState::keep_parameters(SubgroupId subgroup, std::int64_t first,
                                                    std::int64_t count, std::span<std::byte> bounce,
                                                    StretchSums& sums) {
  const ParameterKind kind = parts_.options.parameter_kind;
  const std::int64_t offset_bytes =
      parts_.parameter_store.offset_bytes(subgroup) + first * bytes_of(kind);
  Status written = co_await write_parameters(
      {parts_.kernels, *parts_.drives[parts_.versions.device_of(subgroup)], subgroup, kind, sums},
      offset_bytes, count, bounce);
  co_return written;
}

runtime::Task<Status> InitialState::create(const FillInitial& fill, StepUpdate& update) {
  for (const SubgroupId subgroup : ids_of(update.next_slot)) {
    update.next_slot[subgroup] = parts_.versions.committed(subgroup);
  }
  runtime::TaskGroup devices(parts_.kernels.runtime());
  for (const DeviceId device : ids_of(parts_.subgroups_of)) {
    devices.spawn(create_on(device, fill, update));
  }
  Status status = co_await devices.join();
  co_return status;
}

runtime::Task<Status> InitialState::create_on(DeviceId device, const FillInitial& fill,
                                              StepUpdate& update) {
  Queue queue{parts_.subgroups_of[device]};
  runtime::TaskGroup tasks(parts_.kernels.runtime());
  for (int i = 0; i < kAtOnce; ++i) tasks.spawn(create_queued(queue, fill, update));
  Status status = co_await tasks.join();
  co_return status;
}

runtime::Task<Status> InitialState::create_queued(Queue& queue, const FillInitial& fill,
                                                  StepUpdate& update) {
  while (!queue.is_empty()) {
    const SubgroupId subgroup = queue.take();
    // Each in a sentence of its own: g++ 12 destroys the Status of a conditional one twice.
    Status created;
    if (is_split()) {
      created = co_await create_split(subgroup, fill, update);
    } else {
      created = co_await create_fp32(subgroup, fill, update);
    }
    CO_RETURN_IF_ERROR(created);
  }
  co_return ok_status();
}

runtime::Task<Status> InitialState::load() {
  runtime::TaskGroup devices(parts_.kernels.runtime());
  for (const DeviceId device : ids_of(parts_.subgroups_of)) {
    devices.spawn(load_of(device, parts_.subgroups_of[device], kAtOnce));
  }
  Status status = co_await devices.join();
  co_return status;
}

runtime::Task<Status> InitialState::load(const std::vector<SubgroupId>& subgroups) {
  runtime::TaskGroup devices(parts_.kernels.runtime());
  for (const DeviceId device : ids_of(parts_.subgroups_of)) {
    devices.spawn(load_of(device, subgroups, 1));
  }
  Status status = co_await devices.join();
  co_return status;
}

// Those of `subgroups` that the device updates.
runtime::Task<Status> InitialState::load_of(DeviceId device,
                                            const std::vector<SubgroupId>& subgroups, int at_once) {
  Queue queue{subgroups};
  runtime::TaskGroup tasks(parts_.kernels.runtime());
  for (int i = 0; i < at_once; ++i) tasks.spawn(load_queued(device, queue));
  Status status = co_await tasks.join();
  co_return status;
}

runtime::Task<Status> InitialState::load_queued(DeviceId device, Queue& queue) {
  while (!queue.is_empty()) {
    const SubgroupId subgroup = queue.take();
    if (parts_.versions.device_of(subgroup) != device) continue;
    Status loaded = co_await load_subgroup(subgroup);
    CO_RETURN_IF_ERROR(loaded);
  }
  co_return ok_status();
}

std::int64_t InitialState::offset_bytes(SubgroupId subgroup, std::int32_t variable) const {
  return parts_.versions.offset_bytes(parts_.versions.committed(subgroup), variable,
                                      parts_.versions.geometry().element_count(subgroup));
}

// A bounce buffer's worth of the array of an fp32 state, or of a split one's first, from element
// `first` on.
csd::HostTransfer InitialState::chunk(SubgroupId subgroup, std::int32_t variable,
                                      std::int64_t first, std::span<std::byte> bounce) const {
  const state::Geometry& geometry = parts_.versions.geometry();
  const std::int64_t count = std::min(chunk_elements(), geometry.element_count(subgroup) - first);
  return {offset_bytes(subgroup, variable) + geometry.array_bytes(variable, first), bounce,
          geometry.array_bytes(variable, count)};
}

// All variables together, since a master weight is in more than one.
runtime::Task<Status> InitialState::create_split(SubgroupId subgroup, const FillInitial& fill,
                                                 StepUpdate& update) {
  Result<runtime::Pool::Lease> lease = co_await parts_.bounces.acquire(
      waiting_for("a bounce buffer for the state", kNoDevice, subgroup));
  CO_RETURN_IF_ERROR(lease);
  const state::Geometry& geometry = parts_.versions.geometry();
  const std::int64_t element_count = geometry.element_count(subgroup);
  SplitPieces pieces(geometry, parts_.bounces.bytes(*lease), parts_.options.bounce_bytes);
  StretchSums sums(parts_.parameter_store.stretches(subgroup));
  for (std::int64_t first = 0; first < element_count; first += pieces.element_count()) {
    Status goes_on = unless_stopped(stops_, "writing the initial state");
    CO_RETURN_IF_ERROR(goes_on);
    const std::int64_t count = std::min(pieces.element_count(), element_count - first);
    const std::int64_t local_first = geometry.first_element(subgroup) + first;
    const runtime::Operation make =
        parts_.kernels.stage(label_of(stages::Stage::create_state, subgroup), count,
                             [this, &fill, &pieces, &sums, local_first, count]() -> Status {
                               ASSIGN_OR_RETURN(const std::span<const std::byte> copy,
                                                pieces.make(fill, local_first, count));
                               take_copy(copy, local_first, sums);
                               return ok_status();
                             });
    Status made = co_await make;
    CO_RETURN_IF_ERROR(made);
    pieces.on_made(count);
    Status written = co_await write_pieces(subgroup, pieces, first + count == element_count);
    CO_RETURN_IF_ERROR(written);
  }
  update.next_checksums[subgroup] = pieces.checksums();
  co_return ok_status();
}

// Parameters of 16 bits, from `local_first` on, to where forward reads them or, where that is a
// drive, into its checksums.
void InitialState::take_copy(std::span<const std::byte> copy, std::int64_t local_first,
                             StretchSums& sums) const {
  if (parts_.options.streams_parameters()) {
    sums.add(copy);
    return;
  }
  const ParameterSpan place =
      parts_.parameters.subspan(local_first, static_cast<std::int64_t>(copy.size()) / 2);
  std::memcpy(place.data(), copy.data(), copy.size());
}

runtime::Task<Status> InitialState::write_pieces(SubgroupId subgroup, SplitPieces& pieces,
                                                 bool is_last) {
  const csd::Drive& drive = *parts_.drives[parts_.versions.committed(subgroup).device];
  for (std::int32_t v = 0; v < parts_.versions.geometry().variable_count; ++v) {
    const csd::HostTransfer in_array = pieces.pages(v, is_last);
    if (in_array.size_bytes == 0) continue;
    csd::HostTransfer transfer = in_array;
    transfer.offset_bytes += offset_bytes(subgroup, v);
    Status written = co_await drive.host_write({stages::Stage::create_state, subgroup}, transfer);
    CO_RETURN_IF_ERROR(written);
    if (v == 0 && parts_.options.streams_parameters()) {
      Status kept = co_await write_copy(subgroup, in_array);
      CO_RETURN_IF_ERROR(kept);
    }
    pieces.on_written(v, in_array);
  }
  co_return ok_status();
}

// To the drive that layers' parameters are read from; the offset is that in the copy.
runtime::Operation InitialState::write_copy(SubgroupId subgroup, csd::HostTransfer transfer) const {
  transfer.offset_bytes += parts_.parameter_store.offset_bytes(subgroup);
  return parts_.drives[parts_.versions.device_of(subgroup)]->host_write(
      {stages::Stage::parameter_write, subgroup}, transfer);
}

runtime::Task<Status> InitialState::create_fp32(SubgroupId subgroup, const FillInitial& fill,
                                                StepUpdate& update) {
  Result<runtime::Pool::Lease> lease = co_await parts_.bounces.acquire(
      waiting_for("a bounce buffer for the state", kNoDevice, subgroup));
  CO_RETURN_IF_ERROR(lease);
  const std::span<std::byte> bounce = parts_.bounces.bytes(*lease);
  const csd::Drive& drive = *parts_.drives[parts_.versions.committed(subgroup).device];
  const state::Geometry& geometry = parts_.versions.geometry();
  const bool is_in_memory = !parts_.options.streams_parameters();
  StretchSums sums(parts_.parameter_store.stretches(subgroup));
  for (std::int32_t v = 0; v < geometry.variable_count; ++v) {
    state::Checksummer checksummer;
    for (std::int64_t first = 0; first < geometry.element_count(subgroup);
         first += chunk_elements()) {
      Status goes_on = unless_stopped(stops_, "writing the initial state");
      CO_RETURN_IF_ERROR(goes_on);
      const csd::HostTransfer transfer = chunk(subgroup, v, first, bounce);
      const std::int64_t count = transfer.size_bytes / 4;
      const std::int64_t flat_first = geometry.first_element(subgroup) + first;
      const runtime::Operation make = parts_.kernels.stage(
          label_of(stages::Stage::create_state, subgroup), count,
          [this, &fill, &checksummer, bounce, v, flat_first, count, is_in_memory]() -> Status {
            const std::span<float> values = floats_of(bounce, count);
            // Padding as well, and no more than what is written of a buffer that may be far larger.
            std::memset(bounce.data(), 0,
                        static_cast<std::size_t>(round_up(count * 4, kPageBytes)));
            RETURN_IF_ERROR(fill(v, flat_first, values));
            if (v == 0 && is_in_memory) {
              optimizer::put_parameters(values.data(),
                                        parts_.parameters.subspan(flat_first, count));
            }
            checksummer.add(std::as_bytes(values));
            return ok_status();
          });
      Status made = co_await make;
      CO_RETURN_IF_ERROR(made);
      Status written = co_await drive.host_write({stages::Stage::create_state, subgroup}, transfer);
      CO_RETURN_IF_ERROR(written);
      if (v > 0 || is_in_memory) continue;
      Status kept = co_await keep_parameters(subgroup, first, count, bounce, sums);
      CO_RETURN_IF_ERROR(kept);
    }
    update.next_checksums[subgroup][static_cast<std::size_t>(v)] = checksummer.digest();
  }
  co_return ok_status();
}

runtime::Task<Status> InitialState::load_subgroup(SubgroupId subgroup) {
  Result<runtime::Pool::Lease> lease = co_await parts_.bounces.acquire(
      waiting_for("a bounce buffer for the state", kNoDevice, subgroup));
  CO_RETURN_IF_ERROR(lease);
  const std::span<std::byte> bounce = parts_.bounces.bytes(*lease);
  const csd::Drive& drive = *parts_.drives[parts_.versions.committed(subgroup).device];
  const state::Geometry& geometry = parts_.versions.geometry();
  const bool is_in_memory = !parts_.options.streams_parameters();
  StretchSums sums(parts_.parameter_store.stretches(subgroup));
  state::Checksummer checksummer;
  for (std::int64_t first = 0; first < geometry.element_count(subgroup);
       first += chunk_elements()) {
    Status goes_on = unless_stopped(stops_, "reading the parameters");
    CO_RETURN_IF_ERROR(goes_on);
    const csd::HostTransfer transfer = chunk(subgroup, 0, first, bounce);
    Status read = co_await drive.host_read({stages::Stage::load_state, subgroup}, transfer);
    CO_RETURN_IF_ERROR(read);
    const std::int64_t count = std::min(chunk_elements(), geometry.element_count(subgroup) - first);
    const std::int64_t flat_first = geometry.first_element(subgroup) + first;
    const runtime::Operation take = parts_.kernels.stage(
        label_of(stages::Stage::load_state, subgroup), count,
        [this, &checksummer, &sums, transfer, flat_first, count, is_in_memory] {
          const std::span<std::byte> bytes =
              transfer.bytes.first(static_cast<std::size_t>(transfer.size_bytes));
          checksummer.add(bytes);
          if (is_split()) {
            take_copy(bytes, flat_first, sums);
          } else if (is_in_memory) {
            optimizer::put_parameters(floats_of(bytes, count).data(),
                                      parts_.parameters.subspan(flat_first, count));
          }
          return ok_status();
        });
    Status taken = co_await take;
    CO_RETURN_IF_ERROR(taken);
    if (is_in_memory) continue;
    if (is_split()) {
      Status kept = co_await write_copy(subgroup, {first * 2, bounce, transfer.size_bytes});
      CO_RETURN_IF_ERROR(kept);
      continue;
    }
    Status kept = co_await keep_parameters(subgroup, first, count, bounce, sums);
    CO_RETURN_IF_ERROR(kept);
  }
  const state::SubgroupVersion& committed = parts_.versions.version(subgroup);
  const bool has_payload = parts_.parameters.has_memory();
  if (!has_payload || checksummer.digest() == committed.checksums[0]) co_return ok_status();
  co_return make_error(ErrorCode::corrupt,
                       "{}: {} of subgroup {} at offset {} are not what was committed; "
                       "`sluice state DIR --verify` lists all damage",
                       drive.files().find(stages::DriveFile::state)->path(),
                       is_split() ? "parameters" : "master_weights", index_of(subgroup),
                       chunk(subgroup, 0, 0, bounce).offset_bytes);
}

}  // namespace sluice::offload
