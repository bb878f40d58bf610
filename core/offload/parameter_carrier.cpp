#include "core/offload/parameter_carrier.h"

#include <algorithm>
#include <cstring>

#include "base/units.h"
#include "core/csd/drive.h"
#include "core/offload/host_kernels.h"
#include "core/offload/offload_options.h"
#include "storage/state/checksum.h"

namespace sluice::offload {
namespace {

using stages::Stage;

// Two pieces are read while one is checked.
constexpr std::int32_t kPiecesAtOnce = 3;

// The rate `stage` counts fp32 elements.
constexpr std::int64_t kRatedBytes = 4;

}  // namespace

ParameterCarrier::ParameterCarrier(const Parts& parts)
    : parts_(parts),
      buffer_bytes_(plan_parameter_window(parts.layout, parts.options).buffer_bytes),
      pages_(parts.layout, parts.options.streams_parameters() ? parts.parameters : ParameterSpan()),
      room_(parts.runtime),
      fetching_(parts.runtime),
      reading_(parts.runtime) {
  for (const model::LayerRange& layer : parts.layout.layers) {
    layers_.emplace_back(parts.runtime, page_bytes(layer, parts.options.parameter_kind));
  }
  for (const auto& drive : parts.drives) {
    static_cast<void>(drive);
    readers_.emplace_back(parts.runtime, kPiecesAtOnce);
  }
}

void ParameterCarrier::begin(Pass pass, std::int32_t first) {
  if (!parts_.options.streams_parameters()) return;
  CHECK(is_over_);
  pass_ = pass;
  first_ = first;
  is_over_ = false;
  for (const LayerId layer : all_ids<LayerId>(parts_.layout.layer_count())) {
    CHECK(at(layer).whereabouts != Whereabouts::coming);
    at(layer).is_used = false;
    // They are of the update before.
    if (pass == Pass::forward && at(layer).whereabouts == Whereabouts::here) drop(layer);
  }
  fetching_.spawn(fetch_all());
}

runtime::Task<Status> ParameterCarrier::bring(LayerId layer) {
  if (!parts_.options.streams_parameters()) {
    Status up = co_await parts_.arrival.wait(layer);
    co_return up;
  }
  Status there = co_await at(layer).there.wait(waiting_for("its parameters to be read", layer));
  co_return there;
}

void ParameterCarrier::done(LayerId layer) {
  if (!parts_.options.streams_parameters()) return;
  CHECK(at(layer).whereabouts == Whereabouts::here);
  at(layer).is_used = true;
  if (pass_ == Pass::backward) drop(layer);
  room_.set();
}

runtime::Task<Status> ParameterCarrier::finish_pass() {
  is_over_ = true;
  room_.set();
  Status fetched = co_await fetching_.join();
  Status read = co_await reading_.join();
  co_return fetched.ok() ? read : fetched;
}

// ---- what is needed next, as far as the window goes

runtime::Task<Status> ParameterCarrier::fetch_all() {
  const std::int32_t count = parts_.layout.layer_count();
  for (std::int32_t i = first_; i < count && !is_over_; ++i) {
    const LayerId layer{pass_ == Pass::forward ? i : count - 1 - i};
    Status fetched = co_await fetch(layer);
    CO_RETURN_IF_ERROR(fetched);
  }
  co_return ok_status();
}

runtime::Task<Status> ParameterCarrier::fetch(LayerId layer) {
  if (pass_ == Pass::forward) {
    Status up = co_await parts_.arrival.wait(layer);
    CO_RETURN_IF_ERROR(up);
  }
  if (at(layer).whereabouts != Whereabouts::away) co_return ok_status();
  while (!is_over_ && !make_room(layer)) {
    room_.reset();
    Status has_room = co_await room_.wait(waiting_for("room for its parameters", layer));
    CO_RETURN_IF_ERROR(has_room);
  }
  if (!is_over_) start(layer);
  co_return ok_status();
}

// Forward is over with the lowest layers first, and backward needs those last.
bool ParameterCarrier::make_room(LayerId layer) {
  if (stays(layer)) return true;
  const std::int64_t size_bytes = at(layer).size_bytes;
  for (const LayerId used : all_ids<LayerId>(parts_.layout.layer_count())) {
    if (resident_bytes_ + size_bytes <= buffer_bytes_) return true;
    const bool may_go = at(used).whereabouts == Whereabouts::here && at(used).is_used;
    if (may_go && !stays(used)) drop(used);
  }
  return resident_bytes_ + size_bytes <= buffer_bytes_;
}

void ParameterCarrier::start(LayerId layer) {
  Layer& starting = at(layer);
  starting.whereabouts = Whereabouts::coming;
  change_resident(layer, starting.size_bytes);
  pages_.take(layer);
  const std::span<const ParameterStore::Piece> pieces = parts_.store.pieces(layer);
  starting.pieces_left = std::ssize(pieces);
  if (pieces.empty()) return end_reading(layer);  // nothing of the layer is trained
  for (const ParameterStore::Piece& piece : pieces) reading_.spawn(read(layer, piece));
}

void ParameterCarrier::end_reading(LayerId layer) {
  at(layer).whereabouts = Whereabouts::here;
  at(layer).there.set();
}

void ParameterCarrier::drop(LayerId layer) {
  at(layer).whereabouts = Whereabouts::away;
  at(layer).there.reset();
  change_resident(layer, -at(layer).size_bytes);
  pages_.give_back(layer);
}

void ParameterCarrier::change_resident(LayerId layer, std::int64_t change_bytes) {
  if (stays(layer)) return;
  resident_bytes_ += change_bytes;
  resident_peak_bytes_ = std::max(resident_peak_bytes_, resident_bytes_);
}

// ---- a piece

runtime::Task<Status> ParameterCarrier::read(LayerId layer, const ParameterStore::Piece& piece) {
  const DeviceId device = device_of(piece.subgroup);
  Result<runtime::Pool::Lease> reader =
      co_await readers_[static_cast<std::size_t>(index_of(device))].acquire(
          waiting_for("the parameters before them to be read", device, named(piece.subgroup)));
  CO_RETURN_IF_ERROR(reader);
  Result<runtime::Pool::Lease> bounce = co_await parts_.bounces.acquire(
      waiting_for("a bounce buffer for parameters", device, named(piece.subgroup)));
  CO_RETURN_IF_ERROR(bounce);
  const std::span<std::byte> bytes = parts_.bounces.bytes(*bounce);
  Status moved = co_await transfer(layer, piece, bytes);
  CO_RETURN_IF_ERROR(moved);
  Status taken = co_await taking(layer, piece, bytes);
  CO_RETURN_IF_ERROR(taken);
  if (--at(layer).pieces_left == 0) end_reading(layer);
  co_return ok_status();
}

// From the page that the piece begins in. What is of other layers there is padding.
runtime::Operation ParameterCarrier::transfer(LayerId layer, const ParameterStore::Piece& piece,
                                              std::span<std::byte> bounce) const {
  const csd::ParameterStretch& stretch =
      parts_.store.stretches(piece.subgroup)[static_cast<std::size_t>(piece.stretch)];
  const std::int64_t before_bytes = stretch.offset_bytes % kPageBytes;
  runtime::Operation operation = parts_.drives[device_of(piece.subgroup)]->host_read(
      {.stage = Stage::parameter_read, .subgroup = named(piece.subgroup), .layer = layer},
      {parts_.store.offset_bytes(piece.subgroup) + stretch.offset_bytes - before_bytes, bounce,
       before_bytes + stretch.size_bytes});
  operation.label.size_bytes -= before_bytes;
  operation.label.padding_bytes += before_bytes;
  return operation;
}

runtime::Operation ParameterCarrier::taking(LayerId layer, const ParameterStore::Piece& piece,
                                            std::span<std::byte> bounce) {
  const csd::ParameterStretch& stretch =
      parts_.store.stretches(piece.subgroup)[static_cast<std::size_t>(piece.stretch)];
  runtime::OperationLabel label;
  label.stage = Stage::parameter_check;
  label.subgroup = named(piece.subgroup);
  label.layer = layer;
  return parts_.kernels.stage(label, stretch.size_bytes / kRatedBytes,
                              [this, layer, &piece, bounce] { return take(layer, piece, bounce); });
}

// On a worker.
Status ParameterCarrier::take(LayerId layer, const ParameterStore::Piece& piece,
                              std::span<const std::byte> bounce) const {
  const csd::ParameterStretch& stretch =
      parts_.store.stretches(piece.subgroup)[static_cast<std::size_t>(piece.stretch)];
  const auto bytes = bounce.subspan(static_cast<std::size_t>(stretch.offset_bytes % kPageBytes),
                                    static_cast<std::size_t>(stretch.size_bytes));
  if (state::checksum(bytes) == stretch.checksum) {
    const std::int64_t count = stretch.size_bytes / bytes_of(parts_.options.parameter_kind);
    std::memcpy(parts_.parameters.subspan(piece.first_element, count).data(), bytes.data(),
                bytes.size());
    return ok_status();
  }
  const io::File* const file =
      parts_.drives[device_of(piece.subgroup)]->files().find(stages::DriveFile::parameters);
  return make_error(
      ErrorCode::corrupt,
      "the {} of layer {} ({}){}: the {} bytes at offset {} of {} are not what was "
      "written there",
      parts_.weights == Weights::base ? "base weights" : "parameters", index_of(layer),
      parts_.layout.layer(layer).name,
      parts_.weights == Weights::base ? "" : fmt::format(", subgroup {}", index_of(piece.subgroup)),
      stretch.size_bytes, parts_.store.offset_bytes(piece.subgroup) + stretch.offset_bytes,
      file->path());
}

}  // namespace sluice::offload
