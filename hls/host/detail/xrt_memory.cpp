#include "hls/host/detail/xrt_memory.h"

#include <cstring>

#include "base/units.h"
#include "hls/host/detail/xrt_call.h"

namespace sluice::hls_host {
namespace {

std::size_t size_of(std::int64_t bytes) { return static_cast<std::size_t>(bytes); }

}  // namespace

Status XrtMemory::put(Piece& piece, std::int64_t offset_bytes, std::span<const std::byte> from) {
  std::memcpy(piece.host_side.data() + offset_bytes, from.data(), from.size());
  if (piece.is_window) return ok_status();
  return xrt_call("copying into a card's memory", [&] {
    piece.buffer.sync(XCL_BO_SYNC_BO_TO_DEVICE, from.size(), size_of(offset_bytes));
  });
}

Status XrtMemory::fetch(Piece& piece, std::int64_t offset_bytes, std::span<std::byte> to) {
  if (!piece.is_window) {
    RETURN_IF_ERROR(xrt_call("copying out of a card's memory", [&] {
      piece.buffer.sync(XCL_BO_SYNC_BO_FROM_DEVICE, to.size(), size_of(offset_bytes));
    }));
  }
  std::memcpy(to.data(), piece.host_side.data() + offset_bytes, to.size());
  return ok_status();
}

void XrtMemory::abandon() {
  is_abandoned_ = true;
  static_cast<void>(new std::deque<Piece>(std::move(pieces_)));
}

Result<csd::DeviceMemory::Taken> XrtMemory::take(std::int64_t size_bytes,
                                                 csd::Placement placement) {
  Piece piece;
  piece.is_window = placement != csd::Placement::parameters;
  const xrt::bo::flags flags = piece.is_window ? xrt::bo::flags::p2p : xrt::bo::flags::normal;
  auto buffer = make_buffer(size_bytes, flags);
  if (!buffer.ok()) return refused(size_bytes, flags, buffer.error());
  piece.buffer = std::move(*buffer);
  ASSIGN_OR_RETURN(void* const mapped,
                   xrt_call(name_ + ": mapping a buffer", [&] { return piece.buffer.map(); }));
  if (reinterpret_cast<std::uintptr_t>(mapped) % kPageBytes != 0) {
    return make_error(ErrorCode::unsupported,
                      "{}: its buffers are not mapped at whole pages, so no drive can read into "
                      "them",
                      name_);
  }
  piece.host_side = {static_cast<std::byte*>(mapped), size_of(size_bytes)};
  pieces_.push_back(std::move(piece));
  const Piece& kept = pieces_.back();
  // The host's memory beside a normal buffer is not the buffer.
  return Taken{static_cast<std::int32_t>(pieces_.size()) - 1,
               kept.is_window ? kept.host_side : std::span<std::byte>()};
}

void XrtMemory::give_back(std::int32_t id) {
  if (!is_abandoned_) pieces_[static_cast<std::size_t>(id)] = {};
}

Result<xrt::bo> XrtMemory::make_buffer(std::int64_t size_bytes, xrt::bo::flags flags) const {
  return xrt_call(name_ + ": taking a buffer",
                  [&] { return xrt::bo(card_->device, size_of(size_bytes), flags, card_->bank); });
}

Error XrtMemory::refused(std::int64_t size_bytes, xrt::bo::flags flags, const Error& why) const {
  const std::int64_t largest_bytes = largest_below(size_bytes, flags);
  if (largest_bytes == 0 && flags == xrt::bo::flags::p2p && used_bytes() == 0) {
    return make_error(ErrorCode::unsupported,
                      "{}; the card {} gives no peer-to-peer memory at all: `xbutil configure "
                      "--device {} --p2p enable`, then restart the machine; `sluice doctor` says "
                      "whether it worked",
                      why.message(), card_->facts.address, card_->facts.address);
  }
  return make_error(ErrorCode::memory,
                    "{}: the card has no room for a buffer of {} ({} are in use); the largest that "
                    "fits is {}: lower buffers or subgroup_elements ({})",
                    name_, format_bytes(size_bytes), format_bytes(used_bytes()),
                    format_bytes(largest_bytes), why.message());
}

// By trying: XRT does not say how much of a bank is free in one piece.
std::int64_t XrtMemory::largest_below(std::int64_t size_bytes, xrt::bo::flags flags) const {
  std::int64_t fits = 0;
  std::int64_t fails = size_bytes / kPageBytes;
  while (fails - fits > 1) {
    const std::int64_t middle = fits + (fails - fits) / 2;
    (make_buffer(middle * kPageBytes, flags).ok() ? fits : fails) = middle;
  }
  return fits * kPageBytes;
}

}  // namespace sluice::hls_host
