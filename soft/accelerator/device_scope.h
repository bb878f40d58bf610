#pragma once
// Makes a device the current one of its thread while it lives.
//
// Thread contract: belongs to its thread.

#include "soft/accelerator/current.h"

namespace sluice::soft_accelerator {

class DeviceScope {
 public:
  explicit DeviceScope(int device) : before_(current().device) { current().device = device; }
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;
  ~DeviceScope() { current().device = before_; }

 private:
  int before_;
};

}  // namespace sluice::soft_accelerator
