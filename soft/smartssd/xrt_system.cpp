// How XRT finds the software SmartSSDs: it loads this library as its driver's, and the object below
// registers itself as the system by being made.

#include <charconv>
#include <stdexcept>

#include "soft/smartssd/xrt_abi_check.h"
#include "soft/smartssd/xrt_device.h"

namespace sluice::soft_smartssd {

namespace {

class XrtSystem final : public xrt_core::system {
 public:
  XrtSystem() {
    const auto settings = settings_of_environment();
    log_soft_device(settings.ok() ? fmt::format("{} of them behind XRT ({})", settings->devices,
                                                "docs/software_smartssd.md")
                                  : settings.error().message());
  }

  unsigned get_device_id(const std::string& text) const override {
    const auto count = static_cast<unsigned>(settings().devices);
    unsigned id = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), id);
    if (read.ptr == text.data() + text.size() && read.ec == std::errc() && id < count) return id;
    for (id = 0; id < count; ++id) {
      if (text == bdf_text(static_cast<int>(id))) return id;
    }
    throw std::runtime_error("SOFTWARE SmartSSD: there is no device '" + text + "'");
  }
  std::pair<unsigned, unsigned> get_total_devices(bool) const override {
    const auto count = static_cast<unsigned>(settings().devices);
    return {count, count};
  }
  std::shared_ptr<xrt_core::device> get_userpf_device(unsigned id) const override {
    return open_device(static_cast<int>(id))->core;
  }
  std::shared_ptr<xrt_core::device> get_userpf_device(void* handle, unsigned) const override {
    return make_xrt_device(static_cast<OpenDevice*>(handle));
  }
  std::shared_ptr<xrt_core::device> get_mgmtpf_device(unsigned) const override {
    throw std::runtime_error("SOFTWARE SmartSSD: there is no management function");
  }

 private:
  static Settings settings() {
    auto found = settings_of_environment();
    if (!found.ok()) throw std::runtime_error("SOFTWARE SmartSSD: " + found.error().message());
    return std::move(*found);
  }
};

// Never destroyed: XRT may ask it while the program ends.
const XrtSystem* registered() {
  const std::string problem = abi_problem();
  if (problem.empty()) return new XrtSystem;
  log_soft_device(problem);
  return nullptr;
}
const XrtSystem* const registered_system = registered();

}  // namespace

}  // namespace sluice::soft_smartssd
