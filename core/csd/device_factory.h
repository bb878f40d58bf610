#pragma once
// Who makes a run's devices. The emulated ones are made here; hardware comes as another factory.
// Nothing falls back: a factory that cannot make what it is asked for says what is missing.
//
// Thread contract: the schedule's thread.

#include <memory>
#include <string>

#include "core/csd/csd_device.h"

namespace sluice::csd {

struct DeviceRequest {
  runtime::Runtime& runtime;
  const platform::Platform& platform;  // outlives the device, as the runtime does
  DeviceId device = kNoDevice;
  DriveOptions drive;
  std::int64_t memory_bytes = 0;  // the budget of its memory
};

class DeviceFactory {
 public:
  virtual ~DeviceFactory() = default;
  // For a run's mode line: what its devices are.
  virtual std::string description() const = 0;
  virtual Result<std::unique_ptr<CsdDevice>> make(const DeviceRequest& request) = 0;
};

class EmulatedFactory final : public DeviceFactory {
 public:
  // A stand-in for hardware is named in capitals (profiler/analyze/run_mode.h).
  static constexpr const char* kDescription = "EMULATED CSDs (files, host memory)";

  explicit EmulatedFactory(Payload payload) : payload_(payload) {}
  std::string description() const override { return kDescription; }
  Result<std::unique_ptr<CsdDevice>> make(const DeviceRequest& request) override;

 private:
  Payload payload_;
};

}  // namespace sluice::csd
