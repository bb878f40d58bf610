#pragma once
// A card's memory as buffer objects of XRT. State and gradient are P2P buffers: mapped once, into
// what the drive reads from and writes to. The 16-bit parameters never meet the drive; they are a
// normal buffer, which has a copy in host memory that is synchronized by DMA.
//
// A P2P buffer is not registered with the I/O engine: the kernel does not pin another device's
// memory for long.
//
// Thread contract: that of DeviceMemory; put() and fetch() on one thread for each buffer.

#include <deque>
#include <optional>

#include "core/csd/device_memory.h"
#include "hls/host/detail/card.h"

namespace sluice::hls_host {

class XrtMemory final : public csd::DeviceMemory {
 public:
  XrtMemory(const std::string& name, std::int64_t budget_bytes, std::shared_ptr<Card> card)
      : DeviceMemory(name, budget_bytes), name_(name), card_(std::move(card)) {}

  struct Piece {
    xrt::bo buffer;
    std::span<std::byte> host_side;  // the P2P window, or the copy of a normal buffer
    bool is_window = true;
  };
  // Stays where it is as long as the buffer is held.
  Piece& piece(const csd::DeviceBuffer& buffer) {
    return pieces_[static_cast<std::size_t>(buffer.id())];
  }
  // Between the host and the device's side of a piece; they wait for the DMA.
  static Status put(Piece& piece, std::int64_t offset_bytes, std::span<const std::byte> from);
  static Status fetch(Piece& piece, std::int64_t offset_bytes, std::span<std::byte> to);

  // For a card that cannot be stopped: nothing is given back to it, now or later.
  void abandon();

 private:
  Result<Taken> take(std::int64_t size_bytes, csd::Placement placement) override;
  void give_back(std::int32_t id) override;
  Result<xrt::bo> make_buffer(std::int64_t size_bytes, xrt::bo::flags flags) const;
  Error refused(std::int64_t size_bytes, xrt::bo::flags flags, const Error& why) const;
  std::int64_t largest_below(std::int64_t size_bytes, xrt::bo::flags flags) const;

  std::string name_;
  std::shared_ptr<Card> card_;
  std::deque<Piece> pieces_;  // by id; one given back is empty
  bool is_abandoned_ = false;
};

}  // namespace sluice::hls_host
