#pragma once
// A CSD made of a file and host memory: the same bytes and the same arithmetic as a real one; how
// long they take is the platform's affair (D1). EmulatedCsd says so in every run that uses it (D8).
//
// Thread contract: that of CsdDevice.

#include "core/csd/device_factory.h"

namespace sluice::csd {

class EmulatedCsd : public CsdDevice {
 public:
  EmulatedCsd(const DeviceRequest& request, Payload payload);

  DeviceMemory& memory() override { return memory_; }
  void stop() override {}  // its work is that of workers, which are waited for
  runtime::Operation read(const TransferLabel& label, const DeviceTransfer& transfer) override;
  runtime::Operation write(const TransferLabel& label, const DeviceTransfer& transfer) override;
  runtime::Operation update(const UpdateOrder& order, const UpdateBuffers& buffers,
                            UpdatedChecksums& updated) override;
  runtime::Operation sync_from_device(const TransferLabel& label, const DeviceRange& device,
                                      std::span<std::byte> host, std::int64_t size_bytes) override;
  runtime::Operation sync_to_device(const TransferLabel& label, std::span<const std::byte> host,
                                    const DeviceRange& device, std::int64_t size_bytes) override;

 private:
  runtime::Operation copy(const TransferLabel& label, platform::Direction direction,
                          const std::byte* from, std::byte* to, std::int64_t size_bytes);
  const platform::Engine& engine_;
  Payload payload_;
  EmulatedMemory memory_;
};

}  // namespace sluice::csd
