#pragma once
// A CSD made of a file and host memory: the same bytes and the same arithmetic as a real one; how
// long they take is the platform's affair (D1). EmulatedCsd says so in every run that uses it (D8).

#include "core/csd/csd_device.h"

namespace sluice::csd {

class EmulatedCsd final : public CsdDevice {
 public:
  EmulatedCsd(runtime::Runtime& runtime, const platform::Platform& platform,
              const platform::Device& device, DeviceId id, std::int64_t inflight_bytes,
              Payload payload);

  runtime::Operation read(const Owner& owner, const Transfer& transfer) override;
  runtime::Operation write(const Owner& owner, const Transfer& transfer) override;
  runtime::Operation update(const UpdateCommand& command, UpdatedChecksums& updated) override;
  runtime::Operation sync_from_device(const Owner& owner, std::span<const std::byte> device,
                                      std::span<std::byte> host, std::int64_t size_bytes) override;
  runtime::Operation sync_to_device(const Owner& owner, std::span<const std::byte> host,
                                    std::span<std::byte> device, std::int64_t size_bytes) override;

 private:
  runtime::Operation sync(const Owner& owner, platform::Direction direction,
                          std::span<const std::byte> from, std::span<std::byte> to,
                          std::int64_t size_bytes);
  const platform::Engine& engine_;
  Payload payload_;
};

}  // namespace sluice::csd
