#pragma once
// The code that computes with libtorch, as a shared library of its own: lib/libsluice_models.so
// beside the program's folder. libtorch takes some 0.4 s of processor time to load, so a command
// loads it when it trains, times layers, asks what a run takes on this computer or for devices, and
// no other does.
//
// Thread contract: load_model_library() from one thread; what the table's functions make has the
// contract of its own header.

#include <cstdint>
#include <string>

#include "base/status.h"
#include "core/model/device_report.h"
#include "core/model/device_times.h"
#include "core/model/launch_region.h"
#include "core/model/model_factory.h"

namespace sluice::model {

struct ModelLibrary {
  // Models of every family that trains (core/model/library/models.h).
  Result<ModelFactory> (*factory)(const std::string& device, std::int64_t memory_cap_bytes,
                                  int thread_count, const LaunchRegion& region);
  ModelFactory (*host_factory)();
  // Devices (core/model/torch).
  DeviceReport (*report_devices)();
  Result<DeviceTimes> (*time_device)(const DeviceTiming& timing);
};

// The library exports one function with this name, which returns its table.
inline constexpr const char* kModelLibraryEntry = "sluice_model_library";

// Loads it once and for good. libtorch's threads spin for some tenths of a millisecond while they
// wait, and no longer (docs/decisions.md, 48), unless the environment says otherwise. Errors:
// not_found for a library that is not there, memory for one that cannot be loaded, with what the
// loader says.
Result<const ModelLibrary*> load_model_library();

}  // namespace sluice::model
