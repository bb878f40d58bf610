#pragma once
// method=csd on hardware: devices of XRT (AMD Xilinx' runtime), such as SmartSSDs, as a run's
// DeviceFactory (docs/hls.md). A build without XRT has this header too: there open_xrt_devices()
// says what to install.
//
// Thread contract: the schedule's thread; it outlives the devices that it makes.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/csd/device_factory.h"

namespace sluice::hls_host {

struct XrtOptions {
  std::string xclbin;                            // path; what the cards are programmed with
  std::optional<optimizer::RuleKind> rule = {};  // whose kernel it must have; empty: any
  bool is_split = false;                         // and of state that is not fp32
  TimeNs patience_ns = 30'000'000'000;  // after which an update that has not ended is given up
};

// Reads the xclbin and finds the cards; each is programmed when its device is made. Device d of the
// run is XRT's d-th card. Errors: ErrorCode::unsupported where XRT or a card is missing,
// ErrorCode::not_found for the xclbin, ErrorCode::config for one that lacks a kernel.
Result<std::unique_ptr<csd::DeviceFactory>> open_xrt_devices(const XrtOptions& options);

// For `sluice doctor`: one thing looked for, found by trying, and what to do where it is missing.
struct XrtFinding {
  std::string what;
  bool is_good = false;
  std::string text;
};
// `directory`: where the state would lie; `xclbin`: empty, or the path of one to look into.
std::vector<XrtFinding> examine_xrt(const std::string& directory, const std::string& xclbin);

}  // namespace sluice::hls_host
