// The folder in a build without XRT: nothing can be opened, and why is said.

#include "hls/host/xrt_devices.h"

namespace sluice::hls_host {
namespace {

constexpr const char* kWhatToDo =
    "this program was built without XRT: install it (Debian: libxrt-dev, uuid-dev, libboost-dev; "
    "for a card, AMD Xilinx' own packages) and build again, or choose backend=emulated";

}  // namespace

Result<std::unique_ptr<csd::DeviceFactory>> open_xrt_devices(const XrtOptions& /*options*/) {
  return make_error(ErrorCode::unsupported, "backend=xrt: {}", kWhatToDo);
}

std::vector<XrtFinding> examine_xrt(const std::string& /*directory*/,
                                    const std::string& /*xclbin*/) {
  return {{"XRT (hardware CSDs)", false, kWhatToDo}};
}

}  // namespace sluice::hls_host
