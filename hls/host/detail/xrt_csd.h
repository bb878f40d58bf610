#pragma once
// A CSD over XRT. Its drive reads and writes through the P2P windows of its buffers by the ordinary
// I/O engine, so what crosses the internal link is counted as an emulated device's. Kernels are
// runs that complete elsewhere. Copies between host and device memory wait for the DMA, since
// XRT's sync() has no other form: they are functions of a worker.
//
// Thread contract: that of CsdDevice.

#include "core/csd/csd_device.h"
#include "core/csd/device_factory.h"
#include "hls/host/detail/update_runs.h"
#include "hls/host/detail/xrt_memory.h"

namespace sluice::hls_host {

// The list of cards that the devices of a run share.
struct CardList {
  std::vector<CardFacts> cards;  // in XRT's order
  bool has_said_unchecked = false;
};

class XrtCsd final : public csd::CsdDevice {
 public:
  XrtCsd(const csd::DeviceRequest& request, std::shared_ptr<Card> card,
         std::shared_ptr<CardList> list, TimeNs patience_ns);
  ~XrtCsd() override { stop(); }

  csd::DeviceMemory& memory() override { return memory_; }
  Status check_files() override;
  void stop() override;
  runtime::Operation read(const csd::TransferLabel& label,
                          const csd::DeviceTransfer& transfer) override;
  runtime::Operation write(const csd::TransferLabel& label,
                           const csd::DeviceTransfer& transfer) override;
  runtime::Operation update(const csd::UpdateOrder& order, const csd::UpdateBuffers& buffers,
                            csd::UpdatedChecksums& updated) override;
  runtime::Operation sync_from_device(const csd::TransferLabel& label,
                                      const csd::DeviceRange& device, std::span<std::byte> host,
                                      std::int64_t size_bytes) override;
  runtime::Operation sync_to_device(const csd::TransferLabel& label,
                                    std::span<const std::byte> host, const csd::DeviceRange& device,
                                    std::int64_t size_bytes) override;

 private:
  Status start_update(const csd::UpdateOrder& order, const csd::UpdateBuffers& buffers,
                      csd::UpdatedChecksums& updated, runtime::Completion completion);
  std::span<std::byte> window(const csd::DeviceTransfer& transfer) const;
  runtime::Operation copy(const csd::TransferLabel& label, platform::Direction direction,
                          std::int64_t size_bytes) const;
  Status check_file(const io::File& file) const;

  const platform::Engine& engine_;
  std::shared_ptr<Card> card_;
  std::shared_ptr<CardList> list_;
  TimeNs patience_ns_;
  XrtMemory memory_;
  std::unique_ptr<UpdateRuns> runs_;  // empty once stopped
};

}  // namespace sluice::hls_host
